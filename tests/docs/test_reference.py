"""The reference names everything that is public, as it is."""

from __future__ import annotations

import re
from typing import get_args

import pai
from pai import errors, protocol

from .extensions import ROOT, load


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text("utf-8")


def test_the_table_of_events_has_every_type_and_no_other():
    table = re.findall(r"^\| (`.*?) \|", page("reference/events"), re.MULTILINE)
    documented = re.findall(r"`([\w-]+)`", " ".join(table))
    assert sorted(documented) == sorted(event.type for event in get_args(protocol.Event))


def test_every_public_name_is_in_the_reference():
    rows = re.findall(r"^\| `(\w+)[(`]", load("api").render_api(), re.MULTILINE)
    assert sorted([*rows, *errors.__all__]) == sorted(pai.__all__)


def test_the_map_names_every_room():
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    rooms = {
        path.name
        for path in (ROOT / "pai").iterdir()
        if not path.name.startswith("_") and path.name != "py.typed"
    }
    assert {
        room
        for room in rooms
        if f"`pai/{room}`" not in text and f"`pai/{room.removesuffix('.py')}`" not in text
    } == set()
