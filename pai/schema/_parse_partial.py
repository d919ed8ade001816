"""JSON that is still being written to objects: as much of them as there is."""

from __future__ import annotations

import attrs

from ._parse import Compiler, Parse
from ._refusal import Refusal, expected
from ._scalars import PARSERS
from ._shapes import Array, Bounded, Fixed, Record, Shape, Table
from ._unset import UNSET

__all__ = ("compile_partial",)


def compile_partial(shape: Shape) -> Parse:
    """
    The function that makes what there is of an object of *shape*.

    Single values are parsed as ever. What cannot be told yet, or does not fit, is left out of what
    holds it; `Refusal` is raised where that is all there is.
    """
    return _PartialCompiler().parse(shape)


class _PartialCompiler(Compiler):
    def parse(self, shape: Shape) -> Parse:
        match shape:
            case Bounded(base=base):
                # A text may be too short because it goes on.
                return self.parse(base)
            case Array(item=item, make=make):
                return _array(self.parse(item), make)
            case Fixed(items=items):
                return _fixed([self.parse(item) for item in items])
            case Table(key=key, value=value):
                name = PARSERS["string"] if key is None else self.parse(key)
                return _table(name, self.parse(value))
            case _:
                return super().parse(shape)

    def _record(self, record: Record) -> Parse:
        hooks = {key: self.parse(field.shape) for key, field in record.fields.items()}
        if record.cls is None:
            return lambda value, _=None: _known(hooks, value)
        return _instance(record, record.cls, hooks)


def _known(hooks: dict[str, Parse], value: object) -> dict[str, object]:
    """The keys that are there already."""
    if type(value) is not dict:
        raise expected("object", value)
    result: dict[str, object] = {}
    for key, hook in hooks.items():
        if key in value:
            try:
                result[key] = hook(value[key])
            except Refusal:
                continue
    return result


def _instance(record: Record, cls: type, hooks: dict[str, Parse]) -> Parse:
    names = {key: field.name for key, field in record.fields.items()}
    every = [attribute.name for attribute in attrs.fields(cls)]

    def parse(value: object, _: object = None) -> object:
        known = _known(hooks, value)
        try:
            made: object = cls.__new__(cls)  # type: ignore[call-overload]  # it is no metaclass
        except Exception:
            # Its own __new__ wants more than there is.
            raise Refusal.of("cannot be made of a part") from None
        # Neither __init__ nor __setattr__ of the class: both may demand that it is whole.
        for name in every:
            object.__setattr__(made, name, UNSET)
        for key, item in known.items():
            object.__setattr__(made, names[key], item)
        return made

    return parse


def _array(item: Parse, make: type) -> Parse:
    def parse(value: object, _: object = None) -> object:
        if type(value) is not list:
            raise expected("array", value)
        result: list[object] = []
        for entry in value:
            try:
                result.append(item(entry))
            except Refusal:
                continue
        return result if make is list else make(result)

    return parse


def _fixed(items: list[Parse]) -> Parse:
    def parse(value: object, _: object = None) -> object:
        if type(value) is not list:
            raise expected("array", value)
        result: list[object] = []
        for hook, entry in zip(items, value, strict=False):
            try:
                result.append(hook(entry))
            except Refusal:
                # What follows would stand in a wrong place.
                break
        return tuple(result)

    return parse


def _table(key: Parse, item: Parse) -> Parse:
    def parse(value: object, _: object = None) -> object:
        if type(value) is not dict:
            raise expected("object", value)
        result: dict[object, object] = {}
        for name, entry in value.items():
            try:
                result[key(name)] = item(entry)
            except Refusal:
                continue
        return result

    return parse
