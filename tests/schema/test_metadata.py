"""What metadata schemas must promise, and how bags start and change."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any, Literal, TypedDict

import attrs
import pytest
from attrs import validators
from hypothesis import given, strategies as st

from pai.errors import InvalidInput
from pai.schema import (
    JsonValue,
    Schema,
    check_json,
    check_metadata_class,
    compile_schema,
    initial,
    merge_patch,
    parse_stable,
)
from pai.testing._schema_strategies import json_values


def tidy(text: str) -> str:
    return text.strip()


def in_order(items: list[str]) -> list[str]:
    return sorted(items)


@attrs.frozen
class Bag:
    title: str = attrs.field(default="", converter=tidy)
    tags: list[str] = attrs.field(factory=list, converter=in_order)
    count: int = attrs.field(default=0, validator=validators.ge(0))
    seen: dt.datetime | None = None
    extra: JsonValue = None


def told(tp: Any, **options: Any) -> list[str]:
    return [str(fault) for fault in check_metadata_class(tp, at="run.public", **options)]


def made(**fields: Any) -> type:
    return attrs.make_class("Made", fields)


class Loose(TypedDict, total=False):
    note: str


@pytest.mark.parametrize("tp", [Bag, Loose, dict[str, int], dict[str, object]])
def test_canonical_schemas_are_taken(tp):
    """A-META-1, A-META-2, A-META-4."""
    assert told(tp) == []


def test_metadata_is_an_object():
    """A-META-1."""
    assert told(list[int]) == ["run.public: metadata is an object, and list[int] is not one"]
    assert told(Bag | None)


def test_the_empty_object_must_be_accepted():
    """A-META-1."""
    tp = made(a=attrs.field(type=int), b=attrs.field(type=str))
    assert told(tp) == [
        "run.public.a: metadata must accept {}: required",
        "run.public.b: metadata must accept {}: required",
    ]

    @attrs.frozen
    class Never:
        a: int = 0

        def __attrs_post_init__(self) -> None:
            raise ValueError("not today")

    assert told(Never) == ["run.public: metadata must accept {}: not today"]


def test_faults_of_the_declaration_are_told_by_path():
    assert told(made(a=attrs.field(type=set, default=None))) == [
        "run.public.a: set is not accepted in a schema: use list"
    ]


def test_converters_that_change_what_a_value_is_are_refused():
    """A-META-4."""
    (fault,) = told(made(a=attrs.field(type=str, default="1", converter=int)))
    assert fault.startswith("run.public.a: its converter returns what the field does not take")


def test_defaults_from_factories_must_fit():
    """A-META-2."""
    (fault,) = told(made(a=attrs.field(type=list[int], factory=lambda: ["x"])))
    assert fault.startswith("run.public.a[0]: what it becomes is not accepted as input")
    (fault,) = told(made(a=attrs.field(type=object, factory=lambda: {1, 2})))
    assert fault.startswith("run.public.a: set is not JSON")


def test_objects_that_change_themselves_are_refused():
    """A-META-2."""

    @attrs.define
    class Counting:
        n: int = 0

        def __attrs_post_init__(self) -> None:
            self.n += 1

    (fault, *_) = told(Counting)
    assert "not stable" in fault

    @attrs.define
    class Breaking:
        name: str = ""

        def __attrs_post_init__(self) -> None:
            if self.name.startswith("ab"):
                self.name = 3  # type: ignore[assignment]

    (fault, *_) = told(Breaking)
    assert fault.startswith("run.public.name: what it becomes is not accepted")


def test_reserved_keys_may_not_be_declared():
    """A-META-9."""
    tp = made(pai=attrs.field(type=str, default=""), a=attrs.field(type=int, default=1))
    assert told(tp) == []
    assert told(tp, reserved=frozenset({"pai"})) == ["run.public.pai: the key is reserved"]
    aliased = made(other=attrs.field(type=str, default="", alias="pai"))
    assert told(aliased, reserved=frozenset({"pai"})) == ["run.public.pai: the key is reserved"]


def test_the_initial_value_runs_default_factories_anew():
    """A-META-3."""
    numbers = itertools.count()
    schema: Schema[Any] = compile_schema(
        made(n=attrs.field(type=int, factory=lambda: next(numbers)))
    )
    first, second = initial(schema)["n"], initial(schema)["n"]
    assert first != second
    bag = compile_schema(Bag)
    assert initial(bag) == {"title": "", "tags": [], "count": 0, "seen": None, "extra": None}
    assert initial(bag)["tags"] is not initial(bag)["tags"]


def test_patches_are_merged_shallowly_and_checked_whole():
    """A-META-5."""
    schema = compile_schema(Bag)
    bag = initial(schema)
    before = dict(bag)
    when = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    patch = {"title": " Hi ", "tags": ["b", "a"], "seen": when, "extra": {"x": [1]}}
    merged = merge_patch(schema, bag, patch, at="m")
    assert merged == {
        "title": "Hi",
        "tags": ["a", "b"],
        "count": 0,
        "seen": "2026-01-01T00:00:00Z",
        "extra": {"x": [1]},
    }
    assert merge_patch(schema, merged, {"extra": {"y": 2}}, at="m")["extra"] == {"y": 2}
    assert bag == before
    with pytest.raises(InvalidInput) as caught:
        merge_patch(schema, merged, {"count": -1, "seen": "now", "pai": 1}, at="m")
    assert sorted(fault.path for fault in caught.value.faults) == ["m.count", "m.pai", "m.seen"]


@given(st.dictionaries(st.sampled_from(["title", "tags", "count", "extra", "x"]), json_values(4)))
def test_a_patch_gives_a_stable_bag_or_changes_nothing(patch):
    """A-META-5, A-META-2."""
    schema = compile_schema(Bag)
    bag = initial(schema)
    try:
        merged = merge_patch(schema, bag, patch, at="m")
    except InvalidInput:
        assert bag == initial(schema)
    else:
        assert check_json(merged) == ()
        assert merge_patch(schema, merged, {}, at="m") == merged


def test_a_payload_is_checked_for_stability_where_it_is_written():
    """A-UI-2."""

    @attrs.frozen
    class Progress:
        done: int
        state: Literal["on", "off"] = "on"

    schema = compile_schema(Progress)
    assert parse_stable(schema, Progress(1)) == {"done": 1, "state": "on"}
    assert parse_stable(schema, {"done": 1.0}) == {"done": 1, "state": "on"}
    with pytest.raises(InvalidInput) as caught:
        parse_stable(schema, {"done": "1"}, at="data-progress")
    assert caught.value.faults[0].path == "data-progress.done"
    drifting = compile_schema(_Drifting)
    with pytest.raises(InvalidInput, match="not stable"):
        parse_stable(drifting, {"n": 7777})


@attrs.frozen
class _Drifting:
    """Its converter is stable for all that the probes try."""

    n: int = attrs.field(converter=lambda n: n + 1 if n == 7777 else n * (n != 7778))


def test_reading_old_rows_is_a_parse_with_faults():
    """A-META-10: a new field takes its default, and what no longer fits is a fault to be shown."""
    schema = compile_schema(Bag)
    assert merge_patch(schema, {"title": "x"}, {}, at="m")["count"] == 0
    assert [fault.path for fault in schema.faults({"gone": 1})] == ["$.gone"]
