"""
Rules, compiled: where matches are, and where something stands that may still become one.

What a rule matches at a place is the longest text there that fits its pattern and is no longer
than its *max_length*. That depends on no more than so many characters and one more, never on how
the text came in pieces or on what was matched before: this is what makes a stream and its whole
redact alike.

Texts are UTF-8 here and places are bytes: RE2 works on those.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pai import DefinitionError, Fault
from pai_redaction._rule import Rule

__all__ = ("Found", "Scanner", "decoded", "encoded")

_MEMORY: Final = 64 << 20
"""Bytes that RE2 may use for the states of one pattern; it takes what it needs."""


def encoded(text: str) -> bytes:
    """The text as UTF-8; half a surrogate pair goes through as it is."""
    return text.encode("utf-8", "surrogatepass")


def decoded(data: bytes) -> str:
    """The text that :func:`encoded` made *data* of."""
    return data.decode("utf-8", "surrogatepass")


class Found(NamedTuple):
    """
    Something to hide.

    Args:
        start: Where it begins.
        end: Where it ends.
        rule: What it is.
    """

    start: int
    end: int
    rule: Rule


class Scanner:
    """
    Looks for what any of some rules matches.

    Args:
        rules: The rules; of two that match the same, the first is named.

    Raises:
        DefinitionError: RE2 can't compile a pattern.
    """

    __slots__ = ("_any", "_begun", "_each", "_short", "rules")

    def __init__(self, rules: Sequence[Rule]) -> None:
        self.rules: Final = tuple(rules)
        self._each: Final = tuple([_One(rule) for rule in self.rules])
        self._any: Final = _compiled(_either([rule.read.whole for rule in self.rules]))
        self._begun: Final = _compiled(_either([rule.read.begun for rule in self.rules]) + r"\z")
        # Up to here, what may still become a match is not too long for any rule.
        self._short: Final = min(
            [rule.max_length for rule in self.rules if rule.may_be_longer], default=1 << 62
        )

    def begun(self, data: bytes, start: int) -> int:
        """
        The first place, from *start* on, that more text may still have a say on.

        What stands there, up to the end, may become a match, or is one. Without such a place: the
        end.
        """
        end = len(data)
        match = self._begun.search(data, start)
        if match is None:
            return end
        place: int = match.start()
        if end - place <= self._short:
            return place
        return min([one.begun(data, place) for one in self._each])

    def matches(self, data: bytes, start: int, end: int) -> bool:
        """Whether there may be anything to find; cheap, and wrong only if it says so."""
        match = self._any.search(data, start)
        return match is not None and match.start() < end

    def find(self, data: bytes, start: int, end: int, covered: int) -> Iterator[Found]:
        """
        What begins from *start* on, before *end*, from left to right.

        Where several begin at one place the longest is told; what ends within an earlier one is
        left out.

        Args:
            data: The text. What begins before *end* is not cut off by the end of *data*.
            start: Where to begin.
            end: Where to stop.
            covered: What ends here, or before, is of no interest.
        """
        search = self._any.search
        while (match := search(data, start)) is not None:
            place, furthest = match.span()
            if place >= end:
                return
            start = place + 1
            if furthest <= covered:
                continue
            longest: Found | None = None
            for one in self._each:
                last = one.match(data, place)
                if last > covered and (longest is None or last > longest.end):
                    longest = Found(place, last, one.rule)
            if longest is not None:
                covered = longest.end
                yield longest


class _One:
    """A rule, compiled by itself."""

    __slots__ = ("_begun", "_limit", "_whole", "rule")

    def __init__(self, rule: Rule) -> None:
        self.rule: Final = rule
        self._whole: Final = _compiled(rule.read.whole, rule)
        self._begun: Final = _compiled(rule.read.begun + r"\z", rule)
        self._limit: Final = rule.max_length if rule.may_be_longer else None

    def begun(self, data: bytes, start: int) -> int:
        """As :meth:`Scanner.begun`; what is too long already can't become a match."""
        if self._limit is not None:
            start = max(start, _back(data, self._limit))
        match = self._begun.search(data, start)
        return len(data) if match is None else match.start()

    def match(self, data: bytes, place: int) -> int:
        """Where the match at *place* ends; -1 if there is none."""
        limit = len(data) if self._limit is None else _on(data, place, self._limit)
        match = self._whole.match(data, place, limit)
        if match is None:
            return -1
        end: int = match.end()
        if self.rule.check is None:
            return end
        text = decoded(data[place:end])
        counts = self.rule.check(text)
        if counts is True:
            return end
        return place + len(encoded(text[: int(counts)])) if counts else -1


def _either(patterns: Sequence[str]) -> str:
    return f"(?:{'|'.join(patterns)})" if patterns else r"[^\x00-\x{10FFFF}]"


def _compiled(pattern: str, rule: Rule | None = None) -> Any:
    """
    The pattern for RE2: the longest match counts.

    Raises:
        DefinitionError: RE2 does not take it.
    """
    import re2  # type: ignore[import-untyped]  # has no types

    options = re2.Options()
    options.longest_match = True
    options.never_capture = True
    options.log_errors = False
    options.max_mem = _MEMORY
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0] if error.args else b""
        message = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        at = "rules" if rule is None else f"rules.{rule.name}.pattern"
        raise DefinitionError([Fault(at, f"RE2: {message}")], subject="redaction") from error


def _on(data: bytes, place: int, characters: int) -> int:
    """The place so many characters after *place*, or the end."""
    end = place + characters
    if end >= len(data) or data[place:end].isascii():
        return min(end, len(data))
    end = place
    while end < len(data):
        if data[end] & 0xC0 != 0x80:  # the first byte of a character
            if characters == 0:
                break
            characters -= 1
        end += 1
    return end


def _back(data: bytes, characters: int) -> int:
    """The place so many characters before the end, or the beginning."""
    place = max(0, len(data) - characters)
    if data[place:].isascii():
        return place
    place = len(data)
    while place > 0 and characters > 0:
        place -= 1
        if data[place] & 0xC0 != 0x80:
            characters -= 1
    return place
