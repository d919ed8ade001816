"""JSON that is still being written (O-11)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pai.schema import PartialJson

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
roots = st.lists(values, max_size=4) | st.dictionaries(st.text(), values, max_size=4)
layouts = st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}])


def is_prefix(early: Any, late: Any) -> bool:
    """Whether *late* is what *early* can become."""
    if type(early) is not type(late):
        return False
    if isinstance(early, str):
        return bool(late.startswith(early))
    if isinstance(early, list):
        head, last = early[:-1], early[-1:]
        return (
            len(early) <= len(late)
            and head == late[: len(head)]
            and all(map(is_prefix, last, late[len(head) :]))
        )
    if isinstance(early, dict):
        keys = list(early)
        head = keys[:-1]
        return (
            keys == list(late)[: len(keys)]
            and all(early[key] == late[key] for key in head)
            and all(is_prefix(early[key], late[key]) for key in keys[-1:])
        )
    return bool(early == late)


def grown(text: str, cuts: list[int], schema: Any = None) -> list[Any]:
    """The values after each piece of a text."""
    partial = PartialJson(schema)
    found = []
    for begin, end in zip([0, *cuts], [*cuts, len(text)], strict=True):
        partial.feed(text[begin:end])
        assert not partial.broken
        if (value := partial.value()) is not None:
            found.append(value)
    assert partial.done
    return found


@given(roots, layouts, st.data())
def test_each_value_is_a_prefix_of_the_next(value: Any, layout: Any, data: st.DataObject) -> None:
    text = json.dumps(value, **layout)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    found = grown(text, cuts)
    assert found[-1] == value
    assert all(map(is_prefix, found, found[1:]))


@given(roots, layouts)
def test_character_by_character(value: Any, layout: Any) -> None:
    text = json.dumps(value, **layout)
    found = grown(text, list(range(1, len(text))))
    assert found[-1] == value
    assert all(map(is_prefix, found, found[1:]))
    assert found[0] in ({}, [])


@given(st.text(), st.text())
def test_no_text_is_too_bad(first: str, second: str) -> None:
    partial = PartialJson()
    for piece in (first, second):
        partial.feed(piece)
        partial.value()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        (" ", None),
        ("{", {}),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": 1', {}),
        ('{"a": 1,', {"a": 1}),
        ('{"a": tru', {}),
        ('{"a": true', {"a": True}),
        ('{"a": "', {}),
        ('{"a": "b', {"a": "b"}),
        ('{"a": "b\\', {"a": "b"}),
        ('{"a": "b\\u12', {"a": "b"}),
        ('{"a": "\\ud83d', {"a": ""}),
        ('{"a": "\\ud83d\\ude00', {"a": "\U0001f600"}),
        ('{"a": [1, {"b": "c', {"a": [1, {"b": "c"}]}),
        ("[1, 2", [1]),
        ("[[[", [[[]]]),
        ("```json\n", None),
        ('```json\n{"a": 1}', {"a": 1}),
        ('{"a": 1}\n```', {"a": 1}),
        ('{"a": 1} and more', {"a": 1}),
    ],
)
def test_so_far(text: str, value: Any) -> None:
    partial = PartialJson()
    partial.feed(text)
    assert partial.value() == value
    assert not partial.broken


@pytest.mark.parametrize(
    "text",
    ["Hello", "5 ", '"a"', "null", "{5 ", "{,", '{"a" 1 ', '{"a": 1 2 ', "[1,]", "[}", "[" * 101, '["\n', f"[{'1' * 5000}]"],
)  # fmt: skip
def test_what_is_no_object_and_no_list(text: str) -> None:
    partial = PartialJson()
    partial.feed(text)
    assert partial.broken
    before = partial.value()
    partial.feed("{}")
    assert partial.value() == before


SCHEMA: Any = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog"]},
        "when": {"$ref": "#/$defs/time"},
        "name": {"type": "string"},
        "maybe": {"anyOf": [{"const": "x"}, {"type": "null"}]},
        "list": {"type": "array", "items": {"type": "object", "properties": {"k": {"const": "v"}}}},
    },
    "additionalProperties": {"type": "string"},
    "$defs": {"time": {"type": "string", "format": "date-time"}},
}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"kind": "ca', {}),
        ('{"kind": "cat"', {"kind": "cat"}),
        ('{"when": "2026', {}),
        ('{"name": "A', {"name": "A"}),
        ('{"maybe": "x', {}),
        ('{"other": "o', {"other": "o"}),
        ('{"list": [{}, {"k": "v', {"list": [{}, {}]}),
        ('{"list": [{}, {"j": "v', {"list": [{}, {"j": "v"}]}),
    ],
)
def test_a_text_that_must_be_whole(text: str, value: Any) -> None:
    """What is one of a few, or has a format, is never shown half."""
    partial = PartialJson(SCHEMA)
    partial.feed(text)
    assert partial.value() == value


def test_a_long_text_in_many_pieces_costs_little() -> None:
    partial = PartialJson()
    pieces = ['{"a": [', *["[12345, true]," for _ in range(20_000)], "[]]}"]
    for piece in pieces:
        partial.feed(piece)
    assert partial.done
    assert len(partial.value()["a"]) == 20_001  # type: ignore[call-overload, index, arg-type]
