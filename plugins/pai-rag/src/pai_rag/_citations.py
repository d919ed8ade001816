"""Which passages an answer cites."""

from __future__ import annotations

import re

__all__ = ("cited_numbers",)

_CODE = re.compile(r"(`{3,}|~{3,}).*?(?:\1|\Z)|`[^`\n]*`", re.DOTALL)
_MARK = re.compile(r"\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]")


def cited_numbers(text: str, given: int) -> tuple[int, ...]:
    """
    The numbers from 1 to *given* that *text* cites, like ``[1]`` or ``[1, 3]``, as they come.

    What stands in Markdown code is no citation: ``items[1]`` is an index there.
    """
    numbers: dict[int, None] = {}
    for mark in _MARK.findall(_CODE.sub(" ", text)):
        for digits in re.findall(r"\d+", mark):
            if 1 <= int(digits) <= given:
                numbers[int(digits)] = None
    return tuple(numbers)
