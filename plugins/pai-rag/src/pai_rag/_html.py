"""HTML, by its headings."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from pai_rag._sections import Headings, Section

__all__ = ("html_sections",)

_UNSEEN = frozenset({"iframe", "nav", "noscript", "object", "script", "style", "svg", "template"})
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body br caption dd details dialog div dl dt fieldset"
        " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html li main ol option p pre"
        " section summary table tbody tfoot thead title tr ul",
    )
)
_HEADING = re.compile(r"h[1-6]")


def html_sections(text: str) -> list[Section]:
    """The sections of an HTML page, as plain text; its title stands above all of them."""
    reader = _Reader()
    # The parser refuses marked sections, which browsers take for comments.
    reader.feed(text.replace("<![", "<! ["))
    reader.close()
    reader.end()
    return reader.sections


class _Reader(HTMLParser):
    """Gathers text, and begins a section at each heading."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.sections: list[Section] = []
        self._headings = Headings()
        self._text: list[str] = []
        self._heading: str | None = None
        self._unseen: list[str] = []
        self._pre = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _UNSEEN:
            self._unseen.append(tag)
        if self._unseen:
            return
        if tag == "title" or _HEADING.fullmatch(tag):
            self.end()
            self._heading = tag
        elif tag in _BLOCKS:
            self._text.append("\n\n" if tag == "p" else "\n")
        if tag == "pre":
            self._pre += 1
        elif tag == "li":
            self._text.append("- ")
        elif tag in {"td", "th"}:
            self._text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        if self._unseen:
            if tag in self._unseen:
                # What was left open within it ends with it.
                del self._unseen[self._unseen.index(tag) :]
            return
        if tag == self._heading:
            level = 0 if tag == "title" else int(tag[1])
            self._heading = None
            self._headings.enter(level, " ".join(self._read().split()))
        elif tag in _BLOCKS:
            self._text.append("\n")
        if tag == "pre":
            self._pre = max(0, self._pre - 1)

    def handle_data(self, data: str) -> None:
        if not self._unseen:
            self._text.append(data if self._pre else re.sub(r"\s+", " ", data))

    def end(self) -> None:
        """End the section that is being read."""
        self._heading = None
        self.sections.append(Section(self._headings.path, self._read()))

    def _read(self) -> str:
        text = "".join(self._text)
        self._text.clear()
        text = re.sub(r"[ \t]+\n", "\n", text)
        return re.sub(r"\n{3,}", "\n\n", text).strip("\n").rstrip()
