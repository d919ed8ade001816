"""JSON Schemas that clients send: checked, compiled once, and never trusted (A-TOOL-8)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NoReturn

from pai.errors import Fault, InvalidInput

from ._client_walk import schema_faults
from ._json import JsonObject, JsonValue, check_json, copy_json, dump_json
from ._refusal import MAX_FAULTS, Found, Refusal, Way

if TYPE_CHECKING:
    from jsonschema_rs import ValidationError

__all__ = ("ClientSchema", "compile_client_schema", "validator")

_DRAFTS = (
    "https://json-schema.org/draft/2020-12/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "http://json-schema.org/draft-07/schema",
    "http://json-schema.org/draft-06/schema",
)

_NO_PATTERN = "not a pattern that runs in linear time: no look-around, no back-references"

_PATTERN_BYTES = 1 << 20
"""How large one compiled pattern may get."""

_Errors = Callable[[object], Iterable["ValidationError"]]


class ClientSchema:
    """A JSON Schema that did not come from a type; made by `compile_client_schema`."""

    __slots__ = ("_errors", "json_schema")

    json_schema: JsonObject
    """The schema as it was given; not to be changed."""

    def __init__(self, json_schema: JsonObject, errors: _Errors) -> None:
        self.json_schema = json_schema
        self._errors = errors

    def __repr__(self) -> str:
        return "<ClientSchema>"

    def parse(self, value: object, *, at: str = "$") -> JsonValue:
        """
        A copy of *value*, which is strict JSON and fits.

        Raises:
            InvalidInput: With every fault found.
        """
        try:
            copy = copy_json(value)
            if found := list(_found(self._errors(copy))):
                raise Refusal(found)
        except Refusal as refusal:
            raise InvalidInput(refusal.faults(at)) from None
        return copy

    def dump(self, obj: object) -> JsonValue:
        """A copy of *obj*, which is JSON already or `InvalidInput` is raised."""
        try:
            return copy_json(obj)
        except Refusal as refusal:
            raise InvalidInput(refusal.faults("$"), subject="output") from None

    def faults(self, value: object) -> tuple[Fault, ...]:
        """Everything that keeps *value* from being parsed; empty if nothing does."""
        try:
            self.parse(value)
        except InvalidInput as error:
            return error.faults
        return ()


def compile_client_schema(
    schema: object, *, max_bytes: int = 64 * 1024, max_depth: int = 32
) -> ClientSchema:
    """
    Compile a JSON Schema from outside.

    No reference leaves the schema, patterns run in linear time, and neither the schema's size nor
    the ways through it can be used to keep the process busy. Formats are checked.

    Args:
        schema: The schema, an object; draft 2020-12 unless ``$schema`` says otherwise.
        max_bytes: How large it may be as compact UTF-8 text.
        max_depth: How many objects and arrays may lie inside one another.

    Raises:
        InvalidInput: With the path of each fault in the schema.
    """
    subject = "JSON Schema"
    if type(schema) is not dict:
        raise InvalidInput([Fault("$", "a schema must be an object")], subject=subject)
    if faults := check_json(schema, max_depth=max_depth):
        raise InvalidInput(faults, subject=subject)
    own: JsonObject = copy_json(schema)  # type: ignore[assignment]
    if len(dump_json(own).encode()) > max_bytes:
        raise InvalidInput([Fault("$", f"larger than {max_bytes} bytes")], subject=subject)
    found = _keyword_faults(own) or schema_faults(own)
    try:
        if found:
            raise Refusal(found)
        return ClientSchema(own, _compiled(own))
    except Refusal as refusal:
        raise InvalidInput(refusal.faults("$"), subject=subject) from None


def validator(schema: JsonObject) -> Callable[[object], bool]:
    """Tells whether a value fits a schema that is known to be sound."""
    import jsonschema_rs

    return jsonschema_rs.validator_for(schema, validate_formats=True).is_valid


def _validator(schema: dict[str, Any]) -> _Errors:
    import jsonschema_rs

    def deny(uri: str) -> NoReturn:
        raise ValueError("remote references are denied")

    return jsonschema_rs.validator_for(
        schema,
        retriever=deny,
        validate_formats=True,
        pattern_options=jsonschema_rs.RegexOptions(size_limit=_PATTERN_BYTES),
        # Messages are for clients, models and logs: they must not repeat the value.
        mask="the value",
    ).iter_errors


def _compiled(schema: JsonObject) -> _Errors:
    import jsonschema_rs

    try:
        return _validator(schema)
    except jsonschema_rs.ValidationError as error:
        raise Refusal(_found([error])) from None
    except ValueError as error:
        raise Refusal.of(str(error)) from None


def _keyword_faults(schema: JsonObject) -> list[Found]:
    """Where *schema* breaks the rules of its own draft."""
    draft = schema.get("$schema", _DRAFTS[0])
    uri = draft.removesuffix("#") if isinstance(draft, str) else ""
    if uri not in _DRAFTS:
        return [(("$schema",), "not a known draft of JSON Schema")]
    return list(_found(_of_draft(uri)(schema)))


@cache
def _of_draft(uri: str) -> _Errors:
    return _validator({"$schema": uri, "$ref": uri})


def _found(errors: Iterable[ValidationError]) -> Iterator[Found]:
    for error in islice(errors, MAX_FAULTS + 1):
        way: Way = tuple(error.instance_path)
        kind: Any = error.kind
        if kind.name == "additionalProperties":
            yield from (((*way, key), "unknown key") for key in kind.unexpected)
        elif kind.name == "required":
            yield (*way, str(kind.property)), "required"
        elif kind.name == "format" and kind.format == "regex":
            yield way, _NO_PATTERN
        else:
            yield way, error.message
