"""The table of rules: each with the tests that name it."""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ROOT = Path(__file__).parents[2]
RULE = re.compile(r"\b(?:A-[A-Z]+-\d+|R-\d+[a-z]?|O-\d+)\b")
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Rule(NamedTuple):
    """A row of ``rules.toml``."""

    id: str
    title: str
    part: str
    done: bool


def read_rules() -> list[Rule]:
    """Read the list of rules, in its order."""
    data = tomllib.loads((ROOT / "docs/rules.toml").read_text("utf-8"))
    return [
        Rule(name, rule["title"], rule["part"], data["parts"][rule["part"]]["done"])
        for name, rule in data["rules"].items()
    ]


def test_files() -> list[Path]:
    """Find every file of tests in the checkout, but not what tests the table itself."""
    globs = ("tests/**/test_*.py", "plugins/*/tests/**/test_*.py", "contrib/*/tests/**/test_*.py")
    found = {path for glob in globs for path in ROOT.glob(glob)}
    return sorted(path for path in found if path.name != "test_rules.py")


def find_proofs(files: Iterable[Path]) -> dict[str, list[str]]:
    """
    Find which tests name which rules.

    A rule counts for the test function that it stands in or right above, and elsewhere for the
    file.

    Returns:
        Rule id -> ``"tests/x/test_y.py::test_z"``, sorted.
    """
    proofs: dict[str, set[str]] = defaultdict(set)
    for path in files:
        text = path.read_text("utf-8")
        lines = text.split("\n")
        file = path.relative_to(ROOT).as_posix()
        places = [file] * len(lines)
        for test in ast.walk(ast.parse(text)):
            if isinstance(test, FUNCTIONS) and test.name.startswith("test_"):
                start = min(node.lineno for node in (test, *test.decorator_list)) - 1
                while start and lines[start - 1].lstrip().startswith("#"):
                    start -= 1
                for number in range(start, test.end_lineno or start):
                    places[number] = f"{file}::{test.name}"
        for place, line in zip(places, lines, strict=True):
            for name in RULE.findall(line):
                proofs[name].add(place)
    return {name: sorted(places) for name, places in proofs.items()}


def render_table() -> str:
    """Render the table in Markdown, one section a part."""
    data = tomllib.loads((ROOT / "docs/rules.toml").read_text("utf-8"))
    proofs = find_proofs(test_files())
    lines: list[str] = []
    for part, about in data["parts"].items():
        lines += [f"## {about['name']}", ""]
        if not about["done"]:
            lines += ["In the making: a rule without a test may not hold yet.", ""]
        lines += ["| rule | says | proven by |", "| --- | --- | --- |"]
        for rule in read_rules():
            if rule.part == part:
                tests = "<br>".join(f"`{place}`" for place in proofs.get(rule.id, ()))
                lines.append(f"| {rule.id} | {rule.title} | {tests} |")
        lines.append("")
    return "\n".join(lines)


def _insert(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == "rules":
        source[0] = source[0].replace("<!-- the table of rules -->", render_table())


def setup(app: Sphinx) -> dict[str, bool]:
    """Fill the page ``rules`` when it is read."""
    app.connect("source-read", _insert)
    return {"parallel_read_safe": True}
