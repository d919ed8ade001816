"""Cutting a document into passages."""

from __future__ import annotations

from collections.abc import Iterator

from pai_rag._sections import sections_of

__all__ = ("VERSION", "cut", "passages_of")

VERSION = 1
"""Of what this module does: what was cut by another version is cut anew."""

_BREAKS = ("\n\n", "\n", " ")


def passages_of(
    text: str, media_type: str, *, size: int, title: str | None = None
) -> Iterator[tuple[str, str]]:
    """
    The passages of a document, each with its title: the headings above it.

    Args:
        text: The document.
        media_type: Its form.
        size: Characters a passage has at most.
        title: The document's own title, which stands above all headings.
    """
    for section in sections_of(text, media_type):
        headings = section.headings
        if title and (not headings or headings[0] != title):
            headings = (title, *headings)
        for piece in cut(section.text, size):
            yield " > ".join(headings), piece


def cut(text: str, size: int) -> Iterator[str]:
    """
    Pieces of at most *size* characters, none of them blank, that say together all that *text* says.

    They end at a blank line where there is one in the last two thirds, else at the end of a line,
    else at a space, else anywhere.
    """
    text = text.strip("\n").rstrip()
    while len(text) > size:
        at = next(
            (at for mark in _BREAKS if (at := text.rfind(mark, size // 3, size + 1)) > 0), size
        )
        piece = text[:at].strip("\n").rstrip()
        if piece.strip():
            yield piece
        text = text[at:].lstrip(" ") if text[at] == " " else text[at:].lstrip("\n")
    if text.strip():
        yield text
