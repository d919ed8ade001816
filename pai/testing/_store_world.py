"""What the checks of a store are made of: a thread of their own, and records to put into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

from pai.ports import Store
from pai.protocol import (
    Accepted,
    Batch,
    Claimed,
    Commit,
    Committed,
    Event,
    Merge,
    Message,
    MessagePart,
    Metadata,
    Role,
    RunEnd,
    RunFinished,
    RunQueued,
    RunRecord,
    RunStarted,
    StepFinished,
    TextDelta,
    TextPart,
    ThreadKey,
    ThreadRecord,
    ThreadSnapshot,
    new_id,
)

__all__ = ("EARLY", "Make", "World", "becomes", "expect", "opened", "refuses", "shows")

Make = Callable[[], Store]
"""Makes a store that is not open; if it is durable, always one over the same data."""

EARLY = datetime(2024, 2, 29, 12, 30, 15, 123_457, tzinfo=UTC)
"""A time with all its digits."""


def expect(condition: object, promise: str) -> None:
    """Fail, naming the promise that is broken."""
    if not condition:
        raise AssertionError(promise)


def becomes(bags: Metadata) -> Merge:
    """Replace what is stored, whatever it is."""
    return lambda stored: bags


def shows(**public: object) -> Merge:
    """Set these public keys."""
    return lambda stored: Metadata(stored.private, {**stored.public, **public})


async def refuses(error: type[Exception], work: Awaitable[object], promise: str) -> None:
    """Expect that *work* raises *error*."""
    try:
        await work
    except error:
        return
    raise AssertionError(f"{promise}: {error.__name__} was expected")


@asynccontextmanager
async def opened(make: Make) -> AsyncIterator[World]:
    """A store that is open, with a thread that nobody else knows."""
    store = make()
    await store.open()
    try:
        yield World(store)
    finally:
        await store.close()


class World:
    """
    One thread in one store.

    Args:
        store: The store.
        key: The thread; a fresh one in a fresh partition if there is none.
    """

    def __init__(self, store: Store, key: ThreadKey | None = None) -> None:
        self.store = store
        self.key = key or ThreadKey(new_id(), new_id())
        self.agent = "main"
        self.born = EARLY

    def head(self) -> ThreadRecord:
        return ThreadRecord(self.key, self.agent, Metadata(), self.born, EARLY)

    def run(self, run_id: str | None = None, *, minutes: int = 0) -> RunRecord:
        """A run that was accepted *minutes* after :data:`EARLY`."""
        return RunRecord(
            run_id or new_id(),
            self.agent,
            "1.0.0",
            "send",
            {"identity": {"user": "u"}, "clientData": None},
            "digest",
            EARLY + timedelta(minutes=minutes),
        )

    def message(self, run_id: str, *parts: MessagePart | str, role: Role = "assistant") -> Message:
        own = [TextPart(part) if isinstance(part, str) else part for part in parts]
        return Message(new_id(), role, tuple(own), run_id, EARLY)

    async def send(
        self,
        text: str = "hello",
        *,
        run: RunRecord | None = None,
        lease: float | None = None,
        reject: bool = False,
    ) -> Accepted:
        """Accept a run with a message; with a *lease*, also claim it."""
        own = run or self.run()
        started: list[Event] = [RunStarted(self.key.thread_id)]
        return await self.store.accept(
            self.head(),
            own,
            self.message(own.id, text, role="user"),
            [RunQueued("send")],
            when_busy="reject" if reject else "queue",
            claim=None if lease is None else ("worker", lease),
            started=None if lease is None else started,
        )

    async def begin(self, text: str = "hello", *, lease: float = 60.0) -> Claimed:
        """Accept a run on the free thread and claim it."""
        accepted = await self.send(text, lease=lease)
        if accepted.claimed is None:
            raise AssertionError("accept claims at once if the thread is free")
        return accepted.claimed

    async def claim(self, *, lease: float = 60.0) -> Claimed | None:
        started: list[Event] = [RunStarted(self.key.thread_id)]
        return await self.store.claim(self.key, "other", lease, started)

    async def must_claim(self, *, lease: float = 60.0) -> Claimed:
        claimed = await self.claim(lease=lease)
        if claimed is None:
            raise AssertionError("a thread with a run to take gives it")
        return claimed

    async def append(self, claimed: Claimed, *texts: str) -> Batch:
        events: list[Event] = [TextDelta("1", text) for text in texts]
        return await self.store.append(self.key, claimed.run.id, claimed.fence, events)

    async def commit(self, claimed: Claimed, change: Commit) -> Committed:
        return await self.store.commit(self.key, claimed.run.id, claimed.fence, change)

    async def say(self, claimed: Claimed, *parts: MessagePart | str) -> Message:
        """Commit a step with this message."""
        message = self.message(claimed.run.id, *parts)
        await self.commit(claimed, Commit([StepFinished(1, "stop")], message))
        return message

    async def end(self, claimed: Claimed, *, minutes: int = 0) -> Committed:
        """Settle the run."""
        end = RunEnd("completed", EARLY + timedelta(minutes=minutes), outcome="completed")
        return await self.commit(claimed, Commit([RunFinished("completed")], end=end))

    async def snapshot(self) -> ThreadSnapshot:
        found = await self.store.snapshot(self.key, self.agent)
        if found is None:
            raise AssertionError("a thread that was accepted can be read")
        return found

    async def texts(self) -> list[str]:
        return [message.text for message in (await self.snapshot()).messages]

    async def log(self, after: int = 0) -> list[tuple[int, str, str]]:
        """All events above *after*: number, run and type."""
        batches = await self.store.events(self.key, after, 10_000)
        return [
            (event.seq, event.run_id, event.type)
            for batch in batches
            for event in batch.numbered(after)
        ]

    async def traces(self) -> object:
        """All that can be seen of the thread, to tell whether anything was written."""
        found = await self.store.snapshot(self.key, self.agent)
        if found is None:
            return None
        messages = [(m.id, m.parts, m.metadata) for m in found.messages]
        runs = [(r.id, r.status, r.attempt, r.metadata, r.cancel) for r in found.runs]
        head = found.thread
        told = head.metadata, head.title, head.title_source, found.cursor
        return messages, runs, told, await self.log()
