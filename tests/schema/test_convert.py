"""Converting values to what a JSON Schema wants (O-14)."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pai.schema import compile_client_schema, converted

NUMBER = {"type": "number"}
INTEGER = {"type": "integer"}
BOOL = {"type": "boolean"}
TEXT = {"type": "string"}
NULL = {"type": "null"}


def either(*members: Any) -> Any:
    return {"anyOf": list(members)}


def closed(required: list[str] | None = None, **properties: Any) -> Any:
    return {"type": "object", "properties": properties, "required": required or []}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (NUMBER, "3.5", 3.5), (NUMBER, " 3 ", 3), (NUMBER, "-1e2", -100.0), (NUMBER, True, 1),
        (NUMBER, None, 0), (NUMBER, "1e999", "1e999"), (NUMBER, "three", "three"),
        (NUMBER, "0x1", "0x1"), (NUMBER, "nan", "nan"), (NUMBER, [], []),
        (INTEGER, "3", 3), (INTEGER, "3.0", 3), (INTEGER, 3.0, 3), (INTEGER, "3.5", "3.5"),
        (INTEGER, 3.5, 3.5), (INTEGER, False, 0), (INTEGER, None, 0), (INTEGER, "+7", 7),
        (BOOL, "true", True), (BOOL, "False", False), (BOOL, 1, True), (BOOL, 0, False),
        (BOOL, 2, 2), (BOOL, "yes", "yes"), (BOOL, None, False), (BOOL, 1.0, True),
        (TEXT, 3, "3"), (TEXT, 3.5, "3.5"), (TEXT, True, "true"), (TEXT, None, ""),
        (TEXT, {}, {}), (TEXT, ["x"], ["x"]),
        (NULL, "", None), (NULL, 0, None), (NULL, False, None), (NULL, "x", "x"), (NULL, [], []),
        ({"type": ["integer", "null"]}, "3", 3), ({"type": ["integer", "null"]}, None, None),
        ({"type": ["boolean", "string"]}, 1, True), ({"type": ["string", "boolean"]}, 1, "1"),
        ({}, "3", "3"), ({"items": True}, ["3"], ["3"]), ({"type": "what"}, "3", "3"),
        # A union leaves alone what fits, else it takes the first member that fits then.
        (either(INTEGER, TEXT), "3", "3"), (either(INTEGER, BOOL), "true", True),
        (either(BOOL, INTEGER), "7", 7), (either(INTEGER, NULL), "", None),
        ({"oneOf": [INTEGER, NULL]}, "3", 3), (either(INTEGER, BOOL), "x", "x"),
        (either({"type": "integer", "minimum": 5}, TEXT), 3, "3"),
        (either(closed(["a"], a=INTEGER), closed(["b"], b=INTEGER)), {"b": "1"}, {"b": 1}),
        # Objects and arrays.
        (closed(a=INTEGER, b=TEXT), {"a": "1", "b": 2, "c": "3"}, {"a": 1, "b": "2", "c": "3"}),
        ({"additionalProperties": INTEGER}, {"a": "1"}, {"a": 1}),
        ({"patternProperties": {"^n": INTEGER}}, {"n1": "1", "x": "1"}, {"n1": 1, "x": "1"}),
        ({"patternProperties": {"(": INTEGER}}, {"n": "1"}, {"n": "1"}),
        ({"items": INTEGER}, ["1", 2], [1, 2]),
        ({"prefixItems": [INTEGER, TEXT], "items": BOOL}, ["1", 2, "true"], [1, "2", True]),
        ({"items": [INTEGER, TEXT], "additionalItems": BOOL}, ["1", 2, "true"], [1, "2", True]),
        # Null of an optional key that takes none.
        (closed(a=INTEGER), {"a": None}, {}), (closed(["a"], a=INTEGER), {"a": None}, {"a": 0}),
        (closed(a=either(INTEGER, NULL)), {"a": None}, {"a": None}),
        (closed(a={}), {"a": None}, {"a": None}), (closed(), {"a": None}, {"a": None}),
        ({"allOf": [{"required": ["a"]}, closed(a=INTEGER)]}, {"a": None}, {"a": 0}),
        ({**closed(a=INTEGER), "allOf": [{"required": ["a"]}]}, {"a": None}, {"a": 0}),
        # References and branches.
        ({"$ref": "#/$defs/N", "$defs": {"N": INTEGER}}, "3", 3),
        ({"items": {"$ref": "#/$defs/N"}, "$defs": {"N": INTEGER}}, ["3"], [3]),
        (
            {"$ref": "#/$defs/T", "$defs": {"T": closed(kids={"items": {"$ref": "#/$defs/T"}}, n=INTEGER)}},
            {"n": "1", "kids": [{"n": "2", "kids": []}]},
            {"n": 1, "kids": [{"n": 2, "kids": []}]},
        ),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}}, "3", "3"),
        ({"$ref": "https://example.org/x"}, "3", "3"),
        ({"if": {"required": ["n"]}, "then": closed(n=INTEGER), "else": closed(m=INTEGER)},
         {"n": "1", "m": "2"}, {"n": 1, "m": "2"}),
        ({"if": {"required": ["n"]}, "then": closed(n=INTEGER), "else": closed(m=INTEGER)},
         {"m": "2"}, {"m": 2}),
    ],
)  # fmt: skip
def test_conversions(schema: Any, value: Any, expected: Any) -> None:
    before = copy.deepcopy(value)
    made = converted(schema, value)
    assert (made, type(made)) == (expected, type(expected))
    assert repr(made) == repr(expected)  # 1 is no True
    assert value == before
    if repr(expected) == repr(before):
        assert made is value


SCALARS = [NUMBER, INTEGER, BOOL, TEXT, NULL, {"enum": ["a", 1]}, {"type": "integer", "minimum": 3}]
SCHEMAS: Any = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        st.builds(lambda items: {"type": "array", "items": items}, inner)
        | st.builds(lambda members: {"anyOf": members}, st.lists(inner, min_size=1, max_size=3))
        | st.builds(
            lambda properties, names: closed([n for n in names if n in properties], **properties),
            st.dictionaries(st.sampled_from("abc"), inner),
            st.lists(st.sampled_from("abc"), unique=True),
        )
    ),
    max_leaves=6,
)
VALUES: Any = st.recursive(
    st.sampled_from([None, True, False, 0, 1, 3, 2.5, "", "3", "true", "x", "a"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(SCHEMAS, VALUES)
def test_what_fits_is_left_alone_and_what_is_converted_stays(schema: Any, value: Any) -> None:
    """Always; and nothing is raised."""
    check = compile_client_schema(schema)
    before = copy.deepcopy(value)
    made = converted(schema, value)
    assert repr(value) == repr(before)
    if not check.faults(value):
        assert made == value
    if not check.faults(made):
        assert repr(converted(schema, made)) == repr(made)
