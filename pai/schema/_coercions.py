"""Converters and defaults: they may tidy a value up, never change what it is (A-META-4)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from ._dump import Dump, compile_dump
from ._json import check_json, same_json
from ._parse import compile_parse
from ._parse_record import Parse, apply_converter, validate_field
from ._probes import probes
from ._refusal import Found, Refusal
from ._shapes import ABSENT, REFUSED, Field, Record, strip

__all__ = ("coercion_faults",)


def coercion_faults(records: Iterable[Record]) -> list[Found]:
    """
    The fields whose converter or constant default makes what the field itself would refuse.

    What is stored is what the object dumps to, and it is read by the same schema. So a converter
    must return a value of the declared type, and give the same again when it is applied again.
    """
    found: list[Found] = []
    for record in records:
        for field in record.fields.values():
            converts = field.attribute is not None and field.attribute.converter is not None
            if strip(field.shape) is REFUSED or (not converts and field.default is ABSENT):
                continue
            parse, dump = compile_parse(field.shape), compile_dump(field.shape)
            draft = _draft(record)
            messages = list(_converter_faults(draft, field, parse, dump)) if converts else []
            messages = messages or _default_faults(draft, field, parse, dump)
            found += (((*record.way, field.key), message) for message in messages)
    return found


def _draft(record: Record) -> object:
    """An object that takes self-reading converters no further than they can go without fields."""
    return object.__new__(record.cls) if record.cls is not None else None


def _default_faults(draft: object, field: Field, parse: Parse, dump: Dump) -> list[str]:
    if field.default is ABSENT:
        return []
    try:
        made = apply_converter(draft, field, field.default)
    except Exception as error:
        return [f"its converter refuses its own default ({type(error).__name__})"]
    message = _unreadable(made, parse, dump)
    if message is not None:
        hint = " | None" if made is None else ""
        return [
            f"the default {made!r} does not fit the type: {message}"
            + (f"; write the type with{hint}" if hint else "")
        ]
    # Other validators may look at fields that this draft does not have.
    failed = [check.message for check in field.checks if not check.passes(made)]
    return [f"the default {made!r} {message}" for message in failed]


def _unreadable(made: object, parse: Parse, dump: Dump) -> str | None:
    """Why what *made* dumps to would be refused, or None if it would be read."""
    try:
        dumped = dump(made)
        if faults := check_json(dumped):
            return faults[0].message
        parse(dumped)
    except Refusal as refusal:
        return refusal.found[0][1]
    return None


def _converter_faults(draft: object, field: Field, parse: Parse, dump: Dump) -> Iterator[str]:
    def convert(value: object) -> object:
        return apply_converter(draft, field, parse(value))

    for probe in probes(field.shape):
        made = _converted(convert, probe)
        if made is ABSENT or validate_field(draft, field, made):
            continue
        message = _unreadable(made, parse, dump)
        if message is not None:
            yield (
                "its converter returns what the field does not take as input"
                f" ({message}); a converter may only return a value of the declared type"
            )
            return
        once = dump(made)
        again = _converted(convert, once)
        if again is ABSENT or not same_json(once, dump(again)):  # type: ignore[arg-type]
            yield (
                "its converter is not stable: applied to its own result it gives another one"
                " or fails"
            )
            return


def _converted(convert: Callable[[object], object], value: object) -> object:
    try:
        return convert(value)
    except Exception:
        # A converter may refuse values: those are no input, then.
        return ABSENT
