"""How many threads are worked on at once."""

from __future__ import annotations

from typing import Final

import anyio

from pai.protocol import ThreadKey

__all__ = ("Room",)


class Room:
    """
    Places for threads that are worked on; who finds none waits, in the order they came.

    Room is taken before a run is claimed: one that waits stays in its queue, where another process
    may take it.

    Args:
        size: How many; ``None``: no limit.
    """

    def __init__(self, size: int | None) -> None:
        self.limited: Final = size is not None
        self._free = size or 0
        self._waiting: dict[ThreadKey, anyio.Event] = {}
        self._granted: set[ThreadKey] = set()
        self._lent: set[ThreadKey] = set()

    async def enter(self, key: ThreadKey) -> bool:
        """
        Wait for a place.

        Returns:
            Whether one was taken, which :meth:`leave` gives back.
        """
        if not self.limited or key in self._lent:
            return False
        if self._free:
            self._free -= 1
            return True
        event = self._waiting[key] = anyio.Event()
        try:
            await event.wait()
        except BaseException:
            self._waiting.pop(key, None)
            if key in self._granted:
                self._granted.discard(key)
                self.leave()
            raise
        granted = key in self._granted
        self._granted.discard(key)
        return granted

    def leave(self) -> None:
        """Give a place back: to who waits longest."""
        if not self._waiting:
            self._free += 1
            return
        key = next(iter(self._waiting))
        self._granted.add(key)
        self._waiting.pop(key).set()

    def lend(self, key: ThreadKey) -> None:
        """Let a subagent's thread go on within the place of the run that waits for it."""
        if not self.limited:
            return
        self._lent.add(key)
        event = self._waiting.pop(key, None)
        if event is not None:
            event.set()

    def forget(self, key: ThreadKey) -> None:
        """Nobody waits for it any more."""
        self._lent.discard(key)
