"""The strategy that costs nothing: old outputs of tools go."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection
from typing import ClassVar

import attrs

from pai_compaction._checks import at_least, names, text
from pai_compaction._clearing import PLACEHOLDER, Clearing
from pai_compaction._marks import Marks
from pai_compaction._strategy import Work

__all__ = ("ClearToolOutputs", "clear_tool_outputs")


@attrs.frozen
class ClearToolOutputs:
    """See :func:`clear_tool_outputs`."""

    name: ClassVar[str] = "clear_tool_outputs"

    keep: int
    clearing: Clearing

    async def apply(self, work: Work) -> None:
        """Clear as many as needed, the oldest first."""
        calls = work.ledger.calls
        last = bisect_right(calls, calls[-1] - self.keep) - 1

        def make(at: int) -> Marks:
            return attrs.evolve(work.marks, cleared=at)

        at = work.least(range(work.marks.cleared + 1, last + 1), make)
        if at is not None:
            work.move(make(at))


def clear_tool_outputs(
    keep: int = 3, *, exclude: Collection[str] = (), placeholder: str = PLACEHOLDER
) -> ClearToolOutputs:
    """
    Clear old outputs of tools, as many as needed: the model sees a short text in their place.

    Args:
        keep: At least so many of the last outputs stay.
        exclude: Names of tools whose outputs stay.
        placeholder: The short text.

    Raises:
        DefinitionError: *keep* is below 1, or something is of another type.
    """
    faults = at_least("keep", keep, 1)
    faults += names("exclude", exclude)
    faults += text("placeholder", placeholder)
    faults.raise_for(ClearToolOutputs.name)
    return ClearToolOutputs(keep, Clearing(placeholder, frozenset(exclude)))
