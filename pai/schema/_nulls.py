"""The nulls that OpenAI's strict form forces for absent keys, taken out again."""

from __future__ import annotations

from ._json import JsonObject, JsonValue
from ._references import follow
from ._refusal import kind

__all__ = ("accepts_null", "undo_nulls")


def accepts_null(root: JsonObject, schema: JsonValue, seen: frozenset[int] = frozenset()) -> bool:
    """
    Does *schema* take null, as far as its types, constants and branches say?

    Args:
        root: The schema that local references are resolved in.
        schema: A part of it.
        seen: The parts being looked at already.
    """
    target = follow(root, schema)
    if not isinstance(target, dict):
        return target is True
    if id(target) in seen:
        return False
    inside = seen | {id(target)}
    types = target.get("type")
    if types is not None and types != "null" and not (isinstance(types, list) and "null" in types):
        return False
    values = target.get("enum")
    if "const" in target and target["const"] is not None:
        return False
    if isinstance(values, list) and None not in values:
        return False
    for name in ("anyOf", "oneOf"):
        branches = target.get(name)
        if isinstance(branches, list) and not any(
            accepts_null(root, branch, inside) for branch in branches
        ):
            return False
    both = target.get("allOf")
    return not isinstance(both, list) or all(accepts_null(root, part, inside) for part in both)


def undo_nulls(schema: JsonObject, value: JsonValue) -> JsonValue:
    """
    *value* without the nulls that stand for absent keys.

    A null goes where its key is optional in *schema* and does not itself take null; all others
    stay. Nothing is validated: what does not fit the schema is left as it is.

    Args:
        schema: The schema before `strict_form`.
        value: What a model wrote for the strict form.
    """
    return _Undo(schema).value(schema, value)


class _Undo:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        # Branches can meet the same value again and again; each pair is worked out once.
        self._done: dict[tuple[int, int], JsonValue] = {}
        self._fits: dict[tuple[int, int], bool] = {}
        # The pairs are known by id, and the id of what is gone is given out again.
        self._alive: list[JsonValue] = []

    def value(self, schema: JsonValue, value: JsonValue) -> JsonValue:
        target = follow(self._root, schema)
        if not isinstance(target, dict) or not isinstance(value, (dict, list)):
            return value
        key = (id(target), id(value))
        if key not in self._done:
            # Until it is known, a schema that only leads back to itself changes nothing.
            self._alive.append(value)
            self._done[key] = value
            self._done[key] = self._undone(target, value)
        return self._done[key]

    def _undone(
        self, schema: JsonObject, value: dict[str, JsonValue] | list[JsonValue]
    ) -> JsonValue:
        result: JsonValue = (
            self._object(schema, value) if isinstance(value, dict) else self._array(schema, value)
        )
        parts = schema.get("allOf")
        for part in parts if isinstance(parts, list) else ():
            result = self.value(part, result)
        for name in ("anyOf", "oneOf"):
            branches = schema.get(name)
            for branch in branches if isinstance(branches, list) else ():
                tried = self.value(branch, result)
                if self.fits(branch, tried):
                    result = tried
                    break
        return result

    def _object(self, schema: JsonObject, value: dict[str, JsonValue]) -> JsonObject:
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        needed = required if isinstance(required, list) else []
        other = schema.get("additionalProperties")
        return {
            key: self.value(known.get(key, other), item)
            for key, item in value.items()
            if item is not None
            or key not in known
            or key in needed
            or accepts_null(self._root, known[key])
        }

    def _array(self, schema: JsonObject, value: list[JsonValue]) -> list[JsonValue]:
        prefix = schema.get("prefixItems")
        first = prefix if isinstance(prefix, list) else []
        items = schema.get("items")
        return [
            self.value(first[index] if index < len(first) else items, item)
            for index, item in enumerate(value)
        ]

    def fits(self, schema: JsonValue, value: JsonValue) -> bool:
        """Does *value* look like one of *schema*? Enough to tell branches apart, no validation."""
        target = follow(self._root, schema)
        if not isinstance(target, dict):
            return target is not False
        key = (id(target), id(value))
        if key not in self._fits:
            self._alive.append(value)
            self._fits[key] = True
            self._fits[key] = self._looks_right(target, value)
        return self._fits[key]

    def _looks_right(self, schema: JsonObject, value: JsonValue) -> bool:
        if not _kind_fits(schema.get("type"), value):
            return False
        values = schema.get("enum")
        if "const" in schema and schema["const"] != value:
            return False
        if isinstance(values, list) and value not in values:
            return False
        for name in ("anyOf", "oneOf"):
            branches = schema.get(name)
            if isinstance(branches, list) and not any(self.fits(b, value) for b in branches):
                return False
        if isinstance(value, list):
            items = schema.get("items")
            return items is None or all(self.fits(items, item) for item in value)
        return not isinstance(value, dict) or self._keys_fit(schema, value)

    def _keys_fit(self, schema: JsonObject, value: dict[str, JsonValue]) -> bool:
        properties = schema.get("properties")
        known = properties if isinstance(properties, dict) else {}
        required = schema.get("required")
        if isinstance(required, list) and not all(name in value for name in required):
            return False
        if schema.get("additionalProperties") is False and not value.keys() <= known.keys():
            return False
        return all(self.fits(known[key], item) for key, item in value.items() if key in known)


def _kind_fits(types: JsonValue, value: JsonValue) -> bool:
    if types is None:
        return True
    names = types if isinstance(types, list) else [types]
    own = kind(value)
    if own == "number" and isinstance(value, float) and value.is_integer() and "integer" in names:
        return True
    return own in names or (own == "integer" and "number" in names)
