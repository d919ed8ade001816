"""
How a protocol value becomes JSON and comes back: one table a class.

Keys are camelCase on every wire and in every row, since the clients are JavaScript. A field that
has its default is left out, so that a row costs what it says and no more. These values are made by
us and checked where they came in, so reading them back is trusting and fast; what comes from
outside goes through :mod:`pai.schema`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from json.encoder import encode_basestring
from typing import Any, Generic, Protocol, TypeVar

import attrs

from pai.schema import JsonObject, JsonValue

__all__ = ("Codec", "TimeCodec", "camel", "from_time", "loads", "quote", "to_time")

quote: Callable[[str], str] = encode_basestring
"""A JSON string literal; the C encoder, which keeps non-ASCII text as it is."""

loads: Callable[[str | bytes], Any] = json.loads


def camel(name: str) -> str:
    """``call_id`` → ``callId``."""
    head, *rest = name.split("_")
    return head + "".join(word.title() for word in rest)


def to_time(value: float) -> datetime:
    """Seconds since the epoch as an aware UTC time."""
    return datetime.fromtimestamp(value, UTC)


def from_time(value: datetime | None) -> str | None:
    """RFC 3339 in UTC with ``Z``, as every client can read it."""
    return None if value is None else value.astimezone(UTC).isoformat().replace("+00:00", "Z")


class _Nested(Protocol):
    def to_json(self, value: Any, /) -> JsonValue: ...

    def from_json(self, value: Any, /) -> object: ...


T = TypeVar("T")


class Codec(Generic[T]):
    """
    The JSON form of one attrs class.

    Args:
        cls: The class. A field whose metadata has ``wire=False`` stays inside the process.
        tag: The value of ``type`` in its JSON, if it is told apart by one.
        nested: Codecs of the fields that hold protocol values.
    """

    __slots__ = ("_cls", "_fields", "_from", "_nested", "tag")

    def __init__(
        self, cls: type[T], *, tag: str | None = None, nested: Mapping[str, _Nested] | None = None
    ) -> None:
        self._cls = cls
        self.tag = tag or ""
        self._nested = dict(nested or {})
        fields = [
            (f.name, camel(f.name), f.default, self._nested.get(f.name))
            for f in attrs.fields(cls)  # type: ignore[arg-type]  # every cls here is an attrs class
            if f.init and f.metadata.get("wire", True)
        ]
        self._fields = fields
        self._from = {key: (name, nested) for name, key, _, nested in fields}

    def to_json(self, value: T) -> JsonObject:
        out: JsonObject = {"type": self.tag} if self.tag else {}
        for name, key, default, nested in self._fields:
            item = getattr(value, name)
            if item is default:
                continue
            out[key] = item if nested is None or item is None else nested.to_json(item)
        return out

    def from_json(self, value: Mapping[str, Any]) -> T:
        known = self._from
        args: dict[str, object] = {}
        for key, item in value.items():
            entry = known.get(key)
            # A key of a later version is passed over: an older process can read on.
            if entry is not None:
                name, nested = entry
                args[name] = item if nested is None or item is None else nested.from_json(item)
        return self._cls(**args)


class TimeCodec:
    """A codec for an aware time, as RFC 3339 in UTC."""

    def to_json(self, value: datetime) -> JsonValue:
        return from_time(value)

    def from_json(self, value: str) -> datetime:
        return datetime.fromisoformat(value)
