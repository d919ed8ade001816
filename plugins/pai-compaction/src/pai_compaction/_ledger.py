"""A history, measured as it grows: :class:`Ledger`."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from pai import Message
from pai_compaction._sizer import Sizer

__all__ = ("Ledger",)


class Ledger:
    """
    A history and its sizes.

    Sizes are kept as sums of all messages before, so that the size of any stretch is one
    subtraction, and a step costs what its new messages cost.

    Args:
        sizer: Measures messages.

    Attributes:
        messages: The history; never changed.
        generation: Counts the times that it was more than longer than before.
        full: Sum of the sizes of ``messages[:i]``, for each *i*.
        cleared: The same with outputs cleared.
        calls: How many calls with an output that can be cleared there are in ``messages[:i]``.
        turns: Where turns begin. A turn is a user's message and everything up to the next one; what
            comes before the first is one as well.
    """

    __slots__ = (
        "_at", "_open", "calls", "cleared", "full", "generation", "messages", "sizer", "turns",
    )  # fmt: skip

    def __init__(self, sizer: Sizer) -> None:
        self.sizer = sizer
        self.generation = 0
        self.messages: tuple[Message, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self.full = [0]
        self.cleared = [0]
        self.calls = [0]
        self.turns: list[int] = []
        self._open: list[int] = []
        self._at: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self.messages)

    def follow(self, messages: Sequence[Message]) -> None:
        """Take the history as it is now: usually what it was, and some more."""
        new, old = tuple(messages), self.messages
        # Messages are equal if they are the same object, so this is a walk over pointers.
        if new[: len(old)] == old:
            grown = new[len(old) :]
        else:
            self._clear()
            self.generation += 1
            grown = new
        self.messages = new
        for message in grown:
            self._add(message)

    def _add(self, message: Message) -> None:
        index = len(self.full) - 1
        size = self.sizer.of(message)
        self.full.append(self.full[-1] + size.full)
        self.cleared.append(self.cleared[-1] + size.cleared)
        self.calls.append(self.calls[-1] + size.calls)
        if index == 0 or message.role == "user":
            self.turns.append(index)
        if size.is_open:
            self._open.append(index)
        self._at[message.id] = index

    def new(self, messages: Sequence[Message]) -> int:
        """How many messages :meth:`follow` would have to take in."""
        return max(0, len(messages) - len(self.messages))

    def after(self, message_id: str | None) -> int:
        """The index behind a message; 0 if there is no such message."""
        return 0 if message_id is None else self._at.get(message_id, -1) + 1

    def cuts(self, begin: int, keep: int) -> list[int]:
        """
        Where the history can be cut: at the beginnings of turns, so that they stay whole.

        A turn with an open call stays, and so does all that follows it.

        Args:
            begin: Only cuts behind this index.
            keep: So many of the last turns stay.
        """
        turns = self.turns[: max(0, len(self.turns) - keep + 1)] if keep else self.turns
        last = len(self.messages)
        if self._open:
            last = self.turns[bisect_right(self.turns, self._open[0]) - 1]
        return [turn for turn in turns[bisect_right(turns, begin) :] if turn <= last]
