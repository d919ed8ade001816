"""What the index knows of a document, and how that changes."""

from __future__ import annotations

import attrs

__all__ = ("Change", "Document", "Gone", "Known", "Seen", "Stamp")


@attrs.frozen
class Stamp:
    """
    When a file was read, and how it looked then.

    Args:
        size: In bytes.
        modified: Its modification time, in nanoseconds.
        read: When it was read, in nanoseconds.
    """

    size: int = 0
    modified: int = 0
    read: int = 0


@attrs.frozen
class Known:
    """
    What is stored of a document besides its passages.

    Args:
        digest: Of all that its passages are made from, and of how.
        stamp: Of its file.
    """

    digest: str
    stamp: Stamp = Stamp()


@attrs.frozen
class Document:
    """
    A document and its passages: takes the place of what was stored under its id.

    Args:
        id: Unique within partition and folder.
        known: What is kept to tell later whether it has changed.
        media_type: Its form.
        url: Where it is.
        passages: Title and text of each.
    """

    id: str
    known: Known
    media_type: str
    url: str | None
    passages: tuple[tuple[str, str], ...]


@attrs.frozen
class Seen:
    """A file that was read again and had not changed."""

    id: str
    stamp: Stamp


@attrs.frozen
class Gone:
    """A document that is no more."""

    id: str


Change = Document | Seen | Gone
