"""JSON to objects: strict, and with every fault found on the way."""

from __future__ import annotations

from collections.abc import Callable

from ._json import MAX_DEPTH, check_text, copy_json
from ._parse_record import Parse, class_record, dict_record
from ._refusal import Found, Refusal, expected
from ._scalars import PARSERS
from ._shapes import (
    Alias,
    AnyJson,
    Array,
    Bounded,
    Check,
    Choice,
    Fixed,
    Leaf,
    Record,
    Shape,
    Table,
    Union,
)
from ._unions import is_plain_integer

__all__ = ("Compiler", "Parse", "compile_parse")


def compile_parse(shape: Shape) -> Parse:
    """The function that parses JSON of *shape*, raising `Refusal`."""
    compiler = Compiler()
    parse = compiler.parse(shape)
    if not compiler.recursive:
        return parse

    def shallow(value: object, _: object = None) -> object:
        if _too_deep(value):
            raise Refusal.of("nested too deeply")
        return parse(value)

    return shallow


def _too_deep(value: object) -> bool:
    """Only a type that contains itself allows values of any depth."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[object] = []
        for item in level:
            if type(item) is list:
                below.extend(inner for inner in item if type(inner) in (list, dict))
            elif type(item) is dict:
                below.extend(inner for inner in item.values() if type(inner) in (list, dict))
        if not below:
            return False
        level = below
    return True


class Compiler:
    """Makes the function that parses a shape, and those of its parts."""

    def __init__(self) -> None:
        self.recursive = False
        self._done: dict[int, Parse] = {}
        self._open: set[int] = set()

    def parse(self, shape: Shape) -> Parse:
        """The function for *shape*; it raises `Refusal`."""
        match shape:
            case Leaf(name=name):
                return PARSERS[name]
            case Choice():
                return _choice(shape)
            case Bounded(base=base, checks=checks):
                return _bounded(self.parse(base), checks)
            case Alias():
                return self._later(shape, lambda: self.parse(shape.target or AnyJson()))
            case Array(item=item, make=make):
                return _array(self.parse(item), make)
            case Fixed(items=items):
                return _fixed([self.parse(item) for item in items])
            case Table(key=key, value=value):
                return _table(None if key is None else self.parse(key), self.parse(value))
            case Record():
                return self._later(shape, lambda: self._record(shape))
            case Union():
                return self._union(shape)
            case _:
                return lambda value, _=None: copy_json(value)

    def _later(self, shape: Shape, make: Callable[[], Parse]) -> Parse:
        done, key = self._done, id(shape)
        if key in self._open:
            self.recursive = True
            return lambda value, _=None: done[key](value)
        if key not in done:
            self._open.add(key)
            done[key] = make()
            self._open.discard(key)
        return done[key]

    def _record(self, record: Record) -> Parse:
        hooks = {key: self.parse(field.shape) for key, field in record.fields.items()}
        if record.cls is None:
            return dict_record(record, hooks)
        return class_record(record, record.cls, hooks)

    def _union(self, union: Union) -> Parse:
        by_type: dict[type, Parse] = {}
        kinds = {"null": type(None), "boolean": bool, "integer": int, "number": float}
        kinds |= {"string": str, "array": list, "object": dict}
        integer: Parse | None = None
        for member in union.members:
            hook = self.parse(member)
            if is_plain_integer(member):
                integer = hook
                continue
            for name in member.kinds:
                by_type[kinds[name]] = hook
            if "integer" in member.kinds:
                by_type.setdefault(float, hook)
        if integer is not None:
            by_type[int] = integer
            by_type[float] = _whole_or_not(integer, by_type.get(float))
        if union.tag is not None:
            hooks = {name: self.parse(record) for name, record in union.records.items()}
            by_type[dict] = _tagged(union.tag, hooks)
        # Objects of the classes themselves are taken where the class is.
        classes = {
            member.cls: self.parse(member)
            for member in union.members
            if isinstance(member, Record) and member.cls is not None
        }
        kinds_taken = union.kinds - {"integer"} if "number" in union.kinds else union.kinds
        names = " or ".join(sorted(kinds_taken))

        def parse(value: object, _: object = None) -> object:
            hook = by_type.get(type(value)) or classes.get(type(value))
            if hook is None:
                raise expected(names, value)
            return hook(value)

        return parse


def _whole_or_not(integer: Parse, number: Parse | None) -> Parse:
    if number is None:
        return integer

    def parse(value: object, _: object = None) -> object:
        whole = isinstance(value, float) and value.is_integer()
        return integer(value) if whole else number(value)

    return parse


def _tagged(tag: str, records: dict[str, Parse]) -> Parse:
    names = ", ".join(map(repr, records))

    def parse(value: object, _: object = None) -> object:
        assert isinstance(value, dict)
        if tag not in value:
            raise Refusal([((tag,), f"required: one of {names}")])
        constant = value[tag]
        hook = records.get(constant) if type(constant) is str else None
        if hook is None:
            raise Refusal([((tag,), f"expected one of {names}")])
        return hook(value)

    return parse


def _choice(choice: Choice) -> Parse:
    members = choice.values if choice.cls is None else tuple(choice.cls)
    table: dict[tuple[type, object], object] = {
        (type(value), value): member for value, member in zip(choice.values, members, strict=True)
    }
    names = ", ".join(map(repr, choice.values))

    def parse(value: object, _: object = None) -> object:
        if type(value) is float and value.is_integer():
            value = int(value)
        try:
            # By class too: True equals 1.
            return table[type(value), value]
        except (KeyError, TypeError):
            raise Refusal.of(f"expected one of {names}") from None

    return parse


def _bounded(base: Parse, checks: tuple[Check, ...]) -> Parse:
    if not checks:
        return base

    def parse(value: object, _: object = None) -> object:
        result = base(value)
        failed = [check.message for check in checks if not check.passes(result)]
        if failed:
            raise Refusal([((), message) for message in failed])
        return result

    return parse


def _array(item: Parse, make: type) -> Parse:
    def parse(value: object, _: object = None) -> object:
        if type(value) is not list:
            raise expected("array", value)
        result: list[object] = []
        append = result.append
        found: list[Found] = []
        for entry in value:
            try:
                append(item(entry))
            except Refusal as refusal:
                # Good entries are of no use any more; their number is.
                found += refusal.below(len(result))
                append(None)
        if found:
            raise Refusal(found)
        return result if make is list else make(result)

    return parse


def _fixed(items: list[Parse]) -> Parse:
    def parse(value: object, _: object = None) -> object:
        if type(value) is not list:
            raise expected("array", value)
        if len(value) != len(items):
            raise Refusal.of(f"expected {len(items)} items, got {len(value)}")
        result: list[object] = []
        found: list[Found] = []
        for hook, entry in zip(items, value, strict=True):
            try:
                result.append(hook(entry))
            except Refusal as refusal:
                found += refusal.below(len(result))
                result.append(None)
        if found:
            raise Refusal(found)
        return tuple(result)

    return parse


def _key_faults(name: object, key: Parse | None) -> list[Found]:
    if type(name) is not str:
        return [((), f"expected string keys, got {type(name).__name__}")]
    if not check_text(name):
        return [((name,), "a lone surrogate is not text")]
    if key is not None:
        try:
            key(name)
        except Refusal as refusal:
            return [((name,), f"the key: {message}") for _, message in refusal.found]
    return []


def _table(key: Parse | None, item: Parse) -> Parse:
    def parse(value: object, _: object = None) -> object:
        if type(value) is not dict:
            raise expected("object", value)
        result: dict[object, object] = {}
        found: list[Found] = []
        for name, entry in value.items():
            if faults := _key_faults(name, key):
                found += faults
                continue
            try:
                result[name if key is None else key(name)] = item(entry)
            except Refusal as refusal:
                found += refusal.below(name)
        if found:
            raise Refusal(found)
        return result

    return parse
