"""Markdown, by its headings."""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pai_rag._sections import Headings, Section

__all__ = ("markdown_sections",)

_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)")
_PARSER = MarkdownIt("commonmark")


def markdown_sections(text: str) -> list[Section]:
    """The sections of a Markdown text; the text itself stays as it is written."""
    text = _FRONT_MATTER.sub("", text, count=1)
    lines = text.split("\n")
    tokens = _PARSER.parse(text)
    headings = Headings()
    sections: list[Section] = []
    begin = 0
    for index, token in enumerate(tokens):
        if token.type != "heading_open" or token.level or token.map is None:
            continue
        sections.append(Section(headings.path, "\n".join(lines[begin : token.map[0]]).strip("\n")))
        begin = token.map[1]
        headings.enter(int(token.tag[1:]), _plain(tokens[index + 1]))
    sections.append(Section(headings.path, "\n".join(lines[begin:]).strip("\n")))
    return sections


def _plain(inline: Token) -> str:
    """A heading's words, without its marks."""
    words = [" " if "break" in child.type else child.content for child in inline.children or ()]
    return " ".join("".join(words).split())
