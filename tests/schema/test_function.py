"""Signatures as schemas."""

from __future__ import annotations

import functools
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Annotated, Any

import annotated_types as at
import attrs
import pytest

from pai.errors import DefinitionError, InvalidInput
from pai.schema import function_schema

if TYPE_CHECKING:
    from somewhere import Context  # type: ignore[import-not-found]


@attrs.frozen
class Place:
    city: str


def search(
    ctx: Context,
    query: Annotated[str, at.MinLen(1)],
    places: list[Place],
    limit: int = 10,
    *,
    exact: Annotated[bool, "Match whole words."] = False,
) -> list[Place]:
    """
    Search for places.

    The order is by distance.

    Args:
        query: What to look for,
            in plain words.
        limit: How many at most.

    Returns:
        The places found.
    """
    return places


def told(fn: Any, *, skip_first: bool = True) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        function_schema(fn, skip_first=skip_first)
    return [str(fault) for fault in caught.value.faults]


def test_a_signature_is_described():
    schema = function_schema(search, skip_first=True)
    assert schema.name == "search"
    assert schema.description == "Search for places.\n\nThe order is by distance."
    assert schema.input.json_schema == {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "minLength": 1,
                "description": "What to look for, in plain words.",
            },
            "places": {"type": "array", "items": {"$ref": "#/$defs/Place"}},
            "limit": {"type": "integer", "description": "How many at most.", "default": 10},
            "exact": {"type": "boolean", "description": "Match whole words.", "default": False},
        },
        "required": ["query", "places"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "type": "object",
                "properties": {"city": {"type": "string"}},
                "required": ["city"],
                "additionalProperties": False,
            }
        },
    }
    assert schema.output is not None
    assert schema.output.json_schema["items"] == {"$ref": "#/$defs/Place"}


def test_input_becomes_keyword_arguments_and_json_again():
    schema = function_schema(search, skip_first=True)
    made = schema.input.parse({"query": "x", "places": [{"city": "Ulm"}], "limit": 3.0})
    assert made == {"query": "x", "places": [Place("Ulm")], "limit": 3}
    assert search(None, **made) == [Place("Ulm")]  # type: ignore[arg-type]
    assert schema.input.dump(made) == {"query": "x", "places": [{"city": "Ulm"}], "limit": 3}
    with pytest.raises(InvalidInput) as caught:
        schema.input.parse({"query": "", "limit": "3", "more": 1}, at="input")
    assert [fault.path for fault in caught.value.faults] == [
        "input.query",
        "input.places",
        "input.limit",
        "input.more",
    ]


def test_all_faults_of_a_signature_are_told_at_once():
    def bad(ctx, /, a, b: set[int], c: Nowhere, *args, d: int = None, **options) -> bytes: ...  # type: ignore[assignment, empty-body, name-defined] # noqa: F821, RUF013

    faults = told(bad)
    assert [fault.split(":")[0] for fault in faults] == [
        "$.args",
        "$.options",
        "$.a",
        "$.b",
        "$.c",
        "$.return",
        "$.d",
    ]
    assert faults[2] == "$.a: the parameter has no type annotation"
    assert "| None" in faults[-1]


def test_positional_only_parameters_are_faults_unless_they_are_the_context():
    def one(ctx: int, /, a: int) -> None: ...

    assert told(one, skip_first=False) == [
        "$.ctx: ctx is positional only, but arguments are given by name"
    ]
    assert list(function_schema(one, skip_first=True).input.parse({"a": 1})) == ["a"]


def test_the_context_is_demanded():
    def nothing() -> None: ...
    def named(*, a: int) -> None: ...

    for fn in (nothing, named):
        assert told(fn) == ["$: it must take the context as its first parameter"]


def test_local_classes_are_told_to_be_unknown():
    @attrs.frozen
    class Local:
        a: int

    def fn(ctx: object, a: Local) -> None: ...

    (fault,) = told(fn)
    assert "'Local' is not known; it must be defined or imported at module level" in fault


def test_outputs_are_known_as_far_as_they_are_declared():
    def plain(ctx: Any, a: int): ...
    def any_(ctx: Any, a: int) -> Any: ...
    def object_(ctx: Any, a: int) -> object: ...
    def none(ctx: Any, a: int) -> None: ...
    async def later(ctx: Any, a: int) -> int: ...  # type: ignore[empty-body]
    def promised(ctx: Any, a: int) -> Awaitable[int]: ...  # type: ignore[empty-body]

    outputs = {
        fn.__name__: function_schema(fn, skip_first=True).output
        for fn in (plain, any_, object_, none, later, promised)
    }
    assert {name: output and output.json_schema for name, output in outputs.items()} == {
        "plain": None,
        "any_": None,
        "object_": None,
        "none": {"type": "null"},
        "later": {"type": "integer"},
        "promised": {"type": "integer"},
    }


class Tool:
    """The class."""

    def method(self, ctx: object, a: int) -> str:
        """Do it."""
        return str(a)

    async def __call__(self, ctx: object, b: int) -> str:
        """Call it."""
        return str(b)


def test_methods_partials_wrappers_and_callable_objects():
    @functools.wraps(search)
    def wrapper(*args: Any, **options: Any) -> Any:
        return search(*args, **options)

    assert function_schema(Tool().method, skip_first=True).description == "Do it."
    called = function_schema(Tool(), skip_first=True)
    assert (called.name, called.description) == ("Tool", "Call it.")
    assert list(called.input.json_schema["properties"]) == ["b"]  # type: ignore[arg-type]
    assert function_schema(wrapper, skip_first=True).name == "search"
    partial = functools.partial(search, limit=3)
    assert function_schema(partial, skip_first=True).input.parse({"query": "x", "places": []})
