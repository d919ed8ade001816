"""Types as JSON Schema."""

from __future__ import annotations

import datetime as dt
import enum
import re
import uuid
from typing import Annotated, Any, Generic, Literal, TypedDict, TypeVar

import annotated_types as at
import attrs
import jsonschema_rs
import pytest
from attrs import validators

from pai.schema import compile_schema

T = TypeVar("T")


class Color(enum.Enum):
    """What it looks like."""

    RED = "red"
    BLUE = "blue"


@attrs.frozen
class Cat:
    """
    A cat.

    It sleeps.

    Attributes:
        name: What it is called,
            at home.
    """

    name: str
    kind: Literal["cat"] = "cat"


@attrs.frozen
class Dog:
    name: str
    kind: Literal["dog"]


@attrs.frozen
class Node:
    next: Node | None = None


@attrs.frozen
class Box(Generic[T]):
    item: T


def tidy(text: str) -> str:
    return text.strip()


class Doc:
    def __init__(self, documentation: str) -> None:
        self.documentation = documentation


def schema(tp: Any) -> dict[str, Any]:
    return compile_schema(tp).json_schema


@pytest.mark.parametrize(
    ("tp", "wanted"),
    [
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (None, {"type": "null"}),
        (object, {}),
        (dt.datetime, {"type": "string", "format": "date-time"}),
        (dt.date, {"type": "string", "format": "date"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Literal["a"], {"type": "string", "const": "a"}),
        (
            Literal["a", 1, None],  # noqa: PYI061
            {"type": ["string", "integer", "null"], "enum": ["a", 1, None]},
        ),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array"}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
            },
        ),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (
            dict[Literal["a"], object],
            {"type": "object", "propertyNames": {"type": "string", "const": "a"}},
        ),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (
            Annotated[int, at.Ge(1), at.Lt(9), at.MultipleOf(2)],
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2},
        ),
        (Annotated[str, at.Len(1, 5)], {"type": "string", "minLength": 1, "maxLength": 5}),
        (
            Annotated[list[int], at.Len(0, 5)],
            {"type": "array", "items": {"type": "integer"}, "maxItems": 5},
        ),
        (
            Annotated[dict[str, object], at.MinLen(1)],
            {"type": "object", "minProperties": 1},
        ),
        (
            Annotated[str | None, at.MinLen(1), Doc("Some words.")],
            {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "minLength": 1,
                "description": "Some words.",
            },
        ),
        (Annotated[str, "Plain words."], {"type": "string", "description": "Plain words."}),
        (
            Annotated[Annotated[int, at.Ge(1)], at.Ge(3)],
            {"type": "integer", "minimum": 3},
        ),
    ],
)
def test_plain_types(tp, wanted):
    assert schema(tp) == wanted


@pytest.mark.parametrize(
    ("pattern", "wanted"),
    [
        (re.compile(r"^\w+$"), r"^\w+$"),
        (re.compile(r"\Aa\Z"), "^a$"),
        (re.compile(r"(?P<x>a)(?P=x)\\Z"), r"(?<x>a)\k<x>\\Z"),
        (re.compile("a", re.IGNORECASE), None),
        (re.compile("(?i:a)"), None),
        (re.compile("(?#words)a"), None),
        (re.compile("a", re.ASCII), "a"),
    ],
)
def test_patterns_are_given_in_the_dialect_of_json_schema(pattern, wanted):
    assert schema(Annotated[str, pattern]).get("pattern") == wanted


def test_classes_are_closed_and_described():
    assert schema(Cat) == {
        "type": "object",
        "description": "A cat.\n\nIt sleeps.",
        "properties": {
            "name": {"type": "string", "description": "What it is called, at home."},
            "kind": {"type": "string", "const": "cat", "default": "cat"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }


def test_classes_inside_lie_in_defs():
    @attrs.frozen
    class Home:
        cat: Cat
        pets: list[Cat | Dog]
        color: Annotated[Color, "Its walls."] = Color.RED
        boxes: tuple[Box[int], Box[str]] | None = None

    made = schema(Home)
    cat, dog = {"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}
    assert made["properties"] == {
        "cat": cat,
        # Among others a cat must say that it is one, though alone it need not.
        "pets": {"type": "array", "items": {"anyOf": [{**cat, "required": ["kind"]}, dog]}},
        "color": {"$ref": "#/$defs/Color", "description": "Its walls.", "default": "red"},
        "boxes": {
            "anyOf": [
                {
                    "type": "array",
                    "prefixItems": [{"$ref": "#/$defs/Box_int"}, {"$ref": "#/$defs/Box_str"}],
                    "minItems": 2,
                    "maxItems": 2,
                },
                {"type": "null"},
            ],
            "default": None,
        },
    }
    assert list(made["$defs"]) == ["Box_int", "Box_str", "Cat", "Color", "Dog"]
    assert made["$defs"]["Color"] == {
        "type": "string",
        "enum": ["red", "blue"],
        "description": "What it looks like.",
    }


def test_classes_of_one_name_have_two_definitions():
    first = attrs.make_class("Same", {"a": attrs.field(type=int)})
    second = attrs.make_class("Same", {"b": attrs.field(type=str)})
    made = schema(tuple[first, second])  # type: ignore[valid-type]
    assert made["prefixItems"] == [{"$ref": "#/$defs/Same"}, {"$ref": "#/$defs/Same_2"}]
    assert list(made["$defs"]["Same_2"]["properties"]) == ["b"]


def test_recursion_goes_through_defs():
    made = schema(Node)
    assert made["type"] == "object"
    assert made["properties"]["next"]["anyOf"][0] == {"$ref": "#/$defs/Node"}
    valid = jsonschema_rs.validator_for(made).is_valid
    assert valid({"next": {"next": None}})
    assert not valid({"next": {"next": 1}})


def test_validators_and_metadata_of_attrs_are_told():
    @attrs.frozen
    class Order:
        a: int = attrs.field(validator=[validators.ge(1), validators.lt(9)])
        b: str | None = attrs.field(
            default=None,
            validator=validators.optional(validators.in_(["x", "y"])),
            metadata={"description": "The b."},
        )
        c: str = attrs.field(default="c", validator=validators.matches_re(r"[a-z]+"))
        d: list[int] = attrs.field(
            factory=list, validator=validators.and_(validators.min_len(0), validators.max_len(2))
        )
        e: str = attrs.field(default="e", validator=validators.matches_re("x|e", func=re.search))
        f: str = attrs.field(default=" f ", converter=tidy)

    properties = schema(Order)["properties"]
    assert properties["a"] == {"type": "integer", "minimum": 1, "exclusiveMaximum": 9}
    assert properties["b"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "enum": ["x", "y", None],
        "description": "The b.",
        "default": None,
    }
    assert properties["c"]["pattern"] == "^(?:[a-z]+)$"
    assert properties["d"] == {
        "type": "array",
        "items": {"type": "integer"},
        "maxItems": 2,
        "default": [],
    }
    assert properties["e"]["pattern"] == "x|e"
    assert properties["f"]["default"] == "f"


def test_constraints_of_both_kinds_hold_together():
    @attrs.frozen
    class Both:
        a: Annotated[int, at.Ge(1)] = attrs.field(default=5, validator=validators.ge(3))

    made = schema(Both)
    for value, good in ((0, False), (2, False), (3, True)):
        assert jsonschema_rs.validator_for(made).is_valid({"a": value}) is good
        assert (compile_schema(Both).faults({"a": value}) == ()) is good


def test_typed_dicts_are_closed():
    class Movie(TypedDict, total=False):
        """A film."""

        year: int

    assert schema(Movie) == {
        "type": "object",
        "description": "A film.",
        "properties": {"year": {"type": "integer"}},
        "additionalProperties": False,
    }


def test_the_schema_is_made_once():
    assert compile_schema(Cat).json_schema is compile_schema(Cat).json_schema
