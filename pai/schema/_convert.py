"""Values converted to what a JSON Schema wants, as far as that is beyond doubt (O-14)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set as AbstractSet
from typing import Any, Final

from ._json import JsonObject, JsonValue
from ._references import pointed_at

__all__ = ("converted",)

_DEEPEST: Final = 64
_NUMBER: Final = re.compile(r"[+-]?\d+(\.\d+)?([eE][+-]?\d+)?")
_SHARED: Final = ("$schema", "$defs", "definitions")


def converted(schema: JsonObject, value: JsonValue) -> JsonValue:
    """
    The value, with parts converted that are of another type than the schema wants.

    * a text of a number, ``true`` and ``false`` → a number; whole ones → an integer
    * ``"true"``, ``"false"``, ``1``, ``0`` → a bool
    * a number, ``true`` and ``false`` → a text
    * null → 0, false or ``""``; null of an optional key that takes none → no key
    * ``""``, 0, false → null, where nothing but null is taken

    A union takes its first member that the value fits after conversion; what fits already stays the
    very object. Nothing promises that the result fits.

    Args:
        schema: The JSON Schema of *value*; its references are local.
        value: Any JSON; it is not changed.
    """
    return _Converter(schema).of(schema, value, 0)


class _Converter:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._shared: JsonObject = {key: root[key] for key in _SHARED if key in root}
        self._checks: dict[int, tuple[object, Callable[[object], bool]]] = {}

    def of(
        self,
        schema: JsonValue,
        value: JsonValue,
        depth: int,
        required: AbstractSet[str] = frozenset(),
    ) -> JsonValue:
        """The value for *schema*; *required* are keys that schemas beside it require."""
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return value
        if isinstance(value, dict):
            required = required | self._required(schema, value, 0)
        for part in self._also(schema, value):
            value = self.of(part, value, depth + 1, required)
        for keyword in ("anyOf", "oneOf"):
            members = schema.get(keyword)
            if isinstance(members, list):
                value = self._member(members, value, depth)
        value = _typed(schema.get("type"), value)
        if isinstance(value, dict):
            return self._object(schema, value, depth, required)
        if isinstance(value, list):
            return self._array(schema, value, depth)
        return value

    def _also(self, schema: JsonObject, value: JsonValue) -> Iterator[JsonValue]:
        """Schemas that hold beside this one."""
        reference = schema.get("$ref")
        if isinstance(reference, str):
            yield pointed_at(self._root, reference)
        parts = schema.get("allOf")
        if isinstance(parts, list):
            yield from parts
        if "if" in schema:
            branch = "then" if self._fits(schema["if"], value) else "else"
            yield schema.get(branch)

    def _member(self, members: list[JsonValue], value: JsonValue, depth: int) -> JsonValue:
        if any(self._fits(member, value) for member in members):
            return value
        for member in members:
            made = self.of(member, value, depth + 1)
            if made is not value and self._fits(member, made):
                return made
        return value

    def _object(
        self, schema: JsonObject, value: JsonObject, depth: int, required: AbstractSet[str]
    ) -> JsonObject:
        out: JsonObject = {}
        changed = False
        for key, item in value.items():
            own = self._own(schema, key)
            if item is None and own and key not in required and not self._takes_null(own):
                changed = True
                continue
            made = item
            for part in own:
                made = self.of(part, made, depth + 1)
            changed = changed or made is not item
            out[key] = made
        return out if changed else value

    def _own(self, schema: JsonObject, key: str) -> list[JsonValue]:
        """The schemas of a key."""
        found: list[JsonValue] = []
        properties, patterns = schema.get("properties"), schema.get("patternProperties")
        if isinstance(properties, dict) and key in properties:
            found.append(properties[key])
        if isinstance(patterns, dict):
            found += [part for pattern, part in patterns.items() if _matches(pattern, key)]
        if not found and isinstance(schema.get("additionalProperties"), dict):
            found.append(schema["additionalProperties"])
        return found

    def _takes_null(self, schemas: list[JsonValue]) -> bool:
        return all(self._fits(schema, None) for schema in schemas)

    def _required(self, schema: JsonValue, value: JsonValue, depth: int) -> set[str]:
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return set()
        own = schema.get("required")
        found = {key for key in own if isinstance(key, str)} if isinstance(own, list) else set()
        for part in self._also(schema, value):
            found |= self._required(part, value, depth + 1)
        return found

    def _array(self, schema: JsonObject, value: list[JsonValue], depth: int) -> list[JsonValue]:
        prefix, rest = schema.get("prefixItems"), schema.get("items")
        if isinstance(rest, list):  # as older drafts have it
            prefix, rest = rest, schema.get("additionalItems")
        first = prefix if isinstance(prefix, list) else []
        out = [
            self.of(first[index] if index < len(first) else rest, item, depth + 1)
            for index, item in enumerate(value)
        ]
        same = all(made is item for made, item in zip(out, value, strict=True))
        return value if same else out

    def _fits(self, schema: JsonValue, value: JsonValue) -> bool:
        if not isinstance(schema, dict):
            return schema is not False
        # The schema is kept, so that no other one can have its id.
        kept = self._checks.get(id(schema))
        if kept is None:
            kept = self._checks[id(schema)] = schema, self._check(schema)
        return kept[1](value)

    def _check(self, schema: JsonObject) -> Callable[[object], bool]:
        from ._client import validator

        return validator({**self._shared, **schema})


def _matches(pattern: str, key: str) -> bool:
    try:
        return re.search(pattern, key) is not None
    except re.error:
        return False


def _typed(types: JsonValue, value: JsonValue) -> JsonValue:
    """The value as the first of the types that it can be converted to; as it is if it has one."""
    wanted = [types] if isinstance(types, str) else types
    if not isinstance(wanted, list) or any(_is(kind, value) for kind in wanted):
        return value
    for kind in wanted:
        convert = _CONVERSIONS.get(kind) if isinstance(kind, str) else None
        made = value if convert is None else convert(value)
        if made is not value:
            return made
    return value


_TYPES: Final[dict[str, Callable[[Any], bool]]] = {
    "null": lambda value: value is None,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, (int, float)) and not isinstance(value, bool),
    "string": lambda value: isinstance(value, str),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}


def _is(kind: JsonValue, value: JsonValue) -> bool:
    check = _TYPES.get(kind) if isinstance(kind, str) else None
    return check is not None and check(value)


def _to_number(value: JsonValue) -> JsonValue:
    if value is None:
        return 0
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and _NUMBER.fullmatch(text := value.strip()) and len(text) <= 32:
        number = float(text)
        if number not in (float("inf"), float("-inf")):
            return int(text) if text.lstrip("+-").isdecimal() else number
    return value


def _to_integer(value: JsonValue) -> JsonValue:
    made = _to_number(value)
    if isinstance(made, float):
        return int(made) if made.is_integer() else value
    return made


def _to_bool(value: JsonValue) -> JsonValue:
    if value is None:
        return False
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower(), value)
    if isinstance(value, (int, float)) and value in (0, 1):
        return bool(value)
    return value


def _to_text(value: JsonValue) -> JsonValue:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, (int, float)) else value


def _to_null(value: JsonValue) -> JsonValue:
    return None if isinstance(value, (str, int, float)) and not value else value


_CONVERSIONS: Final[dict[str, Callable[[JsonValue], JsonValue]]] = {
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_bool,
    "string": _to_text,
    "null": _to_null,
}
