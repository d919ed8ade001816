"""OpenAI's strict form, and the nulls it forces."""

from __future__ import annotations

import enum
from typing import Annotated, Any, Literal, Union

import annotated_types as at
import attrs
import jsonschema_rs
import pytest
from hypothesis import given, strategies as st

from pai.schema import JsonObject, JsonValue, compile_schema, strict_form, undo_nulls
from pai.testing._schema_strategies import mutated, schema_types, values_for


class Color(enum.Enum):
    RED = "red"


@attrs.frozen
class Cat:
    lives: int = 9
    kind: Literal["cat"] = "cat"


@attrs.frozen
class Dog:
    kind: Literal["dog"]
    owner: str | None = None


@attrs.frozen
class Node:
    value: int = 0
    children: list[Node] = attrs.field(factory=list)
    left: Annotated[Node | None, "The one before."] = None


@attrs.frozen
class Order:
    item: str
    note: str | None = None
    count: Annotated[int, at.Ge(1), "How many."] = 1
    color: Color = Color.RED
    pet: Annotated[Cat, "The cat."] = attrs.field(factory=Cat)
    pets: list[Cat | Dog] = attrs.field(factory=list)
    mode: Literal["a"] | int = "a"


def strict(tp: Any) -> dict[str, Any]:
    made = strict_form(compile_schema(tp).json_schema)
    assert made is not None
    return made


def walk(schema: Any) -> Any:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from walk(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from walk(value)


def obeys_the_form(schema: JsonObject) -> None:
    assert schema["type"] == "object"
    for part in walk(schema):
        assert "default" not in part
        if part.get("type") == "object" and isinstance(part.get("properties"), dict):
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
        if "$ref" in part:
            assert list(part) == ["$ref"]


def test_every_key_is_required_and_optional_ones_are_nullable():
    made = strict(Order)
    obeys_the_form(made)
    cat = made["$defs"]["Cat"]
    assert made["properties"] == {
        "item": {"type": "string"},
        "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        "count": {"type": ["integer", "null"], "minimum": 1, "description": "How many."},
        "color": {"anyOf": [{"$ref": "#/$defs/Color"}, {"type": "null"}]},
        "pet": {**cat, "type": ["object", "null"], "description": "The cat."},
        "pets": {
            "type": ["array", "null"],
            "items": {"anyOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]},
        },
        "mode": {
            "anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer"}, {"type": "null"}]
        },
    }
    assert cat["properties"] == {
        "lives": {"type": ["integer", "null"]},
        # It tells cats from dogs, so a cat must say it.
        "kind": {"type": "string", "enum": ["cat"]},
    }


def test_recursion_has_a_strict_form():
    obeys_the_form(strict(Node))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "additionalProperties": True},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        {"type": "array", "items": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"a": {"type": "string", "format": "iri"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(?=a)"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
        {"type": "object", "properties": {"a": {"oneOf": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"not": {"type": "string"}}}},
        {"type": "object", "properties": {"a": {"$ref": "http://example.org"}}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]},
        {"anyOf": [{"type": "object", "properties": {}, "additionalProperties": False}]},
        {"type": "object", "properties": {"a": {"enum": [str(i) for i in range(1001)]}}},
        {"type": "object", "properties": {"a": {"enum": [{}]}}},
        {"type": "object", "properties": {"a": {"type": "thing"}}},
    ],
)
def test_what_cannot_be_expressed_has_no_strict_form(schema):
    assert strict_form(schema) is None


@pytest.mark.parametrize(
    "tp", [dict[str, int], list[int], Annotated[dict[str, Any], at.MinLen(1)], int]
)
def test_open_objects_and_other_roots_have_none(tp):
    assert strict_form(compile_schema(tp).json_schema) is None


def test_a_clients_schema_that_only_forgets_to_close_itself_is_closed():
    schema: JsonObject = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "T",
        "type": "object",
        "properties": {
            "a": {"type": "string", "default": "x", "minLength": 0},
            "b": {"allOf": [{"type": "integer"}], "description": "The b."},
        },
        "required": ["b"],
    }
    assert strict_form(schema) == {
        "type": "object",
        "properties": {
            "a": {"type": ["string", "null"]},
            "b": {"type": "integer", "description": "The b."},
        },
        "required": ["a", "b"],
        "additionalProperties": False,
    }


def test_words_beside_a_reference_are_kept_and_recursion_ends():
    node: JsonObject = {
        "type": "object",
        "properties": {
            "words": {"$ref": "#/$defs/Node", "description": "The next."},
            "shade": {"type": "string", "enum": ["a"]},
        },
        "required": ["words"],
        "additionalProperties": False,
    }
    made = strict_form({**node, "$defs": {"Node": node}})
    assert made is not None
    outer: Any = made["properties"]
    assert outer["words"]["description"] == "The next."
    assert outer["words"]["properties"]["words"] == {"$ref": "#/$defs/Node"}
    assert outer["shade"] == {"type": ["string", "null"], "enum": ["a", None]}


def test_the_schema_itself_is_not_changed():
    schema = compile_schema(Order).json_schema
    before = repr(schema)
    strict_form(schema)
    undo_nulls(schema, {"item": "x", "count": None})
    assert repr(schema) == before


def test_forced_nulls_are_undone_and_others_stay():
    schema = compile_schema(Order).json_schema
    value: JsonValue = {
        "item": "x",
        "note": None,
        "count": None,
        "color": None,
        "pet": {"lives": None, "kind": None},
        "pets": [{"kind": "cat", "lives": None}, {"kind": "dog", "owner": None}],
        "mode": None,
        "other": None,
    }
    assert undo_nulls(schema, value) == {
        "item": "x",
        "note": None,
        "pet": {},
        "pets": [{"kind": "cat"}, {"kind": "dog", "owner": None}],
        "other": None,
    }


def test_nulls_of_required_keys_stay_to_be_refused():
    schema = compile_schema(Order).json_schema
    assert undo_nulls(schema, {"item": None}) == {"item": None}


def test_nulls_are_undone_through_recursion_tuples_tables_and_all_of():
    schema = compile_schema(Node).json_schema
    value: JsonValue = {
        "value": None,
        "children": [{"value": None, "children": None, "left": None}],
    }
    assert undo_nulls(schema, value) == {"children": [{"left": None}]}
    pair = compile_schema(tuple[Cat, dict[str, Cat]]).json_schema
    assert undo_nulls(pair, [{"lives": None}, {"a": {"lives": None}}]) == [{}, {"a": {}}]
    both: JsonObject = {"allOf": [{"properties": {"a": {"type": "string"}}}]}
    assert undo_nulls(both, {"a": None}) == {}
    assert undo_nulls({"$ref": "#"}, {"a": None}) == {"a": None}


def test_branches_are_told_apart_by_their_keys():
    branches: list[JsonValue] = [
        {"type": "object", "properties": {key: {"type": "string"}}, "additionalProperties": False}
        for key in ("a", "b")
    ]
    assert undo_nulls({"anyOf": branches}, {"b": None}) == {}


def test_many_alike_branches_do_not_take_long():
    branch: JsonObject = {"type": "object", "properties": {"a": {"$ref": "#"}}}
    schema: JsonObject = {"anyOf": [dict(branch) for _ in range(8)]}
    value: JsonValue = {"a": 1}
    for _ in range(60):
        value = {"a": value}
    assert undo_nulls(schema, value) == value


def forced(schema: dict[str, Any], root: dict[str, Any], value: Any) -> Any:
    """*value* as a model writes it for the strict form: null for every absent key."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    if "anyOf" in schema:
        for branch in schema["anyOf"]:
            tried = forced(branch, root, value)
            if valid({**branch, "$defs": root.get("$defs", {})}, tried):
                return tried
        return value
    if isinstance(value, dict):
        return {
            key: forced(inner, root, value[key]) if key in value else None
            for key, inner in schema.get("properties", {}).items()
        }
    if isinstance(value, list) and "items" in schema:
        return [forced(schema["items"], root, item) for item in value]
    return value


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def valid(schema: dict[str, Any], value: object) -> bool:
    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)


@st.composite
def strict_types(draw: st.DrawFn) -> Any:
    tp: Any = draw(schema_types())
    optional: Any = Union[tp, None]  # noqa: UP007
    return attrs.make_class(
        "Root",
        {
            "needed": attrs.field(type=tp, kw_only=True),
            "optional": attrs.field(type=optional, default=None),
            "listed": attrs.field(type=list[tp], factory=list),
        },
    )


@given(st.data())
def test_what_the_strict_form_allows_the_schema_allows_and_nothing_is_lost(data):
    tp = data.draw(strict_types())
    schema: Any = compile_schema(tp)
    made: Any = strict_form(schema.json_schema)
    if made is None:
        return
    obeys_the_form(made)
    value = data.draw(values_for(tp))
    written = forced(made, made, value)
    assert valid(made, written)
    undone = undo_nulls(schema.json_schema, written)
    # A key that may be absent and may be null cannot be left out in this form.
    again, before = schema.dump(schema.parse(undone)), schema.dump(schema.parse(value))
    assert without_nulls(again) == without_nulls(before)
    # Whatever else a model writes within the form is good as well.
    other = data.draw(mutated(written))
    if valid(made, other):
        assert schema.faults(undo_nulls(schema.json_schema, other)) == ()
