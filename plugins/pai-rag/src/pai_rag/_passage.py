"""A passage: what a search finds."""

from __future__ import annotations

import attrs

__all__ = ("Passage",)


@attrs.frozen
class Passage:
    """
    A piece of a document.

    Args:
        document: The id of the record, or the file's path within its folder.
        number: Which passage of the document, from 0.
        title: The headings above it, outermost first: ``"Guide > Installing"``.
        text: Its text, in the form of its document; HTML is plain text by now.
        media_type: The document's: ``text/markdown``, ``text/html`` or ``text/plain``.
        folder: The name of the folder; ``""`` for records.
        url: Where the document is, if its record said so.
        score: How well it fits the query, above 0; comparable within one search only.
    """

    document: str
    number: int
    title: str
    text: str
    media_type: str
    folder: str = ""
    url: str | None = None
    score: float = 0.0

    @property
    def id(self) -> str:
        """The document and the number: ``"guide.md#3"``."""
        return f"{self.document}#{self.number}"
