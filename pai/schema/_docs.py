"""Docstrings: the words about the whole, and about each parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import NamedTuple

__all__ = ("Docs", "read_docs")

_SECTIONS = re.compile(
    r"^\s*(Args|Arguments|Parameters|Params|Attributes|Returns|Raises|Yields|Keyword Args"
    r"|Example|Examples|Note|Notes|See Also)\b\s*:?\s*$|^\s*[:@]\w+",
    re.MULTILINE,
)


class Docs(NamedTuple):
    """What a docstring says: about the whole, and by parameter."""

    text: str
    fields: Mapping[str, str]


def read_docs(docstring: str | None) -> Docs:
    """
    *docstring* taken apart; Google, NumPy, reST and epydoc styles are understood.

    The text keeps its paragraphs; sections about parameters, results and errors are not part of it.
    """
    if not docstring or not docstring.strip():
        return Docs("", {})
    text = inspect.cleandoc(docstring)
    if not _SECTIONS.search(text):
        return Docs(text, {})
    import docstring_parser

    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return Docs(text, {})
    words = [part for part in (parsed.short_description, parsed.long_description) if part]
    fields = {
        name.lstrip("*"): " ".join(param.description.split())
        for param in parsed.params
        if param.description
        for name in param.arg_name.split(", ")
    }
    return Docs("\n\n".join(words), fields)
