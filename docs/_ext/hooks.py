"""The reference of hooks, rendered from the cards in ``pai.hookspecs``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from pai.hookspecs import Hooks

from .markup import to_markdown

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PHASE = re.compile(r"^    # -+ (?P<phase>.+)$|^    def (?P<hook>\w+)\(", re.MULTILINE)
ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n     .+)*)", re.MULTILINE)
FIELD = re.compile(r"^(?P<label>[A-Z][\w ]*):\s+(?P<text>.+)$")


def render_hooks() -> str:
    """Render every hook in Markdown, in the order and under the phases of the source."""
    lines: list[str] = []
    for match in PHASE.finditer(inspect.getsource(Hooks)):
        if match["phase"]:
            phase = match["phase"]
            lines += [f"## {phase[0].upper()}{phase[1:]}", ""]
        else:
            lines += render_hook(match["hook"])
    return "\n".join(lines)


def render_hook(name: str) -> list[str]:
    """Render one card: its exact signature, what it is for, and its fields as a table."""
    hook = getattr(Hooks, name)
    arguments = [argument for argument in inspect.signature(hook).parameters if argument != "self"]
    card = inspect.getdoc(hook) or ""
    head, _, arguments_text = card.partition("\nArgs:\n")
    summary, _, body = head.partition("\n\n")
    lines = [f"### `{name}({', '.join(arguments)})`", "", to_markdown(summary), ""]
    rows = list(_fields(body))
    lines += [f"{to_markdown(text)}\n" for label, text in rows if not label]
    lines += ["| | |", "| --- | --- |"]
    lines += [f"| **{label}** | {to_markdown(text)} |" for label, text in rows if label]
    lines += [
        f"| `{argument}` | {to_markdown(text)} |"
        for argument, text in ARGUMENT.findall(arguments_text)
    ]
    return [*lines, ""]


def _fields(body: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of a card, and its loose paragraphs with an empty label."""
    label, text = "", ""
    for line in [*body.splitlines(), ""]:
        field = FIELD.match(line)
        if field or not line.strip():
            if text:
                yield label, text
            label, text = (field["label"], field["text"]) if field else ("", "")
        else:
            text = f"{text} {line.strip()}".strip()


def _insert(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == "reference/hooks":
        source[0] = source[0].replace("<!-- the cards of the hooks -->", render_hooks())


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page ``reference/hooks`` when it is read."""
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True}
