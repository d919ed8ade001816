"""Types into shapes: what is accepted, and why the rest is not."""

from __future__ import annotations

import datetime as dt
import enum
import typing
import uuid
from collections import abc
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeVar, get_args, get_origin

import attrs

from ._checks import NotUnderstood, annotation_checks, description_in
from ._json import SAFE_INTEGER
from ._names import bind, type_name
from ._records import RecordWalker
from ._refusal import Found, Way
from ._shapes import (
    REFUSED,
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
    strip,
)
from ._unions import Ambiguous, make_union, merge_choices

__all__ = ("Walker",)

_LEAVES: dict[object, str] = {
    NoneType: "null",
    None: "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    dt.datetime: "date-time",
    dt.date: "date",
    uuid.UUID: "uuid",
}

_ARRAYS: dict[object, type] = {list: list, abc.Sequence: list, abc.MutableSequence: list}
_TABLES = (dict, abc.Mapping, abc.MutableMapping)

_INSTEAD = {
    "set": "use list",
    "frozenset": "use list or tuple",
    "Set": "use list",
    "bytes": "use str, in base64 say",
    "Decimal": "use str, int or float",
    "complex": "use a class with two fields",
    "timedelta": "use int or float and say the unit",
    "time": "use str",
    "Path": "use str",
    "Iterable": "use list",
    "Iterator": "use list",
    "Final": "leave it out",
}


class Walker:
    """
    One walk over a type and everything it mentions.

    Args:
        faults: Filled while walking; a walk with faults has no usable shapes.
    """

    def __init__(self) -> None:
        self.faults: list[Found] = []
        self.records: dict[object, Record] = {}
        self._aliases: dict[object, Alias] = {}
        self._unions: list[tuple[Union, object, Way]] = []
        self._maker = RecordWalker(self)

    def refuse(self, way: Way, message: str) -> Shape:
        """Note a fault; the shape returned only keeps the walk going."""
        self.faults.append((way, message))
        return REFUSED

    def finish(self) -> None:
        """Do what needs every shape to be complete: find the tags of unions."""
        for union, tp, way in self._unions:
            if any(strip(member) is REFUSED for member in union.members):
                continue
            try:
                made = make_union(union)
            except Ambiguous as error:
                self.refuse(way, f"{type_name(tp)}: {error}")
            else:
                union.members, union.tag, union.records = made.members, made.tag, made.records
        for key, alias in self._aliases.items():
            if isinstance(strip(alias), Alias):
                self.refuse((), f"{type_name(key)} only names itself")

    def shape(self, tp: object, way: Way) -> Shape:
        """The shape of *tp*, which was met at *way*."""
        try:
            leaf = _LEAVES.get(tp)
        except TypeError:
            leaf = None
        if leaf is not None:
            return Leaf(leaf)
        if tp is typing.Any or tp is object:
            return AnyJson()
        origin, args = get_origin(tp), get_args(tp)
        special = self._special(tp, origin, args, way)
        if special is not None:
            return special
        if isinstance(origin, type):
            return self._generic(tp, origin, args, way)
        if isinstance(tp, type):
            return self._class(tp, way)
        return self._unknown(tp, way)

    def _special(
        self, tp: object, origin: object, args: tuple[object, ...], way: Way
    ) -> Shape | None:
        if origin is Annotated:
            return self._annotated(args[0], args[1:], way)
        if origin is Literal:
            return self._literal(tp, args, way)
        if origin is typing.Union or origin is UnionType:
            return self._union(tp, args, way)
        if origin is typing.Final and args:
            return self.shape(args[0], way)
        if hasattr(tp, "__supertype__"):
            return self.shape(tp.__supertype__, way)
        if type(tp).__name__ == "TypeAliasType" or type(origin).__name__ == "TypeAliasType":
            return self._alias(tp, origin, args, way)
        if isinstance(tp, TypeVar):
            if tp.__bound__ is not None:
                return self.shape(tp.__bound__, way)
            return self.refuse(way, f"the type variable {tp.__name__} stands for no type here")
        return None

    def _annotated(self, base: object, metadata: tuple[object, ...], way: Way) -> Shape:
        shape = self.shape(base, way)
        if shape is REFUSED:
            return shape
        try:
            checks = tuple(annotation_checks(metadata, shape))
        except NotUnderstood as error:
            return self.refuse(way, str(error))
        description = description_in(metadata)
        return Bounded(shape, checks, description) if checks or description else shape

    def _literal(self, tp: object, args: tuple[object, ...], way: Way) -> Shape:
        for value in args:
            if not (value is None or type(value) in (str, int, bool)) or _too_big(value):
                return self.refuse(
                    way, f"{type_name(tp)}: only str, int, bool and None can be literals"
                )
        return Choice(args)  # type: ignore[arg-type]

    def _union(self, tp: object, args: tuple[object, ...], way: Way) -> Shape:
        members = merge_choices([self.shape(arg, way) for arg in args])
        if len(members) == 1:
            return members[0]
        union = Union(tuple(members))
        self._unions.append((union, tp, way))
        return union

    def _alias(self, tp: object, origin: object, args: tuple[object, ...], way: Way) -> Shape:
        try:
            if (known := self._aliases.get(tp)) is not None:
                return known
            named = tp if origin is None else origin
            alias = self._aliases[tp] = Alias(str(getattr(named, "__name__", named)))
        except TypeError:
            return self.refuse(way, f"{type_name(tp)}: its arguments must be hashable")
        value: object = named.__value__  # type: ignore[attr-defined]
        parameters: tuple[object, ...] = getattr(named, "__type_params__", ())
        alias.target = self.shape(bind(value, dict(zip(parameters, args, strict=False))), way)
        return alias

    def _generic(self, tp: object, origin: type, args: tuple[object, ...], way: Way) -> Shape:
        if origin in _ARRAYS:
            return Array(self.shape(args[0], way), _ARRAYS[origin])
        if origin is tuple:
            if len(args) == 2 and args[1] is Ellipsis:
                return Array(self.shape(args[0], way), tuple)
            return Fixed(tuple(self.shape(arg, way) for arg in args))
        if origin in _TABLES:
            return Table(self._key(args[0], way), self.shape(args[1], way))
        return self._record(tp, origin, args, way) or self._unknown(tp, way)

    def _key(self, tp: object, way: Way) -> Shape | None:
        if tp is str:
            return None
        shape = self.shape(tp, way)
        if shape is REFUSED:
            return None
        bare = strip(shape)
        while isinstance(bare, Bounded):
            bare = strip(bare.base)
        if isinstance(bare, Leaf | Choice) and bare.kinds == {"string"}:
            return None if isinstance(bare, Leaf) and shape is bare else shape
        self.refuse(way, f"keys of an object are strings, not {type_name(tp)}")
        return None

    def _class(self, tp: type, way: Way) -> Shape:
        if tp in _ARRAYS:
            return Array(AnyJson(), _ARRAYS[tp])
        if tp is tuple:
            return Array(AnyJson(), tuple)
        if tp in _TABLES:
            return Table(None, AnyJson())
        if issubclass(tp, enum.Enum):
            return self._enum(tp, way)
        return self._record(tp, tp, (), way) or self._unknown(tp, way)

    def _enum(self, tp: type[enum.Enum], way: Way) -> Shape:
        values = [member.value for member in tp]
        if not values or any(type(value) not in (str, int) or _too_big(value) for value in values):
            return self.refuse(
                way, f"{tp.__name__}: every member of an enum must have a str or int as its value"
            )
        return Choice(tuple(values), tp)

    def _record(self, tp: object, cls: type, args: tuple[object, ...], way: Way) -> Record | None:
        make: Callable[[Record, type, tuple[object, ...], Way], None]
        if attrs.has(cls):
            make = self._maker.fill_class
        elif typing.is_typeddict(cls):
            make = self._maker.fill_typed_dict
        else:
            return None
        try:
            if (known := self.records.get(tp)) is not None:
                return known
        except TypeError:
            self.refuse(way, f"{type_name(tp)}: its arguments must be hashable")
            return Record("", None, None, way)
        record = self.records[tp] = self._maker.start(tp, cls, way)
        make(record, cls, args, way)
        return record

    def _unknown(self, tp: object, way: Way) -> Shape:
        if isinstance(tp, str):
            return self.refuse(way, f"cannot resolve the annotation {tp!r}")
        origin = get_origin(tp) or tp
        name = str(getattr(origin, "__name__", ""))
        hint = _INSTEAD.get(name, "")
        if not hint:
            hint = "declare an attrs class" if isinstance(origin, type) else "it is not a type"
        return self.refuse(way, f"{type_name(tp)} is not accepted in a schema: {hint}")


def _too_big(value: object) -> bool:
    return type(value) is int and abs(value) > SAFE_INTEGER
