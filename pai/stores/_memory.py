"""The store without a disk: plain objects, no thread, nothing awaited."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable
from datetime import UTC, datetime
from operator import attrgetter
from typing import Literal

import attrs

from pai.errors import DefinitionError, Fault, ThreadBusy, ThreadNotFound
from pai.ports import RecordScope, RunHold
from pai.protocol import (
    Accepted,
    Batch,
    CallRecord,
    Claimed,
    Commit,
    Committed,
    Event,
    Message,
    RunEnd,
    RunRecord,
    ThreadKey,
    ThreadRecord,
    ThreadSnapshot,
    ToolCallPart,
)
from pai.stores._rules import (
    cancelled_end,
    digest_conflict,
    finished_event,
    lease_lost,
    merge_call,
    message_taken,
    no_message,
    page_cursor,
    page_start,
    settled_call,
    stamp,
)

__all__ = ("MemoryStore", "from_url")

_RUN = attrgetter(*(field.name for field in attrs.fields(RunRecord)))
_HEAD = attrgetter(*(field.name for field in attrs.fields(ThreadRecord)))


def _copy(run: RunRecord) -> RunRecord:
    # Nobody outside may hold what we change: a caller's change is none before it is committed.
    return RunRecord(*_RUN(run))


def _copy_head(head: ThreadRecord) -> ThreadRecord:
    return ThreadRecord(*_HEAD(head))


class _Thread:
    """One thread. A run's *turn* is its place among the thread's runs, from 1."""

    __slots__ = (
        "active", "batches", "calls", "events", "fence", "head", "messages", "ordered", "places",
        "queue", "ready", "runs", "starts", "takeovers", "turns", "where",
    )  # fmt: skip

    def __init__(self, head: ThreadRecord) -> None:
        self.head = head
        self.fence = 0
        self.takeovers = 0
        self.events = 0
        self.batches: list[Batch] = []
        self.runs: dict[str, RunRecord] = {}
        # Ids of queued runs, oldest first; a dict, since one in the middle may be cancelled.
        self.queue: dict[str, None] = {}
        self.active: RunRecord | None = None
        # Since when there is a run to take: that of the queue, or the active one from then on.
        self.ready: float | None = None
        self.messages: list[Message] = []
        # The turn of each message, and whether none stands behind one of a later turn.
        self.turns: list[int] = []
        self.ordered = True
        # Run id to its turn, and the index before which it has no message.
        self.starts: dict[str, tuple[int, int]] = {}
        # Message id to index; (run id, call id) to the index of the message with that call.
        self.where: dict[str, int] = {}
        self.places: dict[tuple[str, str], int] = {}
        self.calls: dict[str, dict[str, CallRecord]] = {}

    def log(self, run_id: str, events: list[Event]) -> Batch:
        batch = Batch(self.events + 1, run_id, events[:])
        if events:
            self.events += len(events)
            self.batches.append(batch)
        return batch

    def put(self, message: Message, turn: int) -> None:
        """Add a message, or replace the one of its id."""
        index = self.where.setdefault(message.id, len(self.messages))
        if index < len(self.messages):
            self.messages[index] = message
        else:
            if index and turn < self.turns[-1]:
                self.ordered = False
            self.messages.append(message)
            self.turns.append(turn)
        for part in message.parts:
            if type(part) is ToolCallPart:
                self.places[message.run_id, part.call_id] = index
                call = self.calls.get(message.run_id, {}).get(part.call_id)
                if call is not None:
                    self.merge(message.run_id, call)

    def merge(self, run_id: str, call: CallRecord) -> None:
        index = self.places.get((run_id, call.call_id))
        if index is not None and call.status == "settled":
            self.messages[index] = merge_call(self.messages[index], call)

    def history(self, turn: int) -> list[Message]:
        """What the run of *turn* has to know: messages of the runs up to it, run by run."""
        if self.ordered:
            if not self.turns or self.turns[-1] <= turn:
                return self.messages[:]
            return self.messages[: bisect_right(self.turns, turn)]
        pairs = [pair for pair in zip(self.turns, self.messages, strict=True) if pair[0] <= turn]
        pairs.sort(key=lambda pair: pair[0])
        return [message for _, message in pairs]

    def take(self, now: float, lease: float, started: list[Event]) -> Claimed:
        """Start the oldest queued run, or take the active one over."""
        run = self.active
        if run is None:
            run_id = next(iter(self.queue))
            del self.queue[run_id]
            run = self.active = self.runs[run_id]
            run.status = "running"
            self.takeovers = 0
            if run.started_at is None:
                run.started_at = datetime.now(UTC)
        else:
            self.takeovers += 1
        run.attempt += 1
        self.fence += 1
        self.ready = now + lease
        stamp(started, run)
        calls = sorted(self.calls.get(run.id, {}).items())
        return Claimed(
            _copy(run),
            self.fence,
            _copy_head(self.head),
            self.history(self.starts[run.id][0]),
            tuple([call for _, call in calls if call.status != "settled"]),
            self.log(run.id, started),
            self.takeovers,
        )

    def settle(self, run: RunRecord, end: RunEnd) -> None:
        run.status = end.status
        run.finished_at = self.head.updated_at = end.finished_at
        run.outcome = end.outcome
        run.reason = end.reason
        run.stop_reason = end.stop_reason
        run.usage = end.usage
        run.error = end.error


class MemoryStore:
    """
    Threads that live as long as the process.

    Args:
        clock: Seconds on a clock that never goes back; leases end by it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._threads: dict[ThreadKey, _Thread] = {}
        # Those with a run that is queued or active.
        self._busy: dict[ThreadKey, _Thread] = {}
        self._records: dict[RecordScope, dict[str, str]] = {}

    @property
    def durable(self) -> bool:
        return False

    async def open(self) -> None:
        """Nothing to get ready."""

    async def close(self) -> None:
        """Nothing to let go of: what is here stays until the store itself goes."""

    def _held(self, key: ThreadKey, run_id: str, fence: int) -> tuple[_Thread, RunRecord]:
        thread = self._threads.get(key)
        if thread is None or thread.fence != fence:
            raise lease_lost(run_id)
        run = thread.active
        if run is None or run.id != run_id or run.status != "running":
            raise lease_lost(run_id)
        return thread, run

    async def accept(
        self,
        thread: ThreadRecord,
        run: RunRecord,
        message: Message | None,
        events: list[Event],
        *,
        when_busy: Literal["queue", "reject"] = "queue",
        claim: tuple[str, float] | None = None,
        started: list[Event] | None = None,
    ) -> Accepted:
        key = thread.key
        here = self._threads.get(key)
        if here is None:
            here = _Thread(_copy_head(thread))
        else:
            if here.head.agent != thread.agent:
                raise ThreadNotFound(key.thread_id)
            known = here.runs.get(run.id)
            if known is not None:
                if known.digest != run.digest:
                    raise digest_conflict(run.id)
                return Accepted(_copy(known), None, None, known=True)
            if when_busy == "reject" and (here.active is not None or here.queue):
                raise ThreadBusy(key.thread_id)
            if message is not None and message.id in here.where:
                raise message_taken(message.id)
        # From here on nothing can fail.
        free = here.active is None and not here.queue
        own = here.runs[run.id] = _copy(run)
        turn = len(here.runs)
        here.starts[run.id] = (turn, len(here.messages))
        here.queue[run.id] = None
        here.head.updated_at = run.created_at
        if message is not None:
            here.put(message, turn)
        self._threads[key] = self._busy[key] = here
        batch = here.log(run.id, events)
        now = self._clock()
        if free and claim is not None:
            claimed = here.take(now, claim[1], started or [])
            return Accepted(claimed.run, batch, claimed)
        if free:
            here.ready = now
        return Accepted(_copy(own), batch, None)

    async def claim(
        self, key: ThreadKey, owner: str, lease: float, started: list[Event]
    ) -> Claimed | None:
        here = self._busy.get(key)
        if here is None:
            return None
        now = self._clock()
        if here.active is not None and (here.ready is None or here.ready > now):
            return None
        return here.take(now, lease, started)

    async def waiting(self, limit: int = 100) -> list[ThreadKey]:
        now = self._clock()
        ready = [
            (here.ready, key)
            for key, here in self._busy.items()
            if here.ready is not None and here.ready <= now
        ]
        ready.sort()
        return [key for _, key in ready[:limit]]

    async def renew(self, key: ThreadKey, run_id: str, fence: int, lease: float) -> str | None:
        here, run = self._held(key, run_id, fence)
        here.ready = self._clock() + lease
        return run.cancel

    async def release(self, key: ThreadKey, run_id: str, fence: int) -> None:
        thread, _ = self._held(key, run_id, fence)
        thread.ready = self._clock()
        thread.takeovers -= 1

    async def append(self, key: ThreadKey, run_id: str, fence: int, events: list[Event]) -> Batch:
        here, _ = self._held(key, run_id, fence)
        return here.log(run_id, events)

    async def commit(self, key: ThreadKey, run_id: str, fence: int, change: Commit) -> Committed:
        here, run = self._held(key, run_id, fence)
        message = change.message
        calls = here.calls.get(run_id)
        for message_id in change.message_metadata:
            if message_id not in here.where and (message is None or message_id != message.id):
                raise no_message(message_id)
        if calls is not None:
            for call in change.calls:
                known = calls.get(call.call_id)
                if known is not None and known.status == "settled":
                    raise settled_call(call.call_id)
        # From here on nothing can fail.
        here.takeovers = 0
        if message is not None:
            here.put(message, here.starts[run_id][0])
        if change.calls:
            if calls is None:
                calls = here.calls[run_id] = {}
            for call in change.calls:
                calls[call.call_id] = call
                here.merge(run_id, call)
        for message_id, metadata in change.message_metadata.items():
            index = here.where[message_id]
            here.messages[index] = attrs.evolve(here.messages[index], metadata=metadata)
        if change.run_metadata is not None:
            run.metadata = change.run_metadata
        if change.thread_metadata is not None:
            here.head.metadata = change.thread_metadata
        batch = here.log(run_id, change.events)
        if change.end is None:
            return Committed(batch, cancel=run.cancel)
        here.settle(run, change.end)
        here.active = None
        if here.queue:
            here.ready = self._clock()
            return Committed(batch, more=True, cancel=run.cancel)
        here.ready = None
        del self._busy[key]
        return Committed(batch, cancel=run.cancel)

    async def cancel(self, key: ThreadKey, run_id: str, reason: str) -> Batch | None:
        here = self._busy.get(key)
        run = None if here is None else here.runs.get(run_id)
        if here is None or run is None:
            return None
        if run is here.active and run.cancel is None:
            run.cancel = reason
        if run.status != "queued":
            return None
        run.cancel = reason
        end = cancelled_end(reason)
        del here.queue[run_id]
        here.settle(run, end)
        if here.active is None and not here.queue:
            here.ready = None
            del self._busy[key]
        return here.log(run_id, [finished_event(end, run.metadata)])

    async def run(self, key: ThreadKey, run_id: str) -> RunRecord | None:
        here = self._threads.get(key)
        run = None if here is None else here.runs.get(run_id)
        return None if run is None else _copy(run)

    async def snapshot(self, key: ThreadKey, agent: str) -> ThreadSnapshot | None:
        here = self._threads.get(key)
        if here is None or here.head.agent != agent:
            return None
        runs = [_copy(run) for run in here.runs.values()]
        return ThreadSnapshot(_copy_head(here.head), here.messages[:], runs, here.events)

    async def run_messages(self, key: ThreadKey, run_id: str) -> list[Message]:
        here = self._threads.get(key)
        if here is None or run_id not in here.starts:
            return []
        own = here.messages[here.starts[run_id][1] :]
        return [message for message in own if message.run_id == run_id and message.role != "user"]

    async def events(self, key: ThreadKey, after: int, limit: int = 500) -> list[Batch]:
        here = self._threads.get(key)
        if here is None or after >= here.events:
            return []
        start = bisect_right(here.batches, after, key=lambda batch: batch.last)
        return here.batches[start : start + limit]

    async def threads(
        self, partition: str, agent: str, limit: int, after: str | None
    ) -> tuple[list[ThreadRecord], str | None]:
        heads = [
            here.head
            for key, here in self._threads.items()
            if key.partition == partition and here.head.agent == agent
        ]
        order = [(head.updated_at.timestamp(), head.key.thread_id, head) for head in heads]
        order.sort(key=lambda row: row[:2], reverse=True)
        if after is not None:
            start = page_start(after)
            order = [row for row in order if row[:2] < start]
        page = [_copy_head(row[2]) for row in order[:limit]]
        more = len(order) > limit > 0
        return page, page_cursor(page[-1].updated_at, page[-1].key.thread_id) if more else None

    async def get_record(self, scope: RecordScope, key: str) -> str | None:
        return self._records.get(scope, {}).get(key)

    async def list_records(
        self, scope: RecordScope, prefix: str, after: str, limit: int
    ) -> list[tuple[str, str]]:
        rows = self._records.get(scope, {})
        keys = sorted([key for key in rows if key > after and key.startswith(prefix)])
        return [(key, rows[key]) for key in keys[:limit]]

    async def put_record(
        self, scope: RecordScope, key: str, value: str, hold: RunHold | None = None
    ) -> None:
        if hold is not None:
            self._held(*hold)
        self._records.setdefault(scope, {})[key] = value

    async def delete_record(
        self, scope: RecordScope, key: str, hold: RunHold | None = None
    ) -> bool:
        if hold is not None:
            self._held(*hold)
        return self._records.get(scope, {}).pop(key, None) is not None


def from_url(url: str) -> MemoryStore:
    """
    Make the store for ``memory:``.

    Raises:
        DefinitionError: The URL says more than that.
    """
    if url not in ("memory:", "memory://"):
        fault = Fault("store 'memory'", "it has no options: its URL is 'memory:'")
        raise DefinitionError([fault], subject="store")
    return MemoryStore()
