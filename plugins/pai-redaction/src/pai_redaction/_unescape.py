"""JSON's escapes in text that is no JSON."""

from __future__ import annotations

import re
from typing import Final

__all__ = ("unescaped",)

_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|([\"\\/bfnrt]))")
_SHORT: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


def unescaped(text: str) -> str:
    """The text with every escape that JSON has replaced by what it stands for."""
    return _ESCAPE.sub(_meant, text) if "\\" in text else text


def _meant(match: re.Match[str]) -> str:
    code, short = match.groups()
    return chr(int(code, 16)) if code else _SHORT.get(short, short)
