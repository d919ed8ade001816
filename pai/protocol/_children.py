"""Runs of subagents: their ids, and what of them stands in their parents' rows (O-20)."""

from __future__ import annotations

__all__ = ("GIVEN_UP", "child_id", "prefix_of")

GIVEN_UP = "given up"
"""Why the run of a subagent is cancelled that nobody waits for, while its parent goes on."""


def child_id(thread_id: str, run_id: str, call_id: str, place: int) -> str:
    """The id of the run, and of the thread, of the n-th subagent that a call runs."""
    from hashlib import blake2b

    told = "\0".join([thread_id, run_id, call_id, str(place)])
    return f"sub-{blake2b(told.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def prefix_of(call_id: str, place: int) -> str:
    """What the ids of a child's pending calls begin with, where they surface."""
    return f"{call_id}~{place}~"
