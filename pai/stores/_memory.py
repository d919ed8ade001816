"""The store without a disk: plain objects, no thread, nothing awaited."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal

import attrs

from pai.errors import (
    CallsPending,
    DefinitionError,
    Fault,
    ThreadBusy,
    ThreadNotFound,
)
from pai.ports import RecordScope, RunHold
from pai.protocol import (
    GIVEN_UP,
    Accepted,
    Answered,
    Batch,
    CallRecord,
    Claimed,
    Commit,
    Committed,
    Decision,
    Event,
    JobRecord,
    Latest,
    Leaves,
    Message,
    RunRecord,
    RunSource,
    Stopped,
    Suspension,
    ThreadChange,
    ThreadKey,
    ThreadRecord,
    ThreadSnapshot,
)
from pai.schema import JsonObject
from pai.stores._bags import change_events, put_in
from pai.stores._memory_jobs import JobMethods
from pai.stores._memory_stops import StopMethods
from pai.stores._memory_thread import MemoryThread, copied_head, copied_run
from pai.stores._rules import (
    SUPERSEDED,
    cancelled_end,
    digest_conflict,
    lease_lost,
    leaves_subagents,
    message_taken,
    no_message,
    not_shown,
    page_cursor,
    page_start,
    plain,
    settled_call,
)

__all__ = ("MemoryStore", "from_url")


class MemoryStore(JobMethods, StopMethods):
    """
    Threads that live as long as the process.

    Args:
        clock: Seconds on a clock that never goes back; leases end by it.
    """

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._threads: dict[ThreadKey, MemoryThread] = {}
        # Those with a run that is queued or active.
        self._busy: dict[ThreadKey, MemoryThread] = {}
        self._records: dict[RecordScope, dict[str, str]] = {}

    @property
    def durable(self) -> bool:
        return False

    async def open(self) -> None:
        """Nothing to get ready."""

    async def close(self) -> None:
        """Nothing to let go of: what is here stays until the store itself goes."""

    def _held(self, key: ThreadKey, run_id: str, fence: int) -> tuple[MemoryThread, RunRecord]:
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
        when_pending: Literal["reject", "supersede"] = "reject",
        claim: tuple[str, float] | None = None,
        started: list[Event] | None = None,
        leaves: Leaves | None = None,
    ) -> Accepted:
        key = thread.key
        here = self._threads.get(key)
        waits = False
        if here is None:
            here = MemoryThread(copied_head(thread))
            here.head.title = plain(here.head.title)
        else:
            if here.head.agent != thread.agent:
                raise ThreadNotFound(key.thread_id)
            known = here.runs.get(run.id)
            if known is not None:
                if known.digest != run.digest:
                    raise digest_conflict(run.id)
                born = here.head.created_at
                return Accepted(copied_run(known), None, None, known=True, born=born)
            waits = here.active is not None and here.active.status == "suspended"
            if waits and when_pending == "reject":
                raise CallsPending([call.call_id for call in here.pending()])
            if when_busy == "reject" and (here.queue or not (here.active is None or waits)):
                raise ThreadBusy(key.thread_id)
            if message is not None and message.id in here.where:
                raise message_taken(message.id)
        if run.after is not None and not here.shows(run.after):
            raise not_shown(run.after)
        # From here on nothing can fail.
        stopped: list[Stopped] = []
        if waits and here.active is not None:
            end = cancelled_end("superseded", here.active.usage)
            self.end_idle(here, here.active, end, "denied", SUPERSEDED, leaves, stopped)
        free = here.active is None and not here.queue
        own = here.runs[run.id] = copied_run(run)
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
            born = here.head.created_at
            return Accepted(claimed.run, batch, claimed, stopped=stopped, born=born)
        if here.active is None:
            here.ready = now if free or stopped else here.ready
        active = None if here.active is None else here.active.id
        return Accepted(
            copied_run(own), batch, None, active=active, stopped=stopped,
            born=here.head.created_at,
        )  # fmt: skip

    async def claim(
        self,
        key: ThreadKey,
        owner: str,
        lease: float,
        started: list[Event],
        takes: Callable[[RunRecord], bool] | None = None,
    ) -> Claimed | None:
        here = self._busy.get(key)
        if here is None:
            return None
        now = self._clock()
        if here.ready is None or (here.active is not None and here.ready > now):
            return None
        if takes is not None and not takes(copied_run(here.next_run())):
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

    async def release(self, key: ThreadKey, run_id: str, fence: int, delay: float = 0.0) -> Batch:
        here, run = self._held(key, run_id, fence)
        return here.release(run, self._clock() + delay)

    async def answer(
        self,
        key: ThreadKey,
        run_id: str,
        decisions: Sequence[Decision],
        request: JsonObject | None = None,
    ) -> Answered:
        here = self._threads.get(key)
        run = None if here is None else here.runs.get(run_id)
        if here is None or run is None:
            raise ThreadNotFound(key.thread_id)
        batch = here.answer(run, decisions, self._clock())
        if batch is not None and request is not None:
            run.request = request
        return Answered(copied_run(run), batch)

    async def calls(self, key: ThreadKey, run_id: str) -> list[CallRecord]:
        here = self._threads.get(key)
        return [] if here is None else list(here.calls.get(run_id, {}).values())

    async def append(
        self,
        key: ThreadKey,
        run_id: str,
        fence: int,
        events: list[Event],
        *,
        jobs: Sequence[JobRecord] = (),
        unlabelled: str | None = None,
    ) -> Batch:
        here, _ = self._held(key, run_id, fence)
        if jobs or unlabelled is not None:
            here.jobs.write(jobs, unlabelled, self._clock())
        return here.log(run_id, events)

    async def commit(
        self, key: ThreadKey, run_id: str, fence: int, change: Commit, leaves: Leaves | None = None
    ) -> Committed:
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
        bags = here.merged(run, change, message)
        # From here on nothing can fail.
        here.takeovers = 0
        jobs: tuple[JobRecord, ...] = ()
        if change.jobs or change.unlabelled is not None:
            jobs = here.jobs.write(change.jobs, change.unlabelled, self._clock())
        if message is not None:
            here.put(message, here.starts[run_id][0])
        if change.calls:
            if calls is None:
                calls = here.calls[run_id] = {}
            now = self._clock()
            for call in change.calls:
                calls[call.call_id] = call
                here.merge(run_id, call)
                here.expect(call, now)
        stopped: list[Stopped] = []
        left = [call.call_id for call in change.calls if leaves_subagents(call)]
        if left:
            end = change.end
            why = GIVEN_UP if end is None else end.reason or end.status
            self.stop_subagents(key, run_id, left, why, leaves, stopped)
        here.keep(run, bags)
        if change.patch is not None:
            run.patch = change.patch
        changed = bags.told()
        if change.end is not None or changed is not None:
            put_in(change.events, bags, run.metadata)
        batch = here.log(run_id, change.events)
        if change.suspend is not None:
            done = self._suspended(here, run, change.suspend, batch)
            return attrs.evolve(done, jobs=jobs, changed=changed, stopped=stopped)
        if change.end is None:
            return Committed(batch, False, run.cancel, jobs, changed, stopped)
        here.settle(run, change.end)
        here.active = None
        here.deadlines.clear()
        if here.queue:
            here.ready = self._clock()
            return Committed(batch, True, run.cancel, jobs, changed, stopped)
        here.ready = None
        del self._busy[key]
        return Committed(batch, False, run.cancel, jobs, changed, stopped)

    def _suspended(
        self, here: MemoryThread, run: RunRecord, how: Suspension, batch: Batch
    ) -> Committed:
        here.fence += 1
        queued = here.suspend(run, how, self._clock())
        if queued is not None:
            # One batch: the run has not been suspended for anybody to see.
            here.join(batch, queued)
        return Committed(batch, queued is not None, run.cancel)

    async def update(self, key: ThreadKey, agent: str, change: ThreadChange) -> Batch:
        here = self._threads.get(key)
        if here is None or here.head.agent != agent:
            raise ThreadNotFound(key.thread_id)
        run = here.runs.get(change.run_id or "")
        known = run is not None or change.run_id is None
        if not known or not here.where.keys() >= change.message_metadata.keys():
            raise ThreadNotFound(key.thread_id)
        bags = here.merged(run, change)
        here.keep(run, bags)
        if change.title is not None:
            here.head.title, here.head.title_source = plain(change.title), change.title_source
        return here.log(change.run_id or "", change_events(change, bags))

    async def delete(
        self, key: ThreadKey, agent: str, children: Sequence[tuple[ThreadKey, str]] = ()
    ) -> ThreadRecord | None:
        here = self._threads.get(key)
        if here is None or here.head.agent != agent:
            return None
        del self._threads[key]
        self._busy.pop(key, None)
        for scope in [s for s in self._records if (s.partition, s.thread_id) == key]:
            del self._records[scope]
        for child, of_agent in children:
            await self.delete(child, of_agent)
        return here.head

    async def head(self, key: ThreadKey) -> ThreadRecord | None:
        here = self._threads.get(key)
        return None if here is None else copied_head(here.head)

    async def latest(self, key: ThreadKey) -> Latest:
        here = self._threads.get(key)
        if here is None:
            return Latest(None, None)
        messages = here.history(len(here.runs))
        return Latest(next(reversed(here.runs)), messages[-1].id if messages else None)

    async def run(self, key: ThreadKey, run_id: str) -> RunRecord | None:
        here = self._threads.get(key)
        run = None if here is None else here.runs.get(run_id)
        return None if run is None else copied_run(run)

    async def snapshot(self, key: ThreadKey, agent: str) -> ThreadSnapshot | None:
        here = self._threads.get(key)
        if here is None or here.head.agent != agent:
            return None
        runs = [copied_run(run) for run in here.runs.values()]
        return ThreadSnapshot(
            copied_head(here.head), here.messages[:], runs, here.events, here.pending()
        )

    async def run_messages(self, key: ThreadKey, run_id: str) -> list[Message]:
        here = self._threads.get(key)
        if here is None or run_id not in here.starts:
            return []
        own = [*here.replaced, *here.messages[here.starts[run_id][1] :]]
        return [message for message in own if message.run_id == run_id and message.role != "user"]

    async def events(
        self, key: ThreadKey, after: int, limit: int = 500, *, born: datetime | None = None
    ) -> list[Batch]:
        here = self._threads.get(key)
        if born is not None and (here is None or here.head.created_at != born):
            raise ThreadNotFound(key.thread_id)
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
        page = [copied_head(row[2]) for row in order[:limit]]
        more = len(order) > limit > 0
        return page, page_cursor(page[-1].updated_at, page[-1].key.thread_id) if more else None

    async def compact(self, key: ThreadKey, before: datetime) -> None:
        here = self._threads.get(key)
        if here is not None:
            here.compact(before)

    async def long_logs(self, before: datetime, limit: int = 100) -> list[ThreadKey]:
        found = [
            key
            for key, here in self._threads.items()
            if here.active is None
            and not here.queue
            and here.compacted < here.events
            and here.head.updated_at <= before
        ]
        return found[:limit]

    async def run_source(self, key: ThreadKey, run_id: str) -> RunSource | None:
        here = self._threads.get(key)
        if here is None or run_id not in here.runs:
            return None
        turn = here.starts[run_id][0]
        run = copied_run(here.runs[run_id])
        return RunSource(copied_head(here.head), run, here.history(turn), turn)

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
