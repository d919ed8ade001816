"""The history as the model sees it: :class:`View`."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from pai import Message
from pai_compaction._ledger import Ledger
from pai_compaction._marks import Marks
from pai_compaction._summary import Summary

__all__ = ("View", "view_length", "view_size")


def view_size(ledger: Ledger, marks: Marks) -> int:
    """The size of the history as the marks leave it."""
    begin, end = marks.begin, len(ledger)
    middle = max(begin, marks.cleared)
    return (
        marks.summary_size
        + (ledger.cleared[middle] - ledger.cleared[begin])
        + (ledger.full[end] - ledger.full[middle])
    )


def view_length(ledger: Ledger, marks: Marks) -> int:
    """How many messages the marks leave."""
    return len(ledger) - marks.begin + (marks.summary is not None)


class View:
    """
    Makes the messages that the model sees.

    What it makes is kept, so that drivers encode a message once.
    """

    __slots__ = ("_begin", "_cleared", "_made_of", "_summary")

    def __init__(self) -> None:
        self._made_of: tuple[Marks, int] | None = None
        self._begin: tuple[Message, ...] = ()
        self._summary: Message | None = None
        self._cleared: WeakKeyDictionary[Message, Message] = WeakKeyDictionary()

    def messages(self, ledger: Ledger, marks: Marks) -> tuple[Message, ...]:
        """The history as the marks leave it."""
        if self._made_of != (marks, ledger.generation):
            self._begin = self._as_marked(ledger, marks)
            self._made_of = marks, ledger.generation
        return self._begin + ledger.messages[max(marks.begin, marks.cleared) :]

    def _as_marked(self, ledger: Ledger, marks: Marks) -> tuple[Message, ...]:
        """As far as the marks change it."""
        head: list[Message] = []
        if marks.summary is not None:
            head.append(self._as_message(ledger, marks.summary))
        changed = ledger.messages[marks.begin : marks.cleared]
        return (*head, *[self._clear(ledger, message) for message in changed])

    def _as_message(self, ledger: Ledger, summary: Summary) -> Message:
        made = summary.as_message(ledger.messages[summary.messages - 1])
        known = self._summary
        if known is None or (known.id, known.parts) != (made.id, made.parts):
            known = self._summary = made
        return known

    def _clear(self, ledger: Ledger, message: Message) -> Message:
        known = self._cleared.get(message)
        if known is None:
            sizer = ledger.sizer
            known = self._cleared[message] = sizer.clearing.clear(message, sizer.output)
        return known
