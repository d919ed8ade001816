"""
The runs whose spans are open, so that none stays open for ever.

No hook is told when a process gives up a run: another worker took it, or the runtime was closed and
left it to others. What is seen of that is that the run's context is thrown away.
"""

from __future__ import annotations

import atexit
from collections import deque
from typing import Final
from weakref import WeakSet

from pai_otel._meters import Meters
from pai_otel._run import RunSpan

__all__ = ("Hold", "OpenRuns")


class Hold:
    """
    What a run's ``state`` holds: it goes when the run's context goes.

    Attributes:
        span: The run's span.
    """

    __slots__ = ("_runs", "span")

    def __init__(self, span: RunSpan, runs: OpenRuns) -> None:
        self.span: Final = span
        self._runs: Final = runs

    def __del__(self) -> None:
        self._runs.lose(self.span)


class OpenRuns:
    """The runs of one plugin."""

    def __init__(self, meters: Meters) -> None:
        self._meters: Final = meters
        self._open: Final[set[RunSpan]] = set()
        self._gone: Final[deque[RunSpan]] = deque()
        _ALL.add(self)

    def add(self, span: RunSpan) -> Hold:
        """A run has started."""
        self._open.add(span)
        return Hold(span, self)

    def discard(self, span: RunSpan) -> None:
        """A run has settled."""
        self._open.discard(span)

    def lose(self, span: RunSpan) -> None:
        """
        A run's context is gone.

        Its span is ended later: this may be called in the middle of anything, also where an
        exporter holds its lock.
        """
        if span in self._open:
            self._gone.append(span)

    def sweep(self) -> None:
        """End the spans of runs that are gone."""
        while self._gone:
            span = self._gone.popleft()
            self._open.discard(span)
            span.leave(self._meters)

    def close(self) -> None:
        """End all that is open."""
        self.sweep()
        while self._open:
            self._open.pop().leave(self._meters)


_ALL: Final[WeakSet[OpenRuns]] = WeakSet()


@atexit.register
def _close_all() -> None:
    for runs in list(_ALL):
        runs.close()
