"""A rule: what is to be hidden, and how long it may be."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import attrs

from pai import DefinitionError, Fault
from pai_redaction._pattern import Pattern, read_pattern

__all__ = ("Check", "Rule")

Check = Callable[[str], bool | int]
"""Looks at what a pattern matched; see :class:`Rule`."""

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_LONGEST: Final = 1 << 20


@attrs.frozen
class Rule:
    r"""
    Something to hide.

    Args:
        name: What the mark in its place says: ``[name]``.
        pattern: A regular expression in Python's syntax, without lookaround, backreferences, ``^``
            and ``$``: it is matched in linear time. Classes such as ``\w``, and ``\b``, mean
            ASCII. Of all matches at one place the longest counts, also for lazy repeats.
        max_length: Characters. No match is longer, and of a stream no more than this is held back
            for the rule; of what would be a longer match its first *max_length* characters are
            taken as far as they match by themselves.
        check: Looks at what the pattern matched and says whether it counts, or how many of its
            first characters do. It must give the same answer each time.

    Raises:
        DefinitionError: Something of it does not work; all faults at once.
    """

    name: str
    pattern: str
    max_length: int
    check: Check | None = attrs.field(default=None, kw_only=True)
    read: Pattern = attrs.field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        faults: list[Fault] = []
        if not _is_text(self.name) or _NAME.fullmatch(self.name) is None:
            faults.append(Fault("name", "expected letters, digits, _ and -, a letter first"))
        if type(self.max_length) is not int or not 0 < self.max_length <= _LONGEST:
            faults.append(Fault("max_length", f"expected a whole number from 1 to {_LONGEST}"))
        if not (self.check is None or _can_be_called(self.check)):
            faults.append(Fault("check", "expected a function"))
        read = None
        try:
            read = read_pattern(self.pattern)
            if not faults and read.shortest > self.max_length:
                faults.append(Fault("max_length", f"no match is shorter than {read.shortest}"))
        except ValueError as error:
            faults.append(Fault("pattern", str(error)))
        if faults or read is None:
            raise DefinitionError(faults, subject=f"redaction rule {self.name!r}")
        object.__setattr__(self, "read", read)

    @property
    def may_be_longer(self) -> bool:
        """Whether the pattern alone would match more than *max_length* characters."""
        return self.read.width is None or self.read.width > self.max_length


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _can_be_called(value: object) -> bool:
    return callable(value)
