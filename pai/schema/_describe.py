"""Shapes into JSON Schema, draft 2020-12."""

from __future__ import annotations

from collections.abc import Callable

from ._docs import read_docs
from ._dump import compile_dump
from ._json import JsonObject, JsonValue, check_json
from ._parse_record import apply_converter
from ._refusal import kind
from ._shapes import (
    ABSENT,
    Alias,
    AnyJson,
    Array,
    Bounded,
    Choice,
    Field,
    Fixed,
    Leaf,
    Record,
    Shape,
    Table,
    Union,
    strip,
)

__all__ = ("describe",)

_FORMATS = ("date-time", "date", "uuid")


def describe(shape: Shape) -> JsonObject:
    """
    The JSON Schema of *shape*: closed objects, constraints, descriptions, constant defaults.

    A record at the root stands there itself; classes, enums and named types inside lie in
    ``$defs``.
    """
    describer = _Describer()
    root = strip(shape)
    result = describer.record(root) if isinstance(root, Record) else describer.of(shape)
    if describer.defs:
        result["$defs"] = dict(sorted(describer.defs.items()))
    return result


class _Describer:
    def __init__(self) -> None:
        self.defs: JsonObject = {}
        self._names: dict[int, str] = {}

    def of(self, shape: Shape) -> JsonObject:
        match shape:
            case Leaf(name=name):
                return {"type": "string", "format": name} if name in _FORMATS else {"type": name}
            case Choice(cls=None):
                return _literal(shape)
            case Choice(cls=cls) if cls is not None:
                return self._ref(id(cls), cls.__name__, lambda: _enum(shape))
            case Array(item=item):
                return {"type": "array", **_unless_empty("items", self.of(item))}
            case Fixed(items=items):
                return _fixed([self.of(item) for item in items])
            case Table(key=key, value=value):
                return {
                    "type": "object",
                    **({} if key is None else {"propertyNames": self.of(key)}),
                    **_unless_empty("additionalProperties", self.of(value)),
                }
            case Bounded():
                return self._bounded(shape)
            case Alias(name=name, target=target):
                return self._ref(id(shape), name, lambda: self.of(target or AnyJson()))
            case Record(name=name):
                return self._ref(id(shape), name, lambda: self.record(shape))
            case Union():
                return self._union(shape)
            case _:
                return {}

    def record(self, record: Record) -> JsonObject:
        docs = read_docs(record.doc)
        properties: JsonObject = {}
        for field in record.fields.values():
            properties[field.key] = self._field(field, docs.fields.get(field.name, ""))
        required: list[JsonValue] = [f.key for f in record.fields.values() if f.required]
        return {
            "type": "object",
            **({"description": docs.text} if docs.text else {}),
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": False,
        }

    def _field(self, field: Field, documented: str) -> JsonObject:
        result = self.of(field.shape)
        for check in field.checks:
            result = _with(result, check.keywords)
        if words := field.description or documented:
            result = {**result, "description": words}
        if field.default is not ABSENT:
            try:
                made = apply_converter(None, field, field.default)
                default = compile_dump(field.shape)(made)
            except Exception:
                # Only converters that read the object they belong to cannot be asked here.
                return result
            if not check_json(default):
                result = {**result, "default": default}  # type: ignore[dict-item]
        return result

    def _bounded(self, shape: Bounded) -> JsonObject:
        result = self.of(shape.base)
        for check in shape.checks:
            result = _with(result, check.keywords)
        if shape.description:
            result = {**result, "description": shape.description}
        return result

    def _union(self, union: Union) -> JsonObject:
        if len(union.members) == 1:
            return self.of(union.members[0])
        return {"anyOf": [self._member(member, union.tag) for member in union.members]}

    def _member(self, member: Shape, tag: str | None) -> JsonObject:
        result = self.of(member)
        record = strip(member)
        if tag is not None and isinstance(record, Record) and not record.fields[tag].required:
            # Alone, the record can do without its tag; among others it cannot.
            result = {**result, "required": [tag]}
        return result

    def _ref(self, key: int, name: str, make: Callable[[], JsonObject]) -> JsonObject:
        if key not in self._names:
            unique, number = name, 2
            while unique in self.defs:
                unique, number = f"{name}_{number}", number + 1
            self._names[key] = unique
            self.defs[unique] = {}
            self.defs[unique] = make()
        return {"$ref": f"#/$defs/{self._names[key]}"}


def _unless_empty(keyword: str, schema: JsonObject) -> JsonObject:
    return {keyword: schema} if schema else {}


def _with(schema: JsonObject, keywords: JsonObject) -> JsonObject:
    """*schema* and *keywords*, both of which must hold."""
    result, apart = dict(schema), JsonObject()
    for name, value in keywords.items():
        known = result.setdefault(name, value)
        if known == value:
            continue
        if isinstance(known, (int, float)) and isinstance(value, (int, float)):
            if name.startswith(("min", "exclusiveMin")):
                result[name] = max(known, value)
                continue
            if name.startswith(("max", "exclusiveMax")):
                result[name] = min(known, value)
                continue
        apart[name] = value
    return {"allOf": [result, apart]} if apart else result


def _type_of(values: tuple[str | int | bool | None, ...]) -> JsonValue:
    kinds: list[JsonValue] = list(dict.fromkeys(kind(value) for value in values))
    return kinds[0] if len(kinds) == 1 else kinds


def _literal(choice: Choice) -> JsonObject:
    values: list[JsonValue] = list(choice.values)
    only: JsonObject = {"const": values[0]} if len(values) == 1 else {"enum": values}
    return {"type": _type_of(choice.values), **only}


def _enum(choice: Choice) -> JsonObject:
    assert choice.cls is not None
    own = choice.cls.__dict__.get("__doc__")
    text = read_docs(own).text if isinstance(own, str) else ""
    return {
        "type": _type_of(choice.values),
        "enum": list(choice.values),
        **({"description": text} if text and text != "An enumeration." else {}),
    }


def _fixed(items: list[JsonObject]) -> JsonObject:
    size = len(items)
    prefix: JsonObject = {"prefixItems": list(items)} if items else {}
    return {"type": "array", **prefix, "minItems": size, "maxItems": size}
