"""Plugins' stored rows where there is no run."""

from __future__ import annotations

from typing import Final

from pai.contexts import Records
from pai.ports import RecordScope, Store
from pai.protocol import ThreadKey

__all__ = ("RecordSource",)


class RecordSource:
    """Gives each plugin its rows of a thread, to a hook that is called outside of a run."""

    __slots__ = ("_key", "_store")

    def __init__(self, store: Store, key: ThreadKey) -> None:
        self._store: Final = store
        self._key: Final = key

    def records_of(self, plugin: str) -> Records:
        """The rows of the plugin of this name."""
        return Records(self._store, RecordScope(self._key.partition, plugin, self._key.thread_id))
