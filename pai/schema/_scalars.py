"""Single values: from JSON, and back in their one canonical spelling."""

from __future__ import annotations

import datetime as dt
import re
import uuid
from collections.abc import Callable

from ._json import SAFE_INTEGER, check_text
from ._refusal import Refusal, expected

__all__ = ("DUMPERS", "PARSERS")

_FLOAT_BOUND = 2.0**53

_DATE_TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)


def _integer(value: object, _: object = None) -> int:
    if type(value) is int:
        if -SAFE_INTEGER <= value <= SAFE_INTEGER:
            return value
    elif type(value) is float and -_FLOAT_BOUND < value < _FLOAT_BOUND:
        # JSON has one kind of number, and JSON Schema calls 1.0 an integer.
        if value.is_integer():
            return int(value)
        raise expected("integer", value)
    else:
        raise expected("integer", value)
    raise Refusal.of("expected an integer between -(2**53 - 1) and 2**53 - 1")


def _number(value: object, _: object = None) -> float:
    if type(value) is float:
        if -_FLOAT_BOUND < value < _FLOAT_BOUND:
            return value
    elif type(value) is int:
        if -SAFE_INTEGER <= value <= SAFE_INTEGER:
            return float(value)
    else:
        raise expected("number", value)
    raise Refusal.of("expected a finite number between -(2**53 - 1) and 2**53 - 1")


def _string(value: object, _: object = None) -> str:
    if type(value) is not str:
        raise expected("string", value)
    if not (value.isascii() or check_text(value)):
        raise Refusal.of("a lone surrogate is not text")
    return value


def _boolean(value: object, _: object = None) -> bool:
    if type(value) is not bool:
        raise expected("boolean", value)
    return value


def _null(value: object, _: object = None) -> None:
    if value is not None:
        raise expected("null", value)


def _date_time(value: object, _: object = None) -> dt.datetime:
    match = _DATE_TIME.fullmatch(_string(value))
    if match is not None:
        day, time, fraction, offset = match.groups()
        # Python keeps microseconds; finer digits are cut off.
        text = f"{day}T{time}{(fraction or '')[:7]}{offset.upper()}"
        try:
            return dt.datetime.fromisoformat(text).astimezone(dt.UTC)
        except (ValueError, OverflowError):
            pass
    raise Refusal.of("expected an RFC 3339 date-time with an offset, as 2026-01-31T09:30:00Z")


def _date(value: object, _: object = None) -> dt.date:
    text = _string(value)
    if _DATE.fullmatch(text):
        try:
            return dt.date.fromisoformat(text)
        except ValueError:
            pass
    raise Refusal.of("expected a date, as 2026-01-31")


def _uuid(value: object, _: object = None) -> uuid.UUID:
    text = _string(value)
    if _UUID.fullmatch(text):
        return uuid.UUID(text)
    raise Refusal.of("expected a UUID, as 123e4567-e89b-12d3-a456-426614174000")


PARSERS: dict[str, Callable[..., object]] = {
    "integer": _integer,
    "number": _number,
    "string": _string,
    "boolean": _boolean,
    "null": _null,
    "date-time": _date_time,
    "date": _date,
    "uuid": _uuid,
}
"""From JSON, by the name of the leaf."""


def _dump_date_time(value: object) -> str:
    if not isinstance(value, dt.datetime):
        raise expected("a datetime", value)
    if value.tzinfo is None:
        raise Refusal.of("expected a datetime with a time zone, got a naive one")
    try:
        return value.astimezone(dt.UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise Refusal.of("the datetime has no equal in UTC") from None


def _dump_date(value: object) -> str:
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        raise expected("a date", value)
    return value.isoformat()


def _dump_uuid(value: object) -> str:
    if not isinstance(value, uuid.UUID):
        raise expected("a UUID", value)
    return str(value)


DUMPERS: dict[str, tuple[type, Callable[[object], str]]] = {
    "date-time": (dt.datetime, _dump_date_time),
    "date": (dt.date, _dump_date),
    "uuid": (uuid.UUID, _dump_uuid),
}
"""To JSON, by the name of the leaf, for those whose Python class is not JSON already."""
