"""Hypothesis strategies for the JSON Schemas that pai writes itself."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pai.schema import JsonObject, JsonValue
from pai.testing._schema_strategies import json_values, mutated

__all__ = ("values_of",)

Values = SearchStrategy[Any]

_SAFE = 2**53 - 1
_PLAIN = st.characters(exclude_categories=["Cs"])
# What people's own functions on text stumble over: blanks, cases, digits, marks.
_TRICKY = st.sampled_from(" \t\nabAB01.,;:-_/@#ßİé")
# Few letters make runs of them likely: three blanks, two dots.
_FEW = st.sampled_from([" ", " a", "aA", "./", "0.", ", a", "-_", "\n ", "aß"])


def values_of(schema: JsonObject) -> SearchStrategy[JsonValue]:
    """
    Values that *schema* takes, and now and then one that is a little off.

    Args:
        schema: What `Schema.json_schema` gives; other schemas may use words unknown here.
    """
    fitting = _Reader(schema.get("$defs", {})).of(schema)
    off = fitting.flatmap(mutated)
    return st.integers(0, 3).flatmap(lambda die: fitting if die else off)


class _Reader:
    def __init__(self, defs: Any) -> None:
        self._defs: dict[str, JsonObject] = defs
        self._known: dict[str, Values] = {}

    def of(self, schema: JsonObject) -> Values:
        if "$ref" in schema:
            return self._named(str(schema["$ref"]).rpartition("/")[2], schema)
        if "const" in schema:
            return st.just(schema["const"])
        if "enum" in schema:
            return st.sampled_from(schema["enum"])  # type: ignore[arg-type]  # a list
        if "anyOf" in schema:
            return st.one_of([self.of(member) for member in _schemas(schema["anyOf"])])
        if "allOf" in schema:
            # The other members only narrow the first; what they refuse is not taken.
            return self.of(_schemas(schema["allOf"])[0])
        kind = schema.get("type")
        if kind == "null":
            return st.none()
        if kind == "boolean":
            return st.booleans()
        make = _MAKERS.get(str(kind))
        return json_values(4) if make is None else make(self, schema)

    def _named(self, name: str, schema: JsonObject) -> Values:
        required = schema.get("required")
        if required:
            return self.of({**self._defs[name], "required": _joined(self._defs[name], required)})
        if name not in self._known:
            self._known[name] = st.deferred(lambda: self.of(self._defs[name]))
        return self._known[name]

    def array(self, schema: JsonObject) -> Values:
        if "prefixItems" in schema:
            return st.tuples(*map(self.of, _schemas(schema["prefixItems"]))).map(list)
        low, high = _size(schema, "Items")
        return st.lists(
            self.of(_schema(schema.get("items"))), min_size=low, max_size=_few(low, high)
        )

    def object(self, schema: JsonObject) -> Values:
        properties: Any = schema.get("properties", {})
        if properties or schema.get("additionalProperties") is False:
            required = set(_names(schema.get("required")))
            fields = {key: self.of(item) for key, item in properties.items()}
            return st.fixed_dictionaries(
                {key: values for key, values in fields.items() if key in required},
                optional={key: values for key, values in fields.items() if key not in required},
            )
        low, high = _size(schema, "Properties")
        keys = self.of({"type": "string", **_schema(schema.get("propertyNames"))})
        values = self.of(_schema(schema.get("additionalProperties")))
        return st.dictionaries(keys, values, min_size=low, max_size=_few(low, high))

    def text(self, schema: JsonObject) -> Values:
        form = _FORMATS.get(str(schema.get("format")))
        if form is not None:
            return form()
        if "pattern" in schema:
            try:
                return st.from_regex(str(schema["pattern"])).filter(_is_text)
            except re.error:
                # Named groups are written differently there: few texts will be taken.
                pass
        low, high = _size(schema, "Length")
        few = _FEW.flatmap(lambda letters: st.text(letters, min_size=low, max_size=high))
        return few | st.text(_TRICKY | _PLAIN, min_size=low, max_size=high)

    def integer(self, schema: JsonObject) -> Values:
        low, high = _bounds(schema)
        step = schema.get("multipleOf", 1)
        if not isinstance(step, int):
            step = 1
        least = -_SAFE if low is None else -int(-low // 1)
        most = _SAFE if high is None else int(high // 1)
        least, most = -(-least // step), most // step
        if least > most:
            return st.nothing()
        near = st.integers(max(least, min(0, most) - 50), min(most, max(0, least) + 50))
        return (st.integers(least, most) | near).map(lambda number: number * step)

    def number(self, schema: JsonObject) -> Values:
        low, high = _bounds(schema)
        least = -(2.0**53) + 1 if low is None else float(low)
        most = 2.0**53 - 1 if high is None else float(high)
        if least > most:
            return st.nothing()
        fine = st.floats(least, most)
        step = schema.get("multipleOf")
        if isinstance(step, (int, float)):
            fine = st.integers(-1000, 1000).map(lambda count: float(count * step))
        return fine | self.integer(schema)


_MAKERS: dict[str, Callable[[_Reader, JsonObject], Values]] = {
    "integer": _Reader.integer,
    "number": _Reader.number,
    "string": _Reader.text,
    "array": _Reader.array,
    "object": _Reader.object,
}


def _times() -> Values:
    zones = st.sampled_from(["Z", "+00:00", "-07:30", "+14:00"])
    days = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)).map(dt.date.isoformat)
    times = st.times().map(dt.time.isoformat)
    return st.tuples(days, times, zones).map(lambda parts: "{}T{}{}".format(*parts))


_FORMATS: dict[str, Callable[[], Values]] = {
    "date-time": _times,
    "date": lambda: st.dates().map(dt.date.isoformat),
    "uuid": lambda: st.uuids().map(str),
}


def _schema(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _schemas(value: object) -> list[JsonObject]:
    return list(map(_schema, value)) if isinstance(value, list) else []


def _names(value: object) -> list[str]:
    return list(map(str, value)) if isinstance(value, list) else []


def _joined(schema: JsonObject, required: object) -> list[JsonValue]:
    return list(dict.fromkeys([*_names(schema.get("required")), *_names(required)]))


def _size(schema: JsonObject, what: str) -> tuple[int, int | None]:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    return low if isinstance(low, int) else 0, high if isinstance(high, int) else None


def _few(low: int, high: int | None) -> int:
    """A most for what may itself hold many."""
    return low + 4 if high is None else min(high, low + 4)


def _bounds(schema: JsonObject) -> tuple[float | None, float | None]:
    """The least and the greatest; whether they are themselves in it, the schema will say."""
    lows = [schema.get("minimum"), schema.get("exclusiveMinimum")]
    highs = [schema.get("maximum"), schema.get("exclusiveMaximum")]
    return (
        max((bound for bound in lows if isinstance(bound, (int, float))), default=None),
        min((bound for bound in highs if isinstance(bound, (int, float))), default=None),
    )


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)
