"""Making the logs of runs that ended short, once nobody is likely to follow their pieces any more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import Final

import anyio

from pai.ports import Store
from pai.protocol import ThreadKey

__all__ = ("Retention",)

LOOK = 5.0
"""Seconds between looks at what is due here."""

SWEEP = 3600.0
"""Seconds between looks for what other processes left; the first is at the start."""

_AT_ONCE = 1000
"""Threads of one sweep."""


class Retention:
    """
    Makes logs short.

    Args:
        store: Where they are.
        age: Seconds that the pieces of a run's texts stay after its end; ``None``: for good.
    """

    def __init__(self, store: Store, age: float | None) -> None:
        self._store: Final = store
        self._age: Final = age or 0.0
        self.used: Final = age is not None and store.durable
        """Whether anything is made short: in memory, all stays as it is."""
        # When each thread is due, the first one first; and those where more runs have ended since.
        self._due: dict[ThreadKey, float] = {}
        self._again: set[ThreadKey] = set()

    def ended(self, key: ThreadKey) -> None:
        """A run of the thread has ended here."""
        if not self.used:
            return
        if key in self._due:
            self._again.add(key)
        else:
            self._due[key] = monotonic() + self._age

    async def watch(self) -> None:
        """Do what is due, for good."""
        swept: float | None = None
        while True:
            await anyio.sleep(LOOK)
            await self._short()
            now = monotonic()
            if swept is None or now - swept >= SWEEP:
                swept = now
                await self._sweep()

    async def _short(self) -> None:
        now = monotonic()
        for key, due in list(self._due.items()):
            if due > now:
                return
            del self._due[key]
            await self._store.compact(key, self._before())
            if key in self._again:
                self._again.discard(key)
                self._due[key] = now + self._age

    async def _sweep(self) -> None:
        for key in await self._store.long_logs(self._before(), _AT_ONCE):
            await self._store.compact(key, self._before())

    def _before(self) -> datetime:
        return datetime.now(UTC) - timedelta(seconds=self._age)
