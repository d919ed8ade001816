"""Metadata: what a schema of a bag must promise, and how a bag is started and changed (A-META)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from pai.errors import DefinitionError, Fault, InvalidInput

from ._json import JsonObject, JsonValue, check_json, dump_json, same_json
from ._names import type_name
from ._probes import probes
from ._refusal import MAX_FAULTS
from ._schema import Schema, ValueSchema, compile_schema
from ._shapes import Record, Table, strip

__all__ = ("check_metadata_class", "fitted", "guarded", "initial", "merge_patch", "parse_stable")


def parse_stable(schema: ValueSchema, value: object, *, at: str = "$") -> JsonValue:
    """
    *value* in its canonical JSON form (A-META-2, A-UI-2).

    It is parsed and dumped; the result must be strict JSON that the schema takes as input and does
    not change any further.

    Args:
        schema: The schema.
        value: JSON, or an object of the schema's type.
        at: The name of the root in the paths of faults.

    Raises:
        InvalidInput: If *value* is not accepted, or its form is not stable.
    """
    # What is no JSON yet holds objects of the schema's own classes; a dict among them may, too.
    plain = _dumped(schema, value, at) if check_json(value) else value
    dumped = _dumped(schema, schema.parse(plain, at=at), at)
    if faults := check_json(dumped, at=at):
        raise InvalidInput(faults)
    try:
        again = _dumped(schema, schema.parse(dumped, at=at), at)
    except InvalidInput as error:
        faults = tuple(
            Fault(fault.path, f"what it becomes is not accepted as input: {fault.message}")
            for fault in error.faults
        )
        raise InvalidInput(faults) from None
    if not same_json(dumped, again):
        raise InvalidInput([Fault(at, "not stable: parsed again, it becomes something else")])
    return dumped


def _dumped(schema: ValueSchema, obj: object, at: str) -> JsonValue:
    try:
        return schema.dump(obj)
    except InvalidInput as error:
        raise InvalidInput([fault.under(at) for fault in error.faults]) from None


def initial(schema: ValueSchema) -> JsonObject:
    """
    The value a bag starts with: the parsed ``{}`` (A-META-3).

    It is parsed anew in each call, so default factories run for each run, thread or message.
    """
    return _object(parse_stable(schema, {}))


def merge_patch(
    schema: ValueSchema, bag: JsonObject, patch: Mapping[str, object], *, at: str
) -> JsonObject:
    """
    *bag* with the keys of *patch* replaced, in canonical form; *bag* itself stays (A-META-5).

    The merge is shallow: a key in *patch* replaces the whole value of that key, and None is a
    value as any other.

    Args:
        schema: What the complete result must fit.
        bag: The present value; ``{}`` to replace the whole bag by *patch*.
        patch: JSON, or objects of the classes that the schema declares.
        at: The name of the bag in the paths of faults.

    Raises:
        InvalidInput: If the result does not fit; then nothing has changed.
    """
    return _object(parse_stable(schema, {**bag, **patch}, at=at))


def fitted(schema: ValueSchema, bag: JsonObject) -> tuple[JsonObject, tuple[Fault, ...]]:
    """
    A stored bag as the schema of today has it: a new field takes its default (A-META-10).

    Args:
        schema: What the bag must fit.
        bag: As it was written, under an older schema perhaps.

    Returns:
        The bag, without the keys that do not fit any more, and what is wrong with those.
    """
    try:
        return _object(_dumped(schema, schema.parse(bag), "$")), ()
    except InvalidInput as error:
        faults = error.faults
    kept = {key: value for key, value in bag.items() if not schema.faults({key: value})}
    try:
        return _object(_dumped(schema, schema.parse(kept), "$")), faults
    except InvalidInput:
        # Each fits, and not together.
        return initial(schema), faults


def guarded(schema: Schema[object], faults: Iterable[Fault], at: str) -> list[Fault]:
    """
    Faults of a bag that is secret: keys that the schema does not declare are content (R-40).

    Args:
        schema: Of the bag.
        faults: What is wrong with it.
        at: The name of the bag in their paths.
    """
    shape = strip(schema.shape)
    keys = shape.fields.keys() if isinstance(shape, Record) else ()
    found: dict[Fault, None] = {}
    for fault in faults:
        rest = fault.path[len(at) :]
        if rest and rest.removeprefix(".") not in keys:
            field = next((key for key in keys if rest.startswith((f".{key}.", f".{key}["))), None)
            path = at if field is None else f"{at}.{field}"
            fault = Fault(path, "does not fit its schema")
        found[fault] = None
    return list(found)


def _object(value: JsonValue) -> JsonObject:
    assert isinstance(value, dict), "a metadata schema describes an object"
    return value


def check_metadata_class(
    tp: object, *, at: str, reserved: frozenset[str] = frozenset()
) -> tuple[Fault, ...]:
    """
    What keeps *tp* from being a metadata schema (A-META-1, A-META-2, A-META-4, A-META-9).

    It must describe an object, accept ``{}``, and take its own canonical output unchanged. That
    is tried on ``{}`` and, field by field, on a fixed set of probes derived from the field's type.

    Args:
        tp: The class.
        at: The name of the schema in the paths of faults.
        reserved: Keys that it may not declare.
    """
    try:
        schema = compile_schema(tp)
    except DefinitionError as error:
        return tuple(fault.under(at) for fault in error.faults)
    shape = strip(schema.shape)
    if not isinstance(shape, (Record, Table)):
        return (Fault(at, f"metadata is an object, and {type_name(tp)} is not one"),)
    faults = _reserved_faults(shape, at, reserved)
    empty = schema.faults({})
    if empty:
        faults += [
            Fault(fault.under(at).path, f"metadata must accept {{}}: {fault.message}")
            for fault in empty
        ]
        return tuple(faults)
    for probe in _bags(shape):
        if schema.faults(probe):
            continue
        faults += _unstable(schema, probe, at)
    return tuple(dict.fromkeys(faults))[:MAX_FAULTS]


def _reserved_faults(shape: Record | Table, at: str, reserved: frozenset[str]) -> list[Fault]:
    keys = shape.fields.keys() if isinstance(shape, Record) else ()
    return [Fault(f"{at}.{key}", "the key is reserved") for key in sorted(reserved & set(keys))]


def _bags(shape: Record | Table) -> Iterator[JsonObject]:
    yield {}
    if isinstance(shape, Table):
        yield from (bag for bag in probes(shape) if isinstance(bag, dict))
        return
    for field in shape.fields.values():
        yield from ({field.key: probe} for probe in probes(field.shape))


def _unstable(schema: Schema[object], bag: JsonObject, at: str) -> list[Fault]:
    try:
        parse_stable(schema, bag, at=at)
    except InvalidInput as error:
        # Whole-object findings are about the field that the probe was for.
        key = next(iter(bag), None)
        return [
            Fault(f"{at}.{key}" if fault.path == at and key is not None else fault.path, message)
            for fault in error.faults
            for message in [f"{fault.message} (seen with {dump_json(bag)[:200]})"]
        ][:1]
    return []
