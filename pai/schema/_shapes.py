"""
Shapes: what a type means as JSON, worked out once.

The walker turns a type into shapes and reports everything it cannot take. Whatever comes after
(parsing, dumping, JSON Schema, probes) reads shapes and no types, so all of them take the same
types and cannot come to differ about one.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ._json import JsonObject
from ._refusal import Way, kind

if TYPE_CHECKING:
    import attrs

__all__ = (
    "ABSENT",
    "REFUSED",
    "Alias",
    "AnyJson",
    "Array",
    "Bounded",
    "Check",
    "Choice",
    "Field",
    "Fixed",
    "Leaf",
    "Record",
    "Shape",
    "Table",
    "Union",
    "split_words",
    "strip",
)


class Shape:
    """The root of all shapes."""

    __slots__ = ()

    @property
    def kinds(self) -> frozenset[str]:
        """The JSON kinds of the values it may take."""
        raise NotImplementedError


class Leaf(Shape):
    """One of ``boolean integer number string null date-time date uuid``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def kinds(self) -> frozenset[str]:
        if self.name == "number":
            return frozenset({"integer", "number"})
        return frozenset({"string" if self.name in ("date-time", "date", "uuid") else self.name})


class AnyJson(Shape):
    """Any strict JSON value."""

    __slots__ = ()

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})


REFUSED: Final = AnyJson()
"""Stands where a type was refused, so that the walk goes on and finds the other faults."""


class Choice(Shape):
    """A ``Literal`` (then *cls* is None) or an enum: some values out of a list."""

    __slots__ = ("cls", "values")

    def __init__(
        self,
        values: tuple[str | int | bool | None, ...],
        cls: type[enum.Enum] | None = None,
    ) -> None:
        self.values = values
        self.cls = cls

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset(kind(value) for value in self.values)


class Array(Shape):
    """An array of any length, made into a list or a tuple."""

    __slots__ = ("item", "make")

    def __init__(self, item: Shape, make: type) -> None:
        self.item = item
        self.make = make

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"array"})


class Fixed(Shape):
    """An array of a fixed length, made into a tuple."""

    __slots__ = ("items",)

    def __init__(self, items: tuple[Shape, ...]) -> None:
        self.items = items

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"array"})


class Table(Shape):
    """An object with open keys."""

    __slots__ = ("key", "value")

    def __init__(self, key: Shape | None, value: Shape) -> None:
        self.key = key
        self.value = value

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"object"})


class _Absent(enum.Enum):
    ABSENT = "absent"


ABSENT: Final = _Absent.ABSENT
"""No default is known: ``None`` may be one."""


class Field:
    """
    One key of a record.

    Args:
        key: The key in JSON.
        name: The attribute or parameter in Python.
        default: What stands in for an absent value, as a Python object, if that is constant.
        attribute: What attrs knows of the field, for an attrs class.
        checks: The validators that are understood.
    """

    __slots__ = (
        "attribute",
        "checks",
        "default",
        "description",
        "key",
        "name",
        "required",
        "shape",
    )

    def __init__(
        self,
        key: str,
        name: str,
        shape: Shape,
        required: bool,
        default: object = ABSENT,
        description: str | None = None,
        attribute: attrs.Attribute[object] | None = None,
        checks: tuple[Check, ...] = (),
    ) -> None:
        self.key = key
        self.name = name
        self.shape = shape
        self.required = required
        self.default = default
        self.description = description
        self.attribute = attribute
        self.checks = checks


class Record(Shape):
    """
    An object with closed keys, made into an attrs class or, without *cls*, into a dict.

    Args:
        name: What it is called in ``$defs``.
        cls: The attrs class, not parametrised.
        doc: The docstring.
        way: Where the walker met it first.
    """

    __slots__ = ("cls", "doc", "fields", "name", "way")

    def __init__(
        self,
        name: str,
        cls: type | None,
        doc: str | None,
        way: Way,
        fields: dict[str, Field] | None = None,
    ) -> None:
        self.name = name
        self.cls = cls
        self.doc = doc
        self.way = way
        self.fields: dict[str, Field] = {} if fields is None else fields

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset({"object"})


class Union(Shape):
    """
    One of several shapes, told apart by kind, and several records by a tag.

    Args:
        members: All of them, nested unions taken apart.
        tag: The key whose constant tells records apart, if there is more than one.
        records: The records by their constant.
    """

    __slots__ = ("members", "records", "tag")

    def __init__(
        self,
        members: tuple[Shape, ...],
        tag: str | None = None,
        records: dict[str, Record] | None = None,
    ) -> None:
        self.members = members
        self.tag = tag
        self.records: dict[str, Record] = {} if records is None else records

    @property
    def kinds(self) -> frozenset[str]:
        return frozenset().union(*(member.kinds for member in self.members))


class Check:
    """
    One constraint on a value that is already of the right shape.

    Args:
        types: The Python classes it applies to; values of others pass. None: all.
        test: Is the value good?
        message: What to say if it is not.
        keywords: The same in JSON Schema, if that can say it.
    """

    __slots__ = ("keywords", "message", "test", "types")

    def __init__(
        self,
        types: tuple[type, ...] | None,
        test: Callable[[object], bool],
        message: str,
        keywords: JsonObject | None = None,
    ) -> None:
        self.types = types
        self.test = test
        self.message = message
        self.keywords: JsonObject = {} if keywords is None else keywords

    def passes(self, value: object) -> bool:
        """Is *value* good, or none of this check's business?"""
        if self.types is not None and type(value) not in self.types:
            return True
        return self.test(value)


class Bounded(Shape):
    """A shape with constraints or words of explanation added."""

    __slots__ = ("base", "checks", "description")

    def __init__(
        self,
        base: Shape,
        checks: tuple[Check, ...],
        description: str | None = None,
    ) -> None:
        self.base = base
        self.checks = checks
        self.description = description

    @property
    def kinds(self) -> frozenset[str]:
        return self.base.kinds


class Alias(Shape):
    """A named type that may mention itself; the target is filled in after the walk."""

    __slots__ = ("name", "target")

    def __init__(self, name: str, target: Shape | None = None) -> None:
        self.name = name
        self.target = target

    @property
    def kinds(self) -> frozenset[str]:
        target = strip(self)
        return frozenset() if isinstance(target, Alias) else target.kinds


def strip(shape: Shape) -> Shape:
    """The shape below names and bare words; an alias that only names itself stays."""
    seen: set[int] = set()
    while id(shape) not in seen:
        seen.add(id(shape))
        if isinstance(shape, Alias) and shape.target is not None:
            shape = shape.target
        elif isinstance(shape, Bounded) and not shape.checks:
            shape = shape.base
        else:
            break
    return shape


def split_words(shape: Shape) -> tuple[Shape, str | None]:
    """*shape* without its own words of explanation, and those words: a field takes them over."""
    if isinstance(shape, Bounded) and shape.description is not None:
        bare = Bounded(shape.base, shape.checks) if shape.checks else shape.base
        return bare, shape.description
    return shape, None
