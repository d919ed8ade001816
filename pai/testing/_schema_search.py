"""Searching a schema for values that it takes and does not give back (A-META-2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pai.definition import MetadataSchemas
from pai.errors import Fault, InvalidInput
from pai.schema import Schema, ValueSchema, compile_schema, dump_json, parse_stable

if TYPE_CHECKING:
    from jsonschema_rs import Validator

    from pai.schema import JsonObject, JsonValue

__all__ = ("Finding", "check_metadata_schemas", "search")


class Finding(NamedTuple):
    """
    What a search found.

    Attributes:
        tried: How many values were tried; fewer than asked for, if there are no more.
        taken: How many of them the schema took.
        value: The smallest one found that it took and does not give back as it should.
        fault: What is wrong with it; None if nothing was found.
    """

    tried: int
    taken: int
    value: JsonValue = None
    fault: Fault | None = None


class _Falsified(Exception):
    """Raised for Hypothesis, which makes the value smaller and raises it again."""

    def __init__(self, value: JsonValue, fault: Fault) -> None:
        super().__init__()
        self.value = value
        self.fault = fault


def search(schema: ValueSchema, *, at: str, values: int) -> Finding:
    """
    Look for a value that *schema* takes, and does not give back as it should.

    The same values are tried each time.

    Args:
        schema: The schema.
        at: Its path.
        values: How many values to try.
    """
    import hypothesis
    import jsonschema_rs

    from pai.testing._value_strategies import values_of

    validator = jsonschema_rs.validator_for(
        _without_patterns(schema.json_schema), validate_formats=True
    )
    tried = taken = 0
    last: _Falsified | None = None

    @hypothesis.settings(
        max_examples=values,
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(values_of(schema.json_schema))
    def look(value: JsonValue) -> None:
        nonlocal tried, taken, last
        tried += 1
        if schema.faults(value):
            return
        taken += 1
        fault = _instability(schema, value, at) or _disagreement(schema, value, validator, at)
        if fault is not None:
            last = _Falsified(value, fault)
            raise last

    try:
        look()
    except (_Falsified, hypothesis.errors.Flaky):
        # Flaky: a default factory, say, that is wrong now and then. Once is enough.
        assert last is not None
        return Finding(tried, taken, last.value, last.fault)
    except hypothesis.errors.Unsatisfiable:
        return Finding(tried, taken)
    return Finding(tried, taken)


def _without_patterns(schema: JsonObject) -> JsonObject:
    """
    *schema* without the keyword ``pattern``.

    Python's patterns and those of JSON Schema differ where it does not matter: a newline before
    ``$``, digits of other scripts.
    """
    made: JsonObject = {}
    for word, value in schema.items():
        if word == "pattern":
            continue
        if word in ("properties", "$defs") and isinstance(value, dict):
            made[word] = {
                name: _without_patterns(item) if isinstance(item, dict) else item
                for name, item in value.items()
            }
        elif word in ("anyOf", "allOf", "prefixItems") and isinstance(value, list):
            made[word] = [
                _without_patterns(item) if isinstance(item, dict) else item for item in value
            ]
        elif word in ("items", "additionalProperties", "propertyNames") and isinstance(value, dict):
            made[word] = _without_patterns(value)
        else:
            made[word] = value
    return made


def _disagreement(
    schema: ValueSchema, value: JsonValue, validator: Validator, at: str
) -> Fault | None:
    """Where a canonical value does not fit the JSON Schema by which clients will read it."""
    for error in validator.iter_errors(schema.dump(schema.parse(value))):
        path = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
        )
        return Fault(
            f"{at}{path}", f"what it becomes does not fit its JSON Schema: {error.message}"
        )
    return None


def _instability(schema: ValueSchema, value: JsonValue, at: str) -> Fault | None:
    """Where what a value becomes is no JSON, is not taken again, or changes again (A-META-2)."""
    assert isinstance(schema, Schema), "a definition is made of types"
    try:
        parse_stable(schema, value, at=at)
    except InvalidInput as error:
        fault = error.faults[0]
        return (
            Fault(_unstable_path(schema, value, at), fault.message) if fault.path == at else fault
        )
    return None


def _unstable_path(schema: Schema[Any], value: JsonValue, at: str) -> str:
    """Where the canonical form differs from what it becomes in its turn, if that can be told."""
    try:
        once = schema.dump(schema.parse(value))
        again = schema.dump(schema.parse(once))
    except InvalidInput:
        return at
    while dump_json(once) != dump_json(again):
        if isinstance(once, dict) and isinstance(again, dict) and once.keys() == again.keys():
            key = next(key for key in once if dump_json(once[key]) != dump_json(again[key]))
            at, once, again = f"{at}.{key}", once[key], again[key]
        elif isinstance(once, list) and isinstance(again, list) and len(once) == len(again):
            index = next(i for i, item in enumerate(once) if dump_json(item) != dump_json(again[i]))
            at, once, again = f"{at}[{index}]", once[index], again[index]
        else:
            break
    return at


def check_metadata_schemas(schemas: MetadataSchemas[Any, Any], *, values: int = 500) -> None:
    """
    Search both schemas of a pair for values that they do not give back as they should.

    Defining an agent tries ``{}`` and fixed probes of each field; this tries values that nobody
    thought of. It needs Hypothesis.

    Args:
        schemas: The pair.
        values: How many values to try for each.

    Raises:
        AssertionError: One was found: it names the path and the value.
    """
    for name in ("private", "public"):
        found = search(compile_schema(getattr(schemas, name)), at=name, values=values)
        if found.fault is not None:
            raise AssertionError(f"{found.fault}; seen with {dump_json(found.value)}")
