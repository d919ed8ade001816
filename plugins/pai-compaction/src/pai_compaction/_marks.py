"""How far a history is compacted: :class:`Marks`."""

from __future__ import annotations

import attrs

from pai_compaction._ledger import Ledger
from pai_compaction._summary import Summary

__all__ = ("Marks", "Row")


@attrs.frozen
class Row:
    """Marks as they are stored: by the ids of messages."""

    cleared: str | None = None
    dropped: str | None = None
    summary: str | None = None


@attrs.frozen
class Marks:
    """
    How far a history is compacted.

    A strategy moves these forward, and can do no more: whatever it does, the result is made of
    whole turns and whole calls.

    Args:
        cleared: The messages before this index have no outputs of tools.
        dropped: The messages before this index are left out.
        summary: Stands in place of the messages before *summarised*.
        summary_size: Its size as a message.
    """

    cleared: int = 0
    dropped: int = 0
    summary: Summary | None = None
    summary_size: int = 0

    @property
    def summarised(self) -> int:
        """How many messages the summary stands for."""
        return 0 if self.summary is None else self.summary.messages

    @property
    def begin(self) -> int:
        """The first message that is still there."""
        return max(self.dropped, self.summarised)

    def to_row(self, ledger: Ledger) -> Row:
        """By ids, as they are stored."""
        messages = ledger.messages
        return Row(
            messages[self.cleared - 1].id if self.cleared else None,
            messages[self.dropped - 1].id if self.dropped else None,
            None if self.summary is None else self.summary.covers,
        )

    @classmethod
    def of(cls, row: Row, ledger: Ledger, summary: Summary | None) -> Marks:
        """
        By indices, in the history as it is now; what is not found there counts as not done.

        Args:
            row: The marks, by ids.
            ledger: The history.
            summary: The summary that fits.
        """
        size = 0
        if summary is not None:
            last = ledger.messages[summary.messages - 1]
            size = ledger.sizer.of(summary.as_message(last)).full
        dropped = ledger.after(row.dropped)
        if dropped not in ledger.cuts(0, 0):
            # The history is another one: it may have lost the turn that this was the end of.
            dropped = 0
        return cls(ledger.after(row.cleared), dropped, summary, size)
