"""Python's regular expressions in the dialect of JSON Schema."""

from __future__ import annotations

import re

__all__ = ("json_pattern",)

_TOKEN = re.compile(
    r"""
      \\(?P<escape>.)                 # one escaped character
    | \(\?P<(?P<group>\w+)>           # a named group …
    | \(\?P=(?P<again>\w+)\)          # … and a mention of it
    | (?P<known>\(\?(?:[:=!]|<[=!]))  # what both dialects write alike
    | (?P<other>\(\?|[*+?}]\+)        # what only Python has: flags, comments, possessive counts
    """,
    re.VERBOSE | re.DOTALL,
)

_ONLY_PYTHON = frozenset("N")
_RENAMED = {"A": "^", "Z": "$"}


class _Untranslatable(Exception):
    pass


def _token(match: re.Match[str]) -> str:
    if match["other"]:
        raise _Untranslatable
    if match["group"]:
        return f"(?<{match['group']}>"
    if match["again"]:
        return rf"\k<{match['again']}>"
    if match["escape"] in _ONLY_PYTHON:
        raise _Untranslatable
    if match["escape"] in _RENAMED:
        return _RENAMED[match["escape"]]
    return match[0]


def json_pattern(pattern: re.Pattern[str], how: str) -> str | None:
    """
    *pattern* for the keyword ``pattern``, or None where the dialects differ too much.

    A schema without the keyword allows more than the parser does, and the parser decides.

    Args:
        pattern: The compiled expression; with flags such as IGNORECASE it has no equal.
        how: ``search``, ``match`` or ``fullmatch``; JSON Schema only knows the first.
    """
    if pattern.flags & ~(re.UNICODE | re.ASCII):
        return None
    try:
        text = _TOKEN.sub(_token, pattern.pattern)
    except _Untranslatable:
        return None
    if how == "fullmatch":
        return f"^(?:{text})$"
    return f"^(?:{text})" if how == "match" else text
