"""A plugin's stored rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pai.errors import Fault, InvalidInput
from pai.schema import check_json, dump_json

if TYPE_CHECKING:
    from pai.ports import RecordScope, RunHold, Store
    from pai.schema import JsonValue

__all__ = ("Records",)

_KEY_LENGTH = 256
_VALUE_LENGTH = 1_000_000
_EVERYTHING = 2**31 - 1

# A database refuses the first; the last ends the range of all keys that begin with a prefix.
_UNKEPT = ("\x00", "\U0010ffff")


class Records:
    """
    A plugin's stored rows: JSON by key, in one partition, of one thread or of none.

    They outlive the process where the store does, and are deleted with the thread. A hook's rows
    are fenced: once another worker holds the run, a write raises (R-42); after the run's end, and
    before its beginning, there is nothing to fence.

    Args:
        store: Where they lie.
        scope: Whose they are.
        hold: Tells the run that must be held for a write; ``None`` where there is none.
    """

    __slots__ = ("_hold", "_scope", "_store")

    def __init__(
        self,
        store: Store,
        scope: RecordScope,
        hold: Callable[[], RunHold | None] | None = None,
    ) -> None:
        self._store: Final = store
        self._scope: Final = scope
        self._hold: Final = hold

    @property
    def shared(self) -> Records:
        """The plugin's rows in the same partition that are of no thread, and stay without one."""
        return Records(self._store, self._scope._replace(thread_id=""), self._hold)

    async def get(self, key: str, default: JsonValue = None) -> JsonValue:
        """
        The value of a row, or *default* if there is no such row.

        Raises:
            InvalidInput: It can't be a key.
        """
        text = await self._store.get_record(self._scope, _key(key))
        if text is None:
            return default
        value: JsonValue = json.loads(text)
        return value

    async def put(self, key: str, value: object) -> None:
        """
        Write a row, or replace it.

        Args:
            key: 1 to 256 characters.
            value: Strict JSON, of at most a million characters.

        Raises:
            InvalidInput: Key or value does not fit; nothing is written.
            LeaseLost: Another worker holds the run; nothing is written.
        """
        faults = _key_faults(key) + list(check_json(value, at="value"))
        text = ""
        if not faults:
            text = dump_json(value)
            if len(text) > _VALUE_LENGTH:
                told = f"has {len(text)} characters of JSON; at most {_VALUE_LENGTH} are stored"
                faults.append(Fault("value", told))
        if faults:
            raise InvalidInput(faults, subject="records")
        await self._store.put_record(self._scope, key, text, self._held())

    async def delete(self, key: str) -> bool:
        """
        Delete a row; whether there was one.

        Raises:
            InvalidInput: It can't be a key.
            LeaseLost: Another worker holds the run; nothing is deleted.
        """
        return await self._store.delete_record(self._scope, _key(key), self._held())

    async def items(
        self, prefix: str = "", *, after: str = "", limit: int | None = None
    ) -> list[tuple[str, JsonValue]]:
        """
        Rows whose keys begin with *prefix*, ordered by key.

        Args:
            prefix: What the keys begin with.
            after: Only keys behind this one: the last key of the page before.
            limit: At most so many; ``None``: all.

        Raises:
            InvalidInput: *prefix* or *after* can't be of a key.
        """
        faults = [*_text_faults(prefix, "prefix"), *_text_faults(after, "after")]
        if limit is not None and limit < 1:
            faults.append(Fault("limit", "expected at least 1, or None"))
        if faults:
            raise InvalidInput(faults, subject="records")
        most = _EVERYTHING if limit is None else min(limit, _EVERYTHING)
        rows = await self._store.list_records(self._scope, prefix, after, most)
        return [(key, json.loads(text)) for key, text in rows]

    def _held(self) -> RunHold | None:
        return None if self._hold is None else self._hold()


def _key(key: str) -> str:
    if faults := _key_faults(key):
        raise InvalidInput(faults, subject="records")
    return key


def _key_faults(key: object) -> list[Fault]:
    if key == "":
        return [Fault("key", f"is empty: expected 1 to {_KEY_LENGTH} characters")]
    return _text_faults(key, "key")


def _text_faults(text: object, at: str) -> list[Fault]:
    if not isinstance(text, str):
        return [Fault(at, f"expected text, got {type(text).__name__}")]
    if len(text) > _KEY_LENGTH:
        return [Fault(at, f"has {len(text)} characters; keys have at most {_KEY_LENGTH}")]
    faults = list(check_json(text, at=at))  # A lone surrogate is no text.
    faults += [Fault(at, f"keys have no {char!r}") for char in _UNKEPT if char in text]
    return faults
