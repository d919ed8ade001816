"""
What pai costs beside a hand-written loop, against a fake model server on loopback.

`nox -s bench` runs it. The server has a processor to itself and so has the worker; adapters are
interleaved over rounds in shuffled order, ratios are taken within a round, and CPU time (user
and system) is the measure, since wall time says more about the machine.

An adapter is a module of this package that follows `base`.
"""
