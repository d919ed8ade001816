"""The table of options: each by the name others have for it, with the tests that prove it."""

from __future__ import annotations

import tomllib
from typing import TYPE_CHECKING, NamedTuple

from .rules import ROOT, find_proofs, test_files

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PLACES = {"F": "agent", "O": "`RunOptions`", "P": "patches", "C": "the call"}


class Option(NamedTuple):
    """A row of ``options.toml``."""

    name: str
    ours: str
    where: str
    rule: str


def read_options() -> list[Option]:
    """Read the rows, in their order."""
    data = tomllib.loads((ROOT / "docs/options.toml").read_text("utf-8"))
    return [
        Option(name, row["ours"], row["where"], row["rule"])
        for name, row in data["options"].items()
    ]


def render_options() -> str:
    """Render the table in Markdown."""
    proofs = find_proofs(test_files())
    lines = [
        "| TextOptions | here | given to | rule | proven by |",
        "| --- | --- | --- | --- | --- |",
    ]
    for option in read_options():
        places = ", ".join(PLACES[letter] for letter in option.where)
        tests = "<br>".join(f"`{place}`" for place in proofs.get(option.rule, ()))
        lines.append(f"| {option.name} | {option.ours} | {places} | {option.rule} | {tests} |")
    return "\n".join(lines)


def _insert(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == "concepts/run-options":
        source[0] = source[0].replace("<!-- the table of options -->", render_options())


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page ``concepts/run-options`` when it is read."""
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True}
