"""The hub: hands committed batches of one thread to the watchers of this process (R-29a)."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import anyio

from pai.errors import ThreadNotFound
from pai.ports import Store
from pai.protocol import Batch, ThreadKey

__all__ = ("Hub", "Watcher")

KEEP = 2048
"""Batches kept for watchers; one that is further behind reads the store (R-27)."""

POLL = 0.25
"""Seconds between looks into the store while no worker of this process writes the thread."""

POLL_AFTER_NEWS = 0.1
"""The same, where the last look found something: more may follow."""


class Hub:
    """
    One shared list of batches; a watcher is a place in the log, and while it waits, nothing more.

    The order is the log's: a batch that comes early waits for those before it. Only watchers that
    join late, and threads that another process writes, read the store, with one reader a thread.
    A hub lives as long as a worker or a watcher holds it, and serves one thread: where that is
    deleted, and another made under its key, the watchers of the first are told so (R-16).

    Attributes:
        writers: Workers of this process that have a run of the thread.
        born: When the thread was made; ``None`` until that is known.
        agent: The agent that it belongs to; known with *born*.
        ended: The thread is no more.
    """

    __slots__ = (
        "__weakref__", "_changed", "_early", "_key", "_log", "_next", "_pause", "_reading",
        "_store", "agent", "born", "ended", "writers",
    )  # fmt: skip

    def __init__(self, store: Store, key: ThreadKey) -> None:
        self._store: Final = store
        self._key: Final = key
        self._log: list[Batch] = []
        self._early: dict[int, Batch] = {}
        self._next: int | None = None
        self._changed: anyio.Event | None = None
        self._reading = False
        self._pause = POLL
        self.writers = 0
        self.born: datetime | None = None
        self.agent: str | None = None
        self.ended = False

    def bind(self, born: datetime, agent: str) -> bool:
        """Be the hub of the thread that was made then; whether it is."""
        if self.born is None:
            self.born, self.agent = born, agent
        return self.born == born and not self.ended

    async def known(self) -> bool:
        """Whether there is such a thread: then the hub is that one's from now on."""
        if self.born is None:
            head = await self._store.head(self._key)
            if head is not None:
                self.bind(head.created_at, head.agent)
        return self.born is not None

    def check(self, agent: str) -> None:
        """
        See that the thread is this agent's.

        Raises:
            ThreadNotFound: It is not.
        """
        if self.agent != agent:
            raise ThreadNotFound(self._key.thread_id)

    def end(self) -> None:
        """The thread was deleted: whoever watches it is told."""
        self.ended = True
        self.wake()

    def leave(self) -> None:
        """A worker of this process is done: from now on others may write."""
        self.writers -= 1
        # Those who rely on being told have to look for themselves again.
        self.wake()

    def publish(self, batch: Batch) -> None:
        """Take a committed batch; one that is known already is passed over."""
        if not batch.size or self.ended:
            return
        log = self._log
        if self._next is None:
            self._next = batch.first
        if batch.first < self._next <= batch.last:
            # It was made compact meanwhile: who knows a part of it is told all.
            self._next = batch.first
        if batch.first != self._next:
            if batch.first > self._next:
                self._early[batch.first] = batch
                self.wake()  # a watcher fetches what is missing
            return
        log.append(batch)
        self._next = batch.first + batch.size
        while self._early and (early := self._early.pop(self._next, None)) is not None:
            log.append(early)
            self._next = early.first + early.size
        if len(log) > KEEP:
            del log[: KEEP // 2]
        self.wake()

    def wake(self) -> None:
        """Let all watchers look again."""
        changed = self._changed
        if changed is not None:
            self._changed = None
            changed.set()

    def _place(self, after: int) -> int | None:
        """The index of the first kept batch that ends above *after*; ``None`` if one before is gone."""
        log = self._log
        if not log or self._next is None or after + 1 < log[0].first:
            return None
        if after + 1 >= self._next:
            return len(log)
        low, high = 0, len(log)
        while low < high:
            middle = (low + high) // 2
            if log[middle].last <= after:
                low = middle + 1
            else:
                high = middle
        return low

    async def ready(self, after: int) -> list[Batch]:
        """
        Batches with events above *after*, from wherever they are; none if there are none yet.

        Raises:
            ThreadNotFound: The thread was deleted.
        """
        if self.ended:
            raise ThreadNotFound(self._key.thread_id)
        place = self._place(after)
        if place is not None:
            return self._log[place:]
        batches = await self.stored(after)
        if batches and self._next is None:
            self._next = batches[-1].last + 1
        return batches

    async def stored(self, after: int) -> list[Batch]:
        """
        Batches with events above *after*, as the store has them.

        Raises:
            ThreadNotFound: The thread was deleted.
        """
        if not await self.known():
            return []
        try:
            return await self._store.events(self._key, after, born=self.born)
        except ThreadNotFound:
            self.end()
            raise

    async def wait(self, after: int) -> None:
        """Return when there may be more than *after*, or the thread is no more."""
        if self.ended or self._place(after) not in (None, len(self._log)):
            return
        changed = self._changed
        if changed is None:
            changed = self._changed = anyio.Event()
        if not self._early:
            if self.writers or not self._store.durable:
                await changed.wait()
                return
            with anyio.move_on_after(self._pause):
                await changed.wait()
                return
        elif self._reading:
            await changed.wait()
            return
        if self._reading:
            return
        self._reading = True
        try:
            start = after if self._next is None else self._next - 1
            news = await self.stored(start)
            self._pause = POLL_AFTER_NEWS if news else POLL
            for batch in news:
                self.publish(batch)
        finally:
            self._reading = False


class Watcher:
    """
    A place in a thread's log. It holds nothing but its hub, so it needs no closing.

    Args:
        hub: The thread's hub.
        after: The number of the last event known.
        agent: Only if the thread is this agent's (A-RUN-5); ``None``: that is known.
    """

    __slots__ = ("_agent", "after", "hub")

    def __init__(self, hub: Hub, after: int, agent: str | None = None) -> None:
        self.hub = hub
        self.after = after
        self._agent = agent

    async def ready(self) -> list[Batch]:
        """
        What is there by now, and move on past it.

        Raises:
            ThreadNotFound: The thread was deleted, or is another agent's.
        """
        if self._agent is not None:
            if await self.hub.known():
                self.hub.check(self._agent)
                self._agent = None
            elif not self.hub.ended:
                return []
        batches = await self.hub.ready(self.after)
        if batches:
            self.after = batches[-1].last
        return batches

    async def stored(self) -> list[Batch]:
        """What the store has by now, and move on past it."""
        batches = await self.hub.stored(self.after)
        if batches:
            self.after = batches[-1].last
        return batches

    async def next(self) -> list[Batch]:
        """What comes next; wait until something does."""
        while not (batches := await self.ready()):
            await self.hub.wait(self.after)
        return batches
