"""
The cards of the hooks on the page ``plugins/hooks``.

A heading and the card below it stand on the page, as ``pai.hookspecs`` has them; a test compares
them, and ``python -m _ext.hooks`` in this folder's parent writes them anew. What follows a card up
to the next heading, its example, is written by hand.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from pai.hookspecs import Hooks

from .markup import to_markdown

PAGE = Path(__file__).parents[1] / "plugins" / "hooks.md"

HOOKS = tuple([name for name, item in vars(Hooks).items() if inspect.isfunction(item)])
"""Every hook, in the order of the source."""

SAID = frozenset({"This plugin's dict.", "This plugin's rows."})
"""What the page says once of all of them."""

CARD = re.compile(
    r"^### `(?P<hook>\w+)\((?P<arguments>[^\n]*)\)`\n(?P<card>.*?)(?=^```|^#|\Z)",
    re.MULTILINE | re.DOTALL,
)
ARGUMENT = re.compile(r"^    (\w+): (.+(?:\n     .+)*)", re.MULTILINE)
FIELD = re.compile(r"^(?P<label>[A-Z][\w ]*):\s+(?P<text>.+)$")


def render_card(name: str) -> str:
    """Render a hook: its exact signature, what it is for, its fields and arguments as a table."""
    signature = inspect.signature(getattr(Hooks, name))
    parameters = {key: item for key, item in signature.parameters.items() if key != "self"}
    card = inspect.getdoc(getattr(Hooks, name)) or ""
    head, _, arguments = card.partition("\nArgs:\n")
    summary, _, body = head.partition("\n\n")
    lines = [f"### `{name}({', '.join(parameters)})`", "", to_markdown(summary), ""]
    rows = list(_fields(body))
    lines += [f"{to_markdown(text)}\n" for label, text in rows if not label]
    lines += ["| | |", "| --- | --- |"]
    for label, text in rows:
        if label == "Returns":
            lines.append(f"| **Type** | `{type_of(signature.return_annotation)}` |")
        if label:
            lines.append(f"| **{label}** | {to_markdown(text)} |")
    lines += [
        f"| `{key}: {type_of(parameters[key].annotation)}` | {to_markdown(text)} |"
        for key, text in ARGUMENT.findall(arguments)
        if text not in SAID
    ]
    return "\n".join([*lines, ""])


def type_of(annotation: str) -> str:
    """Render an annotation for code in a table."""
    # A bar would end the cell of the table, in code too.
    return annotation.replace("[Any]", "").replace("[ContextT]", "").replace("|", "\\|")


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


def refresh(page: str) -> str:
    """Write all cards of a page anew; a hook that is no more keeps what it has."""
    return CARD.sub(
        lambda match: (
            f"{render_card(match['hook'])}\n" if match["hook"] in HOOKS else match.group()
        ),
        page,
    )


if __name__ == "__main__":
    PAGE.write_text(refresh(PAGE.read_text("utf-8")), "utf-8")
