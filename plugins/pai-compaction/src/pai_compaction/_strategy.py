"""What makes a history shorter: :class:`Strategy`, and the :class:`Work` it is given."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import attrs

from pai import ModelDriver, ModelSettings
from pai_compaction._ledger import Ledger
from pai_compaction._marks import Marks
from pai_compaction._summary import Summary
from pai_compaction._view import view_size

__all__ = ("Prompt", "Strategy", "Work")


@attrs.frozen
class Prompt:
    """
    A request for a summary.

    Args:
        instructions: What the model shall do.
        text: What it shall do it with.
        model: Which one; ``None``: that of the step.
        settings: How it samples.
    """

    instructions: str
    text: str
    model: ModelDriver | str | None = None
    settings: ModelSettings = ModelSettings()


@attrs.define(eq=False)
class Work:
    """
    A history that is too long. Sizes are those of the ledger.

    Args:
        ledger: The history.
        marks: How far it is compacted; a strategy moves them forward.
        around: The size of the request's other things.
        goal: The size that the request should have.
        room: The size that a request for a summary may have.
        write: Asks the model for a summary.
        keep: Stores a summary.
    """

    ledger: Ledger
    marks: Marks
    around: int
    goal: int
    room: int
    write: Callable[[Prompt], Awaitable[str]]
    keep: Callable[[Summary], Awaitable[None]]

    def size(self, marks: Marks | None = None) -> int:
        """The size of the whole request, as the marks make it."""
        return self.around + view_size(self.ledger, self.marks if marks is None else marks)

    @property
    def done(self) -> bool:
        """The goal is reached."""
        return self.size() <= self.goal

    def least(self, places: Sequence[int], make: Callable[[int], Marks]) -> int | None:
        """
        The first of *places* that reaches the goal, else the last.

        Args:
            places: Indices, ascending: each makes the request shorter than the one before.
            make: The marks with that index.
        """
        if not places:
            return None
        found = bisect_left(places, True, key=lambda at: self.size(make(at)) <= self.goal)
        return places[min(found, len(places) - 1)]

    def move(self, marks: Marks) -> None:
        """Take these marks, if they make the request shorter."""
        if self.size(marks) < self.size():
            self.marks = marks


class Strategy(Protocol):
    """
    One way to make a history shorter. It moves the marks forward, and stops at the goal.

    It is called only while the request is too long. A :class:`~pai.ModelError` that it raises is
    told in the event; the strategies after it still work.
    """

    @property
    def name(self) -> str:
        """What it is called in events."""

    async def apply(self, work: Work) -> None:
        """Make it shorter: set ``work.marks``."""
