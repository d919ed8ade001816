"""Probes: a fixed set of JSON values that tries what a shape is likely to get (A-META-2)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ._json import JsonValue
from ._shapes import (
    Alias,
    AnyJson,
    Array,
    Bounded,
    Choice,
    Fixed,
    Leaf,
    Record,
    Shape,
    Table,
    Union,
)

__all__ = ("probes",)

_MOST = 64
"""How many probes one shape gives to the shape around it."""

_LEAVES: dict[str, tuple[JsonValue, ...]] = {
    "null": (None,),
    "boolean": (False, True),
    "integer": (0, 1, -1, 2, 7, 100, -1000, 2**31, 2**53 - 1),
    "number": (0.0, 1.0, -1.0, 0.5, -2.5, 3.14159, 1e-9, 100.25, 1e12),
    "string": (
        "",
        "a",
        "B",
        "ab",
        "1",
        "-1.50",
        "true",
        "  Padded Words ",
        "MiXeD",
        "tab\tand\nline",
        "ß İ é",
        "a,b,c",
        "x" * 300,
        "a@example.org",
        "https://example.org/A?b=C",
    ),
    "date-time": ("1970-01-01T00:00:00Z", "2026-02-28T23:59:59.123456+05:30"),
    "date": ("1970-01-01", "2024-02-29"),
    "uuid": (
        "00000000-0000-0000-0000-000000000000",
        "123E4567-E89B-12D3-A456-426614174000",
    ),
}

_ANY: tuple[JsonValue, ...] = (None, True, 1, 1.5, "a", [], {}, [{"b": [1], "a": None}])


def probes(shape: Shape) -> list[JsonValue]:
    """Up to 64 values for *shape*; its constraints may refuse some of them."""
    return list(islice(_probes(shape, ()), _MOST))


def _probes(shape: Shape, outer: tuple[int, ...]) -> Iterator[JsonValue]:
    if id(shape) in outer:
        return
    inside = (*outer, id(shape))
    match shape:
        case Leaf(name=name):
            yield from _LEAVES[name]
        case Choice(values=values):
            yield from values
        case Bounded(base=base):
            yield from _bounds(shape)
            yield from _probes(base, inside)
        case Alias(target=target) if target is not None:
            yield from _probes(target, inside)
        case Array(item=item):
            yield from _lists(list(islice(_probes(item, inside), _MOST)))
        case Fixed(items=items):
            yield from _columns([list(islice(_probes(item, inside), 8)) for item in items])
        case Table(value=value):
            yield {}
            for index, entry in enumerate(islice(_probes(value, inside), 8)):
                yield {"b": entry, "A": entry, f" Key {index} ": entry}
        case Record():
            yield from _records(shape, inside)
        case Union(members=members):
            for member in members:
                yield from islice(_probes(member, inside), _MOST // len(members))
        case AnyJson():
            yield from _ANY
        case _:
            return


def _bounds(shape: Bounded) -> Iterator[JsonValue]:
    """Values at the edges that the constraints name."""
    for check in shape.checks:
        for keyword, limit in check.keywords.items():
            if type(limit) in (int, float) and not keyword.endswith(("Length", "Items")):
                yield from (limit, limit + 1, limit - 1)  # type: ignore[operator]
            elif keyword.endswith("Length") and type(limit) is int and limit <= 1000:
                yield from ("a" * limit, "B" + " " * (limit - 1) if limit else "", " " * limit)


def _lists(items: list[JsonValue]) -> Iterator[JsonValue]:
    yield []
    for item in items:
        yield [item]
    if len(items) > 1:
        yield [items[1], items[0]]
        yield [items[0], items[1]]
        yield [items[1], items[0], items[1]]
        yield [*items[:20], *reversed(items[:20])]


def _columns(columns: list[list[JsonValue]]) -> Iterator[JsonValue]:
    if all(columns):
        for row in range(max(map(len, columns), default=1)):
            yield [column[row % len(column)] for column in columns]


def _records(record: Record, outer: tuple[int, ...]) -> Iterator[JsonValue]:
    columns = {
        field.key: list(islice(_probes(field.shape, outer), 16)) for field in record.fields.values()
    }
    needed = {field.key for field in record.fields.values() if field.required}
    if not all(columns[key] for key in needed):
        return
    base: dict[str, JsonValue] = {key: columns[key][0] for key in record.fields if key in needed}
    yield base
    for key, values in columns.items():
        for value in values:
            yield {**base, key: value}
    yield {key: values[-1] for key, values in columns.items() if values}
