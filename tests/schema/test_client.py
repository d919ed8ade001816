"""JSON Schemas from clients (A-TOOL-8)."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given

from pai.errors import InvalidInput
from pai.schema import ValueSchema, _client, compile_client_schema, compile_schema
from pai.schema._refusal import Refusal
from pai.testing._schema_strategies import json_values


def told(schema: object, **limits: int) -> list[str]:
    with pytest.raises(InvalidInput) as caught:
        compile_client_schema(schema, **limits)
    return [str(fault) for fault in caught.value.faults]


def test_values_are_checked_with_every_fault_by_path():
    schema = compile_client_schema(
        {
            "type": "object",
            "properties": {
                "a": {"type": "integer"},
                "b": {"type": "array"},
                "when": {"format": "date-time"},
            },
            "required": ["b"],
            "additionalProperties": False,
        }
    )
    value = {"b": [1], "a": 1}
    made: Any = schema.parse(value)
    assert made == value
    assert made["b"] is not value["b"]
    with pytest.raises(InvalidInput) as caught:
        schema.parse({"a": "secret", "zz": 1, "when": "secret"}, at="input")
    assert sorted(fault.path for fault in caught.value.faults) == [
        "input.a",
        "input.b",
        "input.when",
        "input.zz",
    ]
    assert "secret" not in str(caught.value)


def test_values_must_be_strict_json():
    schema = compile_client_schema({})
    assert [fault.path for fault in schema.faults({"a": float("nan"), "b": (1,)})] == [
        "$.a",
        "$.b",
    ]


@given(json_values())
def test_an_open_schema_takes_any_strict_json(value):
    assert compile_client_schema({}).parse(value) == value


def test_both_kinds_of_schema_are_value_schemas():
    assert isinstance(compile_client_schema({}), ValueSchema)
    assert isinstance(compile_schema(int), ValueSchema)


@pytest.mark.parametrize(
    ("schema", "path"),
    [
        ([], "$"),
        (True, "$"),
        ({"type": "thing"}, "$.type"),
        ({"properties": {"a": {"minLength": -1}}}, "$.properties.a.minLength"),
        ({"$schema": "http://example.org/own"}, "$.$schema"),
        ({"$ref": "http://127.0.0.1/x"}, "$.$ref"),
        ({"items": {"$ref": "file:///etc/passwd"}}, "$.items.$ref"),
        ({"$ref": "#/$defs/none"}, "$.$ref"),
        ({"$ref": "#nowhere"}, "$.$ref"),
        ({"$dynamicRef": "#x"}, "$.$dynamicRef"),
        ({"items": {"$id": "http://example.org/x"}}, "$.items.$id"),
        ({"$ref": "#"}, "$"),
        ({"pattern": "(?=a)"}, "$.pattern"),
        ({"pattern": "("}, "$.pattern"),
        ({"pattern": "a{1000}{1000}{1000}"}, "$.pattern"),
        ({"const": float("inf")}, "$.const"),
    ],
)
def test_bad_schemas_are_refused_by_path(schema, path):
    (fault,) = told(schema)
    assert fault.startswith(f"{path}: ")


def test_all_faults_of_a_schema_are_told_at_once():
    assert len(told({"type": "thing", "minLength": -1, "properties": [1]})) == 3


def test_size_and_depth_are_capped():
    assert told({"description": "x" * 70_000}) == ["$: larger than 65536 bytes"]
    assert told({"a": 1}, max_bytes=3)
    deep: dict[str, Any] = {}
    for _ in range(32):
        deep = {"items": deep}
    assert "nested too deeply" in told(deep)[0]


def test_references_within_the_schema_are_followed():
    tree = compile_client_schema(
        {
            "$id": "http://example.org/tree",
            "$defs": {"node": {"$anchor": "n", "properties": {"next": {"$ref": "#/$defs/node"}}}},
            "$ref": "#n",
        }
    )
    assert tree.faults({"next": {"next": {}}}) == ()
    old = compile_client_schema(
        {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "definitions": {"a b": {"type": "integer"}},
            "items": [{"$ref": "#/definitions/a%20b"}],
        }
    )
    assert old.faults([1]) == ()
    assert old.faults(["x"])


def chain(length: int, keyword: str) -> dict[str, Any]:
    links: dict[str, Any] = {
        f"d{i}": {keyword: [{"$ref": f"#/$defs/d{i + 1}"}] * 2} for i in range(length)
    }
    return {"$defs": {**links, f"d{length}": {"type": "string"}}, "$ref": "#/$defs/d0"}


@pytest.mark.parametrize(
    "schema",
    [
        chain(40, "allOf"),
        chain(40, "anyOf"),
        chain(40, "oneOf"),
        {"allOf": [{"items": {"$ref": "#"}}, {"items": {"$ref": "#"}}]},
        {"properties": {"a": {"$ref": "#"}}, "patternProperties": {"^a": {"$ref": "#"}}},
        {"items": {"$ref": "#"}, "contains": {"$ref": "#"}},
        {
            "allOf": [
                {"additionalProperties": {"$ref": "#"}},
                {"properties": {"a": {"$ref": "#"}}},
            ]
        },
    ],
)
def test_schemas_that_would_take_forever_are_refused(schema):
    started = time.process_time()
    (fault,) = told(schema)
    assert "too intricate" in fault
    assert time.process_time() - started < 2


def test_recursion_that_goes_deeper_is_taken():
    schema = compile_client_schema(
        {
            "type": "object",
            "properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}},
            "additionalProperties": False,
        }
    )
    compile_client_schema(
        {"properties": {"a": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}
    )
    compile_client_schema({"prefixItems": [{"$ref": "#"}], "items": {"$ref": "#"}})
    assert [fault.path for fault in schema.faults({"left": {"right": {"x": 1}}})] == [
        "$.left.right.x"
    ]


def test_patterns_run_in_linear_time():
    schema = compile_client_schema({"pattern": "^(a+)+$"})
    started = time.process_time()
    assert schema.faults("a" * 5000 + "!")
    assert time.process_time() - started < 2


def test_nothing_is_fetched(monkeypatch):
    import socket

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert told({"$ref": "http://127.0.0.1:9/x"})
    assert told({"$schema": "http://127.0.0.1:9/x"})
    # Nor would it be if the walk had let a reference through.
    with pytest.raises(Refusal) as caught:
        _client._compiled({"$ref": "http://127.0.0.1:9/x"})
    assert "remote references are denied" in caught.value.found[0][1]


def test_the_schema_is_a_copy():
    given: dict[str, Any] = {"type": "integer"}
    schema = compile_client_schema(given)
    given["type"] = "string"
    assert schema.json_schema == {"type": "integer"}
