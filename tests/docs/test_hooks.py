"""The plugin author's book has every hook, value and check as they are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pluggy
import pytest

from pai import hookspecs
from pai.testing import PLUGIN_CHECKS, check_plugin

from .extensions import ROOT, load

BOOK = ROOT / "docs" / "plugins"
HOOKS = load("hooks")
ANEW = "run `python -m _ext.{}` in docs/ and look at what changed"


def page(name: str) -> str:
    return (BOOK / f"{name}.md").read_text("utf-8")


def test_every_hook_has_a_heading_with_its_exact_signature():
    manager = pluggy.PluginManager("pai")
    manager.add_hookspecs(hookspecs.Hooks)
    live = {
        name: [key for key in inspect.signature(caller.spec.function).parameters if key != "self"]
        for name, caller in vars(manager.hook).items()
        if caller.spec
    }
    headings = re.findall(r"^### `(\w+)\((.*)\)`$", page("hooks"), re.MULTILINE)
    assert {name: arguments.split(", ") for name, arguments in headings} == live
    assert [name for name, _ in headings] == list(HOOKS.HOOKS)


@pytest.mark.parametrize("hook", HOOKS.HOOKS)
def test_every_hook_has_its_card_and_an_example(hook):
    text = page("hooks")
    start = text.index(f"### `{hook}(")
    section = text[start:].split("\n### ")[0]
    card, fence, example = section.partition("```python\n")
    assert card.rstrip() == HOOKS.render_card(hook).rstrip(), ANEW.format("hooks")
    assert fence
    assert "@hookimpl" in example
    assert f"def {hook}(" in example


def test_cards_are_written_anew_and_nothing_else():
    text = page("hooks")
    assert HOOKS.refresh(text) == text
    stale = text.replace("Decide how the run starts.", "Stale.").replace("| **Order** |", "| Old |")
    assert HOOKS.refresh(stale) == text
    gone = "### `gone(x)`\n\nNo more.\n"
    assert HOOKS.refresh(gone) == gone


def test_the_page_of_values_is_as_it_is_rendered():
    assert page("values") == load("values").render_values(), ANEW.format("values")


def test_every_check_and_every_argument_of_the_kit_is_explained():
    text = page("testing")
    headings = re.findall(r"^### `(\w+)`$", text, re.MULTILINE)
    assert headings == [check.__name__ for check in PLUGIN_CHECKS]
    table = re.findall(r"^\| (`.*?) \|", text.partition("| argument | says |")[2], re.MULTILINE)
    told = re.findall(r"`(\w+)(?:=([^`]*))?`", " ".join(table))
    live = {
        name: "" if item.default is item.empty else repr(item.default)
        for name, item in inspect.signature(check_plugin).parameters.items()
    }
    assert dict(told) == live


def test_where_to_read_is_a_page():
    """What the kit's failures point at."""
    source = Path(inspect.getsourcefile(check_plugin) or "").with_name("_plugin_case.py")
    assert "see plugins/testing in the documentation" in source.read_text("utf-8")
    assert (BOOK / "testing.md").is_file()


def test_the_book_has_all_its_pages():
    listed = re.findall(r"\{doc\}`([\w-]+)`", page("index"))
    assert listed == [
        "installing", "writing", "hooks", "values", "drivers", "testing", "publishing",
    ]  # fmt: skip
    index = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert [name for name in listed if f"plugins/{name}\n" not in index] == []
