"""Objects of JSON that is still being written (O-11)."""

from __future__ import annotations

import datetime as dt
import enum
import json
import re
import uuid
from itertools import pairwise
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict

import annotated_types as at
import attrs
import pytest
from hypothesis import given, strategies as st

from pai.schema import UNSET, PartialJson, compile_schema, undo_nulls
from pai.testing.strategies import json_values, mutated, schema_types, values_for

layouts = st.sampled_from([{}, {"indent": 2}, {"ensure_ascii": False}])


def is_part(early: Any, late: Any) -> bool:
    """Whether *late* is what *early* can become."""
    if early is UNSET:
        return True
    if type(early) is not type(late):
        return False
    if attrs.has(type(early)):
        # What a converter makes of a whole value has no part.
        return all(
            is_part(getattr(early, field.name), getattr(late, field.name))
            for field in attrs.fields(type(early))
            if field.converter is None
        )
    if isinstance(early, str):
        return bool(late.startswith(early))
    if isinstance(early, (list, tuple)):
        return len(early) <= len(late) and all(map(is_part, early, late))
    if isinstance(early, dict):
        return early.keys() <= late.keys() and all(is_part(early[k], late[k]) for k in early)
    return bool(early == late)


def so_far(tp: Any, text: str) -> Any:
    """What there is of a list of *tp* after this much of its text."""
    schema = compile_schema(list[tp])
    partial = PartialJson(schema.json_schema)
    partial.feed(text)
    return schema.parse_partial(undo_nulls(schema.json_schema, partial.value()))


@given(schema_types(), layouts, st.data())
def test_each_is_a_part_of_the_whole(tp: Any, layout: Any, data: st.DataObject) -> None:
    value = data.draw(values_for(tp))
    text = json.dumps([value], **layout)
    whole = compile_schema(list[tp]).parse([value])
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    found = [so_far(tp, text[:cut]) for cut in [*cuts, len(text)]]
    assert all(is_part(early, whole) for early in found)
    assert all(is_part(early, late) for early, late in pairwise(found))
    assert has_all(found[-1], whole, [value])


def has_all(last: Any, whole: Any, value: Any) -> bool:
    """Whether each key and item of *value* is in *last*."""
    if attrs.has(type(whole)):
        return all(
            has_all(getattr(last, field.name), getattr(whole, field.name), value[field.alias])
            for field in attrs.fields(type(whole))
            if field.alias in value and field.converter is None
        )
    if isinstance(whole, (list, tuple)):
        return len(last) == len(whole) and all(map(has_all, last, whole, value))
    if isinstance(whole, dict):
        return last.keys() == whole.keys() and all(
            has_all(last[key], whole[key], value[key]) for key in whole
        )
    return bool(last == whole)


@given(schema_types(), st.data())
def test_nothing_is_too_bad(tp: Any, data: st.DataObject) -> None:
    value = data.draw(values_for(tp).flatmap(mutated) | json_values())
    text = json.dumps([value])
    so_far(tp, text[: data.draw(st.integers(0, len(text)))] + data.draw(st.text(max_size=3)))
    compile_schema(tp).parse_partial(value)


class Mood(enum.Enum):
    GOOD = "good"
    BAD = "bad"


@attrs.frozen
class Cat:
    kind: Literal["cat"]
    name: str


@attrs.frozen
class Dog:
    kind: Literal["dog"]
    tricks: list[str]


class Note(TypedDict):
    text: str
    stars: NotRequired[int]


def never(*_: Any) -> Any:
    raise AssertionError("no code of the class runs")


@attrs.define
class Report:
    title: str = attrs.field(validator=[never])
    score: int = attrs.field(converter=never)
    when: dt.datetime | None = attrs.field(factory=never)
    mood: Mood = Mood.GOOD
    pets: list[Cat | Dog] = attrs.field(factory=list)
    lead: Cat | Dog | None = None
    note: Note | None = None
    counts: dict[str, int] = attrs.field(factory=dict)
    pair: tuple[str, Cat | Dog, int] | None = None
    _id: uuid.UUID | None = None
    code: Annotated[str, re.compile("^[a-z]+$")] = "x"
    long: Annotated[str, at.Len(5, 9)] = "....."
    more: Report | None = None
    worked_out: int = attrs.field(init=False, factory=never)

    def __attrs_post_init__(self) -> None:
        never()


def shown(made: Any) -> Any:
    """Of an instance, the attributes that are set."""
    if attrs.has(type(made)):
        names = [field.name for field in attrs.fields(type(made))]
        found = {name: shown(getattr(made, name)) for name in names}
        return type(made).__name__, {k: v for k, v in found.items() if v is not UNSET}
    if isinstance(made, (list, tuple)):
        return type(made)(map(shown, made))
    return made


ID = uuid.UUID(int=5)


@pytest.mark.parametrize(
    ("text", "attributes"),
    [
        ("", {}),
        ('"title": "Go', {"title": "Go"}),
        ('"score": 5', {}),
        ('"score": 5,', {"score": 5}),
        ('"score": "5",', {}),
        ('"when": "2026-01-01T00:00:0', {}),
        ('"when": "2026-01-01T00:00:00Z"', {"when": dt.datetime(2026, 1, 1, tzinfo=dt.UTC)}),
        ('"when": "soon"', {}),
        ('"when": null', {"when": None}),
        ('"score": null', {}),
        ('"mood": "go', {}),
        ('"mood": "bad"', {"mood": Mood.BAD}),
        (f'"id": "{ID}"', {"_id": ID}),
        ('"code": "ab', {}),
        ('"long": "ab', {"long": "ab"}),
        ('"pets": [{"name": "Tom"', {"pets": []}),
        ('"pets": [{"kind": "cat", "name": "T', {"pets": [("Cat", {"kind": "cat", "name": "T"})]}),
        ('"lead": {"tricks": ["sit"', {}),
        (
            '"lead": {"kind": "dog", "tricks": ["s',
            {"lead": ("Dog", {"kind": "dog", "tricks": ["s"]})},
        ),
        ('"note": {"text": "a', {"note": {"text": "a"}}),
        ('"note": {"stars": "many", "text": "', {"note": {}}),
        ('"counts": {"a": 1, "b": 2', {"counts": {"a": 1}}),
        ('"counts": {"a": "x", "b": 2,', {"counts": {"b": 2}}),
        ('"pair": ["a', {"pair": ("a",)}),
        ('"pair": ["a", {"name": "T"}, 5,', {"pair": ("a",)}),
        (
            '"more": {"more": {"title": "x',
            {"more": ("Report", {"more": ("Report", {"title": "x"})})},
        ),
        ('"unknown": 5, "title": "x', {"title": "x"}),
    ],
)
def test_what_there_is(text: str, attributes: Any) -> None:
    schema = compile_schema(Report)
    partial = PartialJson(schema.json_schema)
    partial.feed("{" + text)
    value = undo_nulls(schema.json_schema, partial.value())
    assert shown(schema.parse_partial(value)) == ("Report", attributes)


@attrs.frozen
class Plain:
    a: str
    b: int


@attrs.frozen(slots=False)
class Open:
    a: str
    b: int


class Picky:
    def __new__(cls, a: str) -> Self:
        assert a
        return super().__new__(cls)


@attrs.define
class Cannot(Picky):
    a: str


@pytest.mark.parametrize("cls", [Plain, Open])
def test_frozen_classes_with_slots_and_without(cls: Any) -> None:
    made = compile_schema(cls).parse_partial({"a": "x"})
    assert type(made) is cls
    assert (made.a, made.b) == ("x", UNSET)
    assert made == compile_schema(cls).parse_partial({"a": "x"})
    assert repr(made) == f"{cls.__name__}(a='x', b=UNSET)"


@pytest.mark.parametrize(
    ("tp", "value"),
    [
        (Plain, None),
        (Plain, []),
        (Cat | Dog, {}),
        (Cat | Dog, {"kind": "cow"}),
        (list[int], {}),
        (tuple[int, str], "x"),
        (Note, 5),
        (dict[str, int], [1]),
        (int, "x"),
        (str, "\ud800"),
        (object, float("nan")),
        (Cannot, {"a": "x"}),
    ],
)
def test_where_nothing_can_be_said(tp: Any, value: Any) -> None:
    assert compile_schema(tp).parse_partial(value) is UNSET


def test_a_value_that_is_nested_too_deeply() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = {"more": value}
    assert compile_schema(Report).parse_partial(value) is UNSET
