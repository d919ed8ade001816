"""Structured outputs: what a run may be asked for, and how an answer is read (O-11)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from pai.definition._checks import entries
from pai.definition._names import name_faults
from pai.errors import DefinitionError, Fault, InvalidInput
from pai.schema import (
    UNSET,
    JsonObject,
    JsonValue,
    Schema,
    Unset,
    ValueSchema,
    check_json,
    compile_schema,
    dump_json,
    parse_json,
)

# Declaring an agent needs no more than these: the others are loaded when an answer is read.
if TYPE_CHECKING:
    from pai.schema import ClientSchema, PartialJson

__all__ = ("Output", "as_output", "output_faults", "registered_outputs")

_DEPTH = 32
_VALUE = "value"
_SHARED = ("$schema", "$defs")


@attrs.frozen(eq=False, slots=False)
class Output:
    """
    What a structured output must be.

    Args:
        schema: The schema of its value.
        name: Its name among the agent's ``outputs``; ``None`` where only the schema was given.
    """

    schema: ValueSchema
    name: str | None = None

    @cached_property
    def _wrapped(self) -> bool:
        return not _is_object(self.schema.json_schema)

    @cached_property
    def json_schema(self) -> JsonObject:
        """
        What a model is told: an object in any case, since providers take nothing else.

        A value of another kind stands in it under ``value``.
        """
        own = self.schema.json_schema
        if not self._wrapped:
            return own
        wrapper: JsonObject = {
            "type": "object",
            "properties": {_VALUE: {k: item for k, item in own.items() if k not in _SHARED}},
            "required": [_VALUE],
            "additionalProperties": False,
        }
        return wrapper | {key: own[key] for key in _SHARED if key in own}

    def read(self, text: str) -> JsonValue:
        """
        The output as JSON, from the text of an answer.

        Nulls that the strict form forces for absent keys are taken out (O-11).

        Raises:
            InvalidInput: It is no JSON, or does not fit; with every fault found.
        """
        from pai.schema import undo_nulls

        value = undo_nulls(self.json_schema, parse_json(_unfenced(text)))
        if self._wrapped:
            if not isinstance(value, dict) or value.keys() != {_VALUE}:
                fault = Fault("$", f"expected an object with the key {_VALUE!r} alone")
                raise InvalidInput([fault], subject="output")
            value = value[_VALUE]
        # What is stored is what the class says of it, under its keys.
        return self.schema.dump(self.schema.parse(value))

    def load(self, value: JsonValue) -> object:
        """
        An instance of the class, or the JSON itself where there is none, from what *read* gave.

        Raises:
            InvalidInput: The class has changed since.
        """
        return self.schema.parse(value)

    def partial(self) -> PartialJson:
        """Reads an answer that is still being written."""
        from pai.schema import PartialJson

        return PartialJson(self.json_schema)

    def so_far(self, partial: PartialJson) -> JsonValue | Unset:
        """What there is of the output, as JSON; ``UNSET`` if it has not begun."""
        from pai.schema import undo_nulls

        value = undo_nulls(self.json_schema, partial.value())
        if self._wrapped and isinstance(value, dict):
            return value.get(_VALUE, UNSET)
        return UNSET if value is None else value


def _is_object(schema: JsonObject) -> bool:
    reference, defs = schema.get("$ref"), schema.get("$defs")
    if isinstance(reference, str) and isinstance(defs, dict):
        # A class that holds itself.
        target = defs.get(reference.removeprefix("#/$defs/"))
        return isinstance(target, dict) and target.get("type") == "object"
    return schema.get("type") == "object"


def _unfenced(text: str) -> str:
    """Without the fence of Markdown that some models put around."""
    text = text.strip()
    if text.startswith("```") and "\n" in text:
        text = text[text.index("\n") + 1 :]
        text = text.rstrip().removesuffix("```")
    return text


@lru_cache(maxsize=256)
def _client_schema(text: str) -> ClientSchema:
    from pai.schema import compile_client_schema

    return compile_client_schema(parse_json(text), max_depth=_DEPTH)


def _given_schema(schema: Mapping[str, Any]) -> ClientSchema:
    """
    A JSON Schema, compiled once for each text.

    Raises:
        InvalidInput: With every fault found.
    """
    own = dict(schema)
    if faults := check_json(own, max_depth=_DEPTH):
        raise InvalidInput(faults, subject="JSON Schema")
    compiled = _client_schema(dump_json(own))
    if not _is_object(compiled.json_schema):
        fault = Fault("$.type", "expected 'object': providers give no other output")
        raise InvalidInput([fault], subject="JSON Schema")
    return compiled


def as_output(wish: object, outputs: Mapping[str, Output]) -> Output:
    """
    The output that was asked for.

    Args:
        wish: A name, a JSON Schema, or a class.
        outputs: Those of the agent, by name.

    Raises:
        InvalidInput: There is none of this name, or the schema has faults.
        DefinitionError: The class is none that schemas are made from.
    """
    if isinstance(wish, str):
        known = outputs.get(wish)
        if known is None:
            raise InvalidInput([_unknown(wish, outputs, "output")], subject="output")
        return known
    if isinstance(wish, Mapping):
        return Output(_given_schema(wish))
    schema: Schema[object] = compile_schema(wish)
    for known in outputs.values():
        if known.schema is schema:
            return known
    return Output(schema)


def _unknown(name: str, outputs: Mapping[str, Output], at: str) -> Fault:
    told = ", ".join(sorted(outputs)) or "none"
    return Fault(at, f"the agent has no output {name!r}; outputs: {told}")


def output_faults(
    wish: object, at: str, outputs: Mapping[str, Output] | None = None, *, classes: bool
) -> list[Fault]:
    """
    What is wrong with what is asked for.

    Args:
        wish: What was given.
        at: Its path.
        outputs: Those of the agent; ``None`` where it is not known yet.
        classes: Whether a class is taken: it can't be stored.
    """
    if isinstance(wish, str):
        if outputs is None or wish in outputs:
            return []
        return [_unknown(wish, outputs, at)]
    if not isinstance(wish, Mapping) and not classes:
        return [Fault(at, "expected the name of an output of the agent, or a JSON Schema")]
    try:
        as_output(wish, {})
    except (DefinitionError, InvalidInput) as error:
        return [fault.under(at) for fault in error.faults]
    return []


def registered_outputs(given: object, faults: list[Fault]) -> dict[str, Output]:
    """The outputs of an agent by name; faults are added."""
    found: dict[str, Output] = {}
    for name, wish in entries(given, "outputs", faults):
        at = f"outputs.{name}"
        wrong = name_faults(name, at)
        if isinstance(wish, str):
            wrong.append(Fault(at, "expected a class, a type or a JSON Schema"))
        else:
            wrong += output_faults(wish, at, classes=True)
        faults += wrong
        if not wrong:
            found[name] = Output(as_output(wish, {}).schema, name)
    return found
