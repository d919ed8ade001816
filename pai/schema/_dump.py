"""Objects to JSON: the hooks that write what `_parse` reads."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from ._json import MAX_DEPTH, copy_json
from ._refusal import Refusal, expected
from ._scalars import DUMPERS
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
from ._walk import Walker

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = ("Dump", "compile_dump", "converter")

Dump: TypeAlias = Callable[[object], object]


@functools.cache
def converter() -> Converter:
    """The one cattrs converter, which only lends its settings to generated functions."""
    from cattrs import Converter

    return Converter()


def same(value: object) -> object:
    """What is JSON already stays as it is."""
    return value


def _located(dump: Dump, key: str) -> Dump:
    def located(value: object) -> object:
        try:
            return dump(value)
        except Refusal as refusal:
            raise Refusal(refusal.below(key)) from None

    return located


def compile_dump(shape: Shape) -> Dump:
    """The function that dumps objects of *shape*."""
    return _Compiler().dump(shape)


def any_value(value: object, depth: int = MAX_DEPTH) -> object:
    """Dump *value* by its own class: JSON, and inside it attrs objects, enums and times."""
    if depth == 0:
        raise Refusal.of("nested too deeply")
    if type(value) is list or type(value) is dict:
        steps: Iterable[tuple[str | int, object]]
        steps = value.items() if isinstance(value, dict) else enumerate(value)
        below: dict[str | int, object] = {}
        for step, item in steps:
            if type(value) is dict and type(step) is not str:
                raise Refusal.of(f"expected string keys, got {type(step).__name__}")
            try:
                below[step] = any_value(item, depth - 1)
            except Refusal as refusal:
                raise Refusal(refusal.below(step)) from None
        return list(below.values()) if type(value) is list else below
    if isinstance(value, enum.Enum):
        return any_value(value.value, depth)
    for cls, dump in DUMPERS.values():
        if isinstance(value, cls):
            return dump(value)
    own: type = type(value)
    if attrs.has(own):
        return _class_dump(own)(value)
    return copy_json(value)


@functools.lru_cache(maxsize=256)
def _class_dump(cls: type) -> Dump:
    walker = Walker()
    shape = walker.shape(cls, ())
    walker.finish()
    if walker.faults:
        raise Refusal.of(f"{cls.__name__} is not JSON: {walker.faults[0][1]}")
    return compile_dump(shape)


class _Compiler:
    def __init__(self) -> None:
        self._done: dict[int, Dump] = {}

    def dump(self, shape: Shape) -> Dump:
        match shape:
            case Leaf(name=name):
                return DUMPERS[name][1] if name in DUMPERS else same
            case Choice(cls=cls):
                return same if cls is None else _enum(cls)
            case Bounded(base=base):
                return self.dump(base)
            case Alias():
                return self._later(shape, lambda: self.dump(shape.target or AnyJson()))
            case Array(item=item):
                return _array(self.dump(item))
            case Fixed(items=items):
                return _fixed([self.dump(item) for item in items])
            case Table(key=key, value=value):
                return _table(None if key is None else self.dump(key), self.dump(value))
            case Record():
                return self._later(shape, lambda: self._record(shape))
            case Union():
                return self._union(shape)
            case _:
                return any_value

    def _later(self, shape: Shape, make: Callable[[], Dump]) -> Dump:
        """The hook of a shape that may contain itself: found when it is called, not when made."""
        done = self._done
        key = id(shape)
        if key not in done:

            def later(value: object) -> object:
                return done[key](value)

            done[key] = later
            done[key] = make()
        return done[key]

    def _record(self, record: Record) -> Dump:
        hooks = {
            field.key: _located(hook, field.key) if hook is not same else same
            for field in record.fields.values()
            for hook in [self.dump(field.shape)]
        }
        from_dict = _record_from_dict(hooks)
        cls = record.cls
        if cls is None:
            return from_dict

        from cattrs.fns import identity
        from cattrs.gen import make_dict_unstructure_fn_from_attrs, override

        fields = record.fields.values()
        overrides: dict[str, Any] = {
            field.name: override(
                rename=field.key,
                unstruct_hook=identity if hooks[field.key] is same else hooks[field.key],
            )
            for field in fields
        }
        from_object: Dump = make_dict_unstructure_fn_from_attrs(
            [_untyped(field.attribute) for field in fields if field.attribute is not None],
            cls,
            converter(),
            **overrides,
        )

        def from_class(value: object) -> object:
            if isinstance(value, cls):
                return from_object(value)
            if isinstance(value, dict):
                # Whoever hands over plain JSON for a class gets it checked when it is parsed.
                return from_dict(value)
            raise expected(cls.__name__, value)

        return from_class

    def _union(self, union: Union) -> Dump:
        by_type: dict[type, Dump] = {}
        tagged = {name: self.dump(record) for name, record in union.records.items()}
        members = [(classes(member), self.dump(member)) for member in union.members]
        for owned, hook in members:
            for cls in owned:
                by_type.setdefault(cls, hook)
        if union.tag is not None:
            by_type[dict] = _tagged(union.tag, tagged)

        def dump(value: object) -> object:
            hook = by_type.get(type(value))
            if hook is None:
                for cls, candidate in by_type.items():
                    if isinstance(value, cls) and cls is not int:
                        return candidate(value)
                raise Refusal.of(f"no member of the union takes {type(value).__name__}")
            return hook(value)

        return dump


def _untyped(attribute: attrs.Attribute[object]) -> attrs.Attribute[object]:
    """*attribute* without its type: cattrs is given the hook and must not resolve anything."""
    return attribute.evolve(type=None)


def classes(shape: Shape) -> tuple[type, ...]:
    """The Python classes whose objects *shape* dumps."""
    match shape:
        case Leaf(name=name):
            if name in DUMPERS:
                return (DUMPERS[name][0],)
            return {
                "integer": (int,),
                "number": (float, int),
                "string": (str,),
                "boolean": (bool,),
                "null": (type(None),),
            }[name]
        case Choice(values=values, cls=None):
            return tuple(dict.fromkeys(type(value) for value in values))
        case Choice(cls=cls) if cls is not None:
            return (cls, *dict.fromkeys(type(member.value) for member in cls))
        case Array() | Fixed():
            return (list, tuple)
        case Table():
            return (dict,)
        case Record(cls=cls):
            return (dict,) if cls is None else (cls, dict)
        case Bounded(base=base):
            return classes(base)
        case Alias(target=target) if target is not None:
            return classes(target)
        case Union(members=members):
            return tuple(cls for member in members for cls in classes(member))
        case _:
            return (object,)


def _enum(cls: type[enum.Enum]) -> Dump:
    def dump(value: object) -> object:
        return value.value if isinstance(value, cls) else value

    return dump


def _array(item: Dump) -> Dump:
    def dump(value: object) -> object:
        if type(value) is not list and type(value) is not tuple:
            if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
                raise expected("a list", value)
            value = list(value)
        if item is same:
            return list(value)
        result = []
        try:
            for entry in value:
                result.append(item(entry))
        except Refusal as refusal:
            raise Refusal(refusal.below(len(result))) from None
        return result

    return dump


def _fixed(items: list[Dump]) -> Dump:
    def dump(value: object) -> object:
        if not isinstance(value, (list, tuple)):
            raise expected("a tuple", value)
        if len(value) != len(items):
            raise Refusal.of(f"expected {len(items)} items, got {len(value)}")
        result: list[object] = []
        try:
            for hook, entry in zip(items, value, strict=True):
                result.append(hook(entry))
        except Refusal as refusal:
            raise Refusal(refusal.below(len(result))) from None
        return result

    return dump


def _table(key: Dump | None, item: Dump) -> Dump:
    def dump(value: object) -> object:
        if not isinstance(value, Mapping):
            raise expected("a dict", value)
        result: dict[object, object] = {}
        for name, entry in value.items():
            written = name if key is None else key(name)
            try:
                result[written] = item(entry)
            except Refusal as refusal:
                raise Refusal(refusal.below(str(name))) from None
        return result

    return dump


def _record_from_dict(hooks: dict[str, Dump]) -> Dump:
    def dump(value: object) -> object:
        if not isinstance(value, Mapping):
            raise expected("a dict", value)
        # Unknown keys stay: whoever parses the result refuses them with their path.
        return {key: hooks.get(key, any_value)(entry) for key, entry in value.items()}

    return dump


def _tagged(tag: str, records: dict[str, Dump]) -> Dump:
    def dump(value: object) -> object:
        assert isinstance(value, dict)
        hook = records.get(value.get(tag, ""))
        return any_value(value) if hook is None else hook(value)

    return dump
