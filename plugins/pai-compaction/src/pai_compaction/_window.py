"""The strategy that always works: a sliding window of the last turns."""

from __future__ import annotations

from typing import ClassVar

import attrs

from pai_compaction._checks import at_least
from pai_compaction._marks import Marks
from pai_compaction._strategy import Work

__all__ = ("Window", "window")


@attrs.frozen
class Window:
    """See :func:`window`."""

    name: ClassVar[str] = "window"

    keep: int

    async def apply(self, work: Work) -> None:
        """Leave out as many turns as needed, the oldest first."""

        def make(at: int) -> Marks:
            return attrs.evolve(work.marks, dropped=at)

        at = work.least(work.ledger.cuts(work.marks.begin, self.keep), make)
        if at is not None:
            work.move(make(at))


def window(keep: int = 1) -> Window:
    """
    Leave out the oldest turns, as many as needed. A summary of what was before stays.

    Args:
        keep: At least so many of the last turns stay.

    Raises:
        DefinitionError: *keep* is no whole number from 1.
    """
    at_least("keep", keep, 1).raise_for(Window.name)
    return Window(keep)
