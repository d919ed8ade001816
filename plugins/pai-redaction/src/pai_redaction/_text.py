"""A text that comes in pieces, and leaves without what is to be hidden."""

from __future__ import annotations

from typing import Final

from pai_redaction._marks import Mark, Marks
from pai_redaction._scanner import Scanner, decoded, encoded

__all__ = ("TextInPieces", "whole_text")

_BEFORE: Final = b" "
"""What stands before a text's beginning, as far as rules can tell."""
_BLOCK: Final = 4096
"""Characters of a long text that are looked at in one go, so that none is looked at too often."""


class TextInPieces:
    """
    Hides in a text that comes in pieces; what leaves is the same however it is cut.

    What is hidden is everything that any rule matches anywhere: where matches overlap they are
    hidden as one, under the name of the leftmost, and of the longest of those. A place is settled
    as soon as no more text could change what begins there, and then never looked at again; what
    is not settled is held back.

    Attributes:
        changed: Something was hidden.
    """

    __slots__ = ("_covered", "_mark", "_marks", "_scanner", "_tail", "changed")

    def __init__(self, scanner: Scanner, marks: Marks) -> None:
        self._scanner: Final = scanner
        self._marks: Final = marks
        # The byte before what is held back, and that.
        self._tail = _BEFORE
        # What is being hidden, and up to which place of the tail.
        self._mark: Mark | None = None
        self._covered = 0
        self.changed = False

    def feed(self, text: str) -> str:
        """Take in a piece; returns what can leave."""
        if len(text) > _BLOCK:
            blocks = range(0, len(text), _BLOCK)
            return "".join([self.feed(text[at : at + _BLOCK]) for at in blocks])
        data = self._tail + encoded(text)
        return self._settle(data, self._scanner.begun(data, 1))

    def flush(self) -> str:
        """The text is whole; returns what was held back. What comes now is another text."""
        data = self._tail
        if len(data) == 1 and self._mark is None:
            self._tail = _BEFORE
            return ""
        text = self._settle(data, len(data))
        self._tail = _BEFORE
        return text

    def _settle(self, data: bytes, end: int) -> str:
        """Let go of what is before *end*: no match that begins there depends on more text."""
        if self._mark is None and not self._scanner.matches(data, 1, end):
            self._tail = data[end - 1 :]
            return decoded(data[1:end])
        out: list[bytes] = []
        mark, covered = self._mark, self._covered
        at = 1
        for found in self._scanner.find(data, 1, end, covered):
            if mark is None or found.start >= covered:
                if mark is not None:
                    mark.add(data[at:covered])
                    out.append(mark.made())
                    at = covered
                out.append(data[at : found.start])
                at = found.start
                mark = self._marks.begin(found.rule.name)
                self.changed = True
            covered = found.end
        if mark is not None and covered <= end:
            mark.add(data[at:covered])
            out.append(mark.made())
            at, mark, covered = covered, None, 0
        if mark is None:
            out.append(data[at:end])
        else:
            mark.add(data[at:end])
            covered -= end - 1
        self._mark, self._covered = mark, covered
        self._tail = data[end - 1 :]
        return decoded(b"".join(out))


def whole_text(scanner: Scanner, marks: Marks, text: str) -> str:
    """The text without what is to be hidden; the same object if there was nothing."""
    if not text:
        return text
    pieces = TextInPieces(scanner, marks)
    if len(text) <= _BLOCK:
        # All of it is there: nothing has to be held back.
        data = _BEFORE + encoded(text)
        out = pieces._settle(data, len(data))  # noqa: SLF001
    else:
        out = pieces.feed(text) + pieces.flush()
    return out if pieces.changed else text
