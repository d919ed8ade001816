"""
JSON Schema in the strict form of OpenAI's structured outputs.

In that form every object is closed and every key required; a key that may be absent is nullable
instead. What the strict form allows, the schema allows too once `undo_nulls` has taken the forced
nulls out. A schema for which that cannot be had has no strict form.
"""

from __future__ import annotations

from ._json import JsonObject, JsonValue
from ._nulls import accepts_null
from ._references import pointed_at
from ._refusal import kind

__all__ = ("strict_form",)

# Words only: without them a schema means the same.
_WORDS = frozenset(
    {
        "$comment",
        "$id",
        "$schema",
        "default",
        "deprecated",
        "examples",
        "readOnly",
        "title",
        "writeOnly",
    }
)
_KEPT = frozenset(
    {
        "description",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
    }
)
_FORMATS = frozenset(
    {
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "time",
        "uuid",
    }
)
_TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
_NO_EFFECT: dict[str, JsonValue] = {
    "minLength": 0,
    "minProperties": 0,
    "patternProperties": {},
    "uniqueItems": False,
}
_MAX_PROPERTIES = 5000
_MAX_ENUM = 1000
_MAX_NESTING = 10


class _Inexpressible(Exception):
    """A part of the schema has no strict form."""


def strict_form(schema: JsonObject) -> JsonObject | None:
    """
    *schema* in strict form, or None where it has none.

    Open objects, any-value schemas, tuples and constraints that the form lacks (lengths of strings,
    say) cannot be expressed: leaving a constraint out would let through what the schema refuses.

    Args:
        schema: A JSON Schema whose references are local; its root must be an object.
    """
    try:
        return _Strict(schema).root()
    except _Inexpressible:
        return None


class _Strict:
    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._properties = 0
        self._enum = 0
        self._inlined: list[str] = []
        self._tags: dict[str, list[JsonValue]] = {}
        self._find_tags(root)

    def _find_tags(self, schema: JsonValue) -> None:
        """
        Note the keys that a reference demands beyond what its target does.

        Those tell the branches of a union apart, so no branch may leave one out or write null.
        """
        if isinstance(schema, list):
            for item in schema:
                self._find_tags(item)
        elif isinstance(schema, dict):
            reference, required = schema.get("$ref"), schema.get("required")
            if isinstance(reference, str) and isinstance(required, list):
                self._tags.setdefault(reference, []).extend(required)
            for item in schema.values():
                self._find_tags(item)

    def _target(self, reference: JsonValue) -> JsonObject:
        target = pointed_at(self._root, reference) if isinstance(reference, str) else None
        if not isinstance(reference, str) or not isinstance(target, dict):
            raise _Inexpressible
        return self._with_tags(reference, target)

    def _with_tags(self, reference: str, target: JsonObject) -> JsonObject:
        tags, required = self._tags.get(reference, []), target.get("required", [])
        if not tags or not isinstance(required, list):
            return target
        return {**target, "required": [*required, *tags]}

    def root(self) -> JsonObject:
        schema = self._root
        own = {key: value for key, value in schema.items() if key not in ("$defs", "definitions")}
        result = self._schema(own, 0)
        if "$ref" in result:
            # The form wants the object itself at the root.
            result = self._schema(self._target(result["$ref"]), 0)
        if result.get("type") != "object":
            raise _Inexpressible
        for name in ("$defs", "definitions"):
            defs = schema.get(name)
            if isinstance(defs, dict):
                result[name] = {
                    key: self._schema(self._with_tags(f"#/{name}/{key}", value), 0)
                    for key, value in defs.items()
                    if isinstance(value, dict)
                }
        return result

    def _schema(self, schema: JsonValue, level: int) -> JsonObject:
        if not isinstance(schema, dict) or level > _MAX_NESTING:
            raise _Inexpressible
        schema = {key: value for key, value in schema.items() if key not in _WORDS}
        for key, value in _NO_EFFECT.items():
            if key in schema and schema[key] == value:
                del schema[key]
        only = schema.get("allOf")
        if isinstance(only, list) and len(only) == 1 and isinstance(only[0], dict):
            rest = {key: value for key, value in schema.items() if key != "allOf"}
            if rest.keys() & only[0].keys() - {"description"}:
                raise _Inexpressible
            return self._schema({**only[0], **rest}, level)
        if "$ref" in schema:
            return self._reference(schema, level)
        result: JsonObject = {}
        for key, value in schema.items():
            result.update(self._keyword(key, value, schema, level))
        if "type" not in result and "anyOf" not in result:
            raise _Inexpressible
        if _has(result, "object"):
            self._object(schema, result, level)
        if _has(result, "array") and "items" not in result:
            raise _Inexpressible
        return result

    def _keyword(self, key: str, value: JsonValue, schema: JsonObject, level: int) -> JsonObject:
        if key in _KEPT:
            return {key: value}
        if key == "type":
            names = value if isinstance(value, list) else [value]
            if not names or not all(name in _TYPES for name in names):
                raise _Inexpressible
            return {key: value}
        if key in ("enum", "const"):
            return self._values([value] if key == "const" else value, "type" in schema)
        if key == "pattern" and isinstance(value, str) and not _looks_around(value):
            return {key: value}
        if key == "format" and value in _FORMATS:
            return {key: value}
        if key == "anyOf" and isinstance(value, list):
            return {key: [self._schema(branch, level) for branch in value]}
        if key == "items":
            return {key: self._schema(value, level + 1)}
        if key in ("properties", "required", "additionalProperties"):
            # Read together, when the object is made.
            return {}
        raise _Inexpressible

    def _values(self, values: JsonValue, typed: bool) -> JsonObject:
        if not isinstance(values, list) or not values:
            raise _Inexpressible
        self._enum += len(values)
        if self._enum > _MAX_ENUM:
            raise _Inexpressible
        kinds: list[JsonValue] = list(dict.fromkeys(kind(value) for value in values))
        if not _TYPES - {"array", "object"} >= set(map(str, kinds)):
            raise _Inexpressible
        return {
            **({} if typed else {"type": kinds if len(kinds) > 1 else kinds[0]}),
            "enum": values,
        }

    def _object(self, schema: JsonObject, result: JsonObject, level: int) -> None:
        properties = schema.get("properties", {})
        required = schema.get("required", [])
        # One that names its keys and only forgets to close itself is closed: that allows less.
        closed = schema.get("additionalProperties", not properties) is False
        if not isinstance(properties, dict) or not isinstance(required, list) or not closed:
            raise _Inexpressible
        if not {str(name) for name in required} <= properties.keys():
            raise _Inexpressible
        self._properties += len(properties)
        if self._properties > _MAX_PROPERTIES:
            raise _Inexpressible
        result["properties"] = {
            key: self._property(inner, key in required, level + 1)
            for key, inner in properties.items()
        }
        result["required"] = list(properties)
        result["additionalProperties"] = False

    def _property(self, schema: JsonValue, required: bool, level: int) -> JsonObject:
        strict = self._schema(schema, level)
        if required or accepts_null(self._root, schema):
            return strict
        return _nullable(strict)

    def _reference(self, schema: JsonObject, level: int) -> JsonObject:
        reference = str(schema["$ref"])
        target = self._target(schema["$ref"])
        # What is required here is required by the target itself, in this form.
        rest = {key: value for key, value in schema.items() if key not in ("$ref", "required")}
        if rest.keys() - {"description"}:
            raise _Inexpressible
        if not rest or reference in self._inlined:
            return {"$ref": reference}
        # A reference cannot carry words of its own here, so the target is copied to carry them.
        self._inlined.append(reference)
        try:
            return self._schema({**target, **rest}, level)
        finally:
            self._inlined.pop()


def _has(schema: JsonObject, name: str) -> bool:
    types = schema.get("type")
    return types == name or (isinstance(types, list) and name in types)


def _looks_around(pattern: str) -> bool:
    return any(mark in pattern for mark in ("(?=", "(?!", "(?<"))


def _nullable(schema: JsonObject) -> JsonObject:
    null: JsonObject = {"type": "null"}
    if "$ref" in schema:
        return {"anyOf": [schema, null]}
    branches = schema.get("anyOf")
    if isinstance(branches, list):
        if "type" in schema:
            raise _Inexpressible
        return {**schema, "anyOf": [*branches, null]}
    types = schema["type"]
    result = {**schema, "type": [*(types if isinstance(types, list) else [types]), "null"]}
    values = schema.get("enum")
    if isinstance(values, list):
        result["enum"] = [*values, None]
    return result
