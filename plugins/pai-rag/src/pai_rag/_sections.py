"""Documents as sections: text under headings."""

from __future__ import annotations

import attrs

__all__ = ("MEDIA_TYPES", "Headings", "Section", "sections_of")

MEDIA_TYPES = ("text/markdown", "text/html", "text/plain")


@attrs.frozen
class Section:
    """
    A stretch of text.

    Args:
        headings: Those above it, outermost first.
        text: What stands between them and the next heading.
    """

    headings: tuple[str, ...]
    text: str


def sections_of(text: str, media_type: str) -> list[Section]:
    """The sections of a document of one of :data:`MEDIA_TYPES`; those without text are left out."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x00", "\ufffd")
    if media_type == "text/markdown":
        from pai_rag._markdown import markdown_sections

        sections = markdown_sections(text)
    elif media_type == "text/html":
        from pai_rag._html import html_sections

        sections = html_sections(text)
    else:
        sections = [Section((), text)]
    return _told(sections)


def _told(sections: list[Section]) -> list[Section]:
    """Those that say something: of a heading with nothing below it, the heading."""
    told = []
    for index, section in enumerate(sections):
        if section.text.strip():
            told.append(section)
        elif section.headings:
            below = sections[index + 1].headings if index + 1 < len(sections) else ()
            if below[: len(section.headings)] != section.headings:
                told.append(Section(section.headings, section.headings[-1]))
    return told


class Headings:
    """The headings above the place one has come to."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, level: int, text: str) -> None:
        """Go below a heading: it ends those of its own and of deeper levels."""
        while self._open and self._open[-1][0] >= level:
            self._open.pop()
        if text:
            self._open.append((level, text))

    @property
    def path(self) -> tuple[str, ...]:
        """Outermost first."""
        return tuple([text for _, text in self._open])
