"""The port's methods over a database: encode, one transaction, decode."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, Protocol, TypeVar

import attrs

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
    NewLabel,
    NewTitle,
    ReasoningSummary,
    RunRecord,
    RunSource,
    Stopped,
    ThreadChange,
    ThreadKey,
    ThreadRecord,
    ThreadSnapshot,
    ThreadUpdated,
)
from pai.schema import JsonObject
from pai.stores._rules import leaves_subagents, plain, stamp
from pai.stores._sql import bags, compaction, jobs as side_jobs, pending, reads, records, writes
from pai.stores._sql.log import Log
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import (
    body_of,
    call_from_row,
    call_row,
    end_values,
    head_from_row,
    head_row,
    json_text,
    message_row,
    messages_from_rows,
    moment,
    run_row,
    suspension_row,
)
from pai.stores._sql.statement import Connection
from pai.stores._sql.writes import AcceptRows, ClaimRows, CommitRows, Known, Unwanted

__all__ = ("Database", "SqlStore")

T = TypeVar("T")


class Database(Protocol):
    """
    A database of one kind: it runs plain functions as transactions, off the event loop.

    A function gets the driver's connection before its arguments. What it raises rolls back and is
    raised to the caller; a driver's error is raised as a :class:`~pai.errors.StoreError`.
    """

    dialect: str
    url: str

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def tx(self, fn: Callable[..., T], *args: Any) -> T: ...

    async def read(self, fn: Callable[..., T], *args: Any) -> T: ...


_QUERIES: dict[str, Queries] = {}


def _queries(dialect: str) -> Queries:
    made = _QUERIES.get(dialect)
    if made is None:
        made = _QUERIES[dialect] = Queries(dialect)
    return made


def _log(events: list[Event]) -> Log:
    return Log(events[:], body_of(events))


def _batch(last: int, run_id: str, log: Log) -> Batch:
    return Batch(last - log.size + 1, run_id, log.events, log.body)


def _stopped(runs: Iterable[pending.StoppedRun]) -> list[Stopped]:
    return [
        Stopped(
            run.key,
            run.run_id,
            run.reason,
            None if run.log is None else _batch(run.last, run.run_id, run.log),
            run.jobs,
        )
        for run in runs
    ]


def _woken(
    c: Connection,
    wake: Callable[[object, ThreadKey], None],
    fn: Callable[..., T],
    q: Queries,
    key: ThreadKey,
    *args: Any,
) -> T:
    value = fn(c, q, key, *args)
    wake(c, key)
    return value


class SqlStore:
    """
    Threads in a database.

    Args:
        database: SQLite or PostgreSQL.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._q = _queries(database.dialect)
        self._wake: Callable[[object, ThreadKey], None] | None = None
        self.tx = database.tx
        """``await store.tx(fn, *args)``: one plain function as one transaction."""
        self.read = database.read
        """The same for a function that only reads, beside the writers."""

    @property
    def durable(self) -> bool:
        return True

    async def open(self) -> None:
        await self._database.open()

    async def close(self) -> None:
        await self._database.close()

    @property
    def dialect(self) -> str:
        return self._database.dialect

    @property
    def url(self) -> str:
        return self._database.url

    def join(self, wake: Callable[[object, ThreadKey], None]) -> None:
        self._wake = wake

    async def _queuing(self, fn: Callable[..., T], key: ThreadKey, *args: Any) -> T:
        """A transaction that leaves a run to take."""
        if self._wake is None:
            return await self.tx(fn, self._q, key, *args)
        return await self.tx(_woken, self._wake, fn, self._q, key, *args)

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
        taking, now = None, time.time()
        begun = datetime.fromtimestamp(now, UTC)
        own = attrs.evolve(run, status="running", attempt=1, started_at=begun)
        if claim is not None:
            stamp(started or [], own)
            taking = ClaimRows(claim[0], float(claim[1]), _log(started or []), None)
        log = _log(events)
        rows = AcceptRows(
            head_row(thread),
            run_row(key, run),
            None if message is None else message_row(key, message),
            log,
            when_busy == "reject",
            when_pending == "supersede",
            leaves,
            taking,
        )
        try:
            head, claimed, before, over = await self._queuing(writes.accept, key, rows, now)
        except Known as known:
            return Accepted(known.run, None, None, known=True, born=moment(known.head[4]))
        last: int = head[7]
        stopped = _stopped(over)
        if not claimed or taking is None:
            return Accepted(
                attrs.evolve(run), _batch(last, run.id, log), None, active=head[10],
                stopped=stopped, born=moment(head[4]),
            )  # fmt: skip
        if before is None:
            messages = await self.read(reads.history, self._q, key, head[8] - 1)
        else:
            messages = messages_from_rows(*before, by_run=True)
        if message is not None:
            messages.append(message)
        claim_batch = _batch(last, run.id, taking.started)
        taken = Claimed(
            own,
            head[12],
            head_from_row(key, head),
            messages,
            (),
            claim_batch,
            head[13],
            head[8],
        )
        batch = _batch(claim_batch.first - 1, run.id, log)
        born = taken.thread.created_at
        return Accepted(own, batch, taken, stopped=stopped, born=born)

    async def claim(
        self,
        key: ThreadKey,
        owner: str,
        lease: float,
        started: list[Event],
        takes: Callable[[RunRecord], bool] | None = None,
    ) -> Claimed | None:
        rows = ClaimRows(owner, float(lease), _log(started), takes)
        try:
            taken = await self.tx(writes.claim, self._q, key, rows, time.time())
        except Unwanted:
            return None
        if taken is None:
            return None
        head, run = taken.head, taken.run
        if taken.history is None:
            # The thread is ours: nobody else writes messages of these turns meanwhile.
            messages = await self.read(reads.history, self._q, key, taken.turn)
        else:
            messages = messages_from_rows(*taken.history, by_run=True)
        return Claimed(
            run,
            head[12],
            head_from_row(key, head),
            messages,
            tuple([call_from_row(row) for row in taken.calls]),
            _batch(head[7], run.id, taken.started),
            head[13],
            taken.turn,
        )

    async def waiting(self, limit: int = 100) -> list[ThreadKey]:
        return await self.read(reads.waiting, self._q, limit, time.time())

    async def renew(self, key: ThreadKey, run_id: str, fence: int, lease: float) -> str | None:
        return await self.tx(writes.renew, self._q, key, run_id, fence, float(lease), time.time())

    async def release(self, key: ThreadKey, run_id: str, fence: int, delay: float = 0.0) -> Batch:
        last, log = await self._queuing(
            pending.release, key, run_id, fence, float(delay), time.time()
        )
        return _batch(last, run_id, log)

    async def answer(
        self,
        key: ThreadKey,
        run_id: str,
        decisions: Sequence[Decision],
        request: JsonObject | None = None,
    ) -> Answered:
        text = None if request is None else json_text(request)
        run, last, log = await self._queuing(
            pending.answer, key, run_id, decisions, text, time.time()
        )
        return Answered(run, None if log is None else _batch(last, run_id, log))

    async def calls(self, key: ThreadKey, run_id: str) -> list[CallRecord]:
        return await self.read(pending.calls, self._q, key, run_id, time.time())

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
        log = _log(events)
        rows = side_jobs.job_rows(jobs, unlabelled)
        last = await self.tx(writes.append, self._q, key, run_id, fence, log, rows, time.time())
        return _batch(last, run_id, log)

    async def commit(
        self, key: ThreadKey, run_id: str, fence: int, change: Commit, leaves: Leaves | None = None
    ) -> Committed:
        log = _log(change.events)
        message, end, stop, patch = change.message, change.end, change.suspend, change.patch
        merging = change.run_metadata or change.thread_metadata or change.message_metadata
        rows = CommitRows(
            log,
            None if message is None else message_row(key, message),
            [call_row(key, run_id, call) for call in change.calls],
            [call.call_id for call in change.calls if leaves_subagents(call)],
            GIVEN_UP if end is None else end.reason or end.status,
            leaves,
            None if end is None else end_values(end),
            None if stop is None else suspension_row(stop),
            None if patch is None else json_text(patch),
            side_jobs.job_rows(change.jobs, change.unlabelled),
            change.labelled,
            change if merging else None,
        )
        done = await self.tx(writes.commit, self._q, key, run_id, fence, rows, time.time())
        written = [job for job, is_new in zip(change.jobs, done.new, strict=False) if is_new]
        changed = None if done.bags is None else done.bags.told()
        batch = _batch(done.last, run_id, done.log)
        stopped = _stopped(done.stopped)
        return Committed(batch, done.more, done.wish, tuple(written), changed, stopped)

    async def cancel(
        self, key: ThreadKey, run_id: str, reason: str, leaves: Leaves | None = None
    ) -> Sequence[Stopped]:
        done = await self._queuing(pending.cancel, key, run_id, reason, leaves, time.time())
        return _stopped(done)

    async def update(self, key: ThreadKey, agent: str, change: ThreadChange) -> Batch:
        last, log = await self.tx(bags.update, self._q, key, agent, change)
        return _batch(last, change.run_id or "", log)

    async def delete(
        self, key: ThreadKey, agent: str, children: Sequence[tuple[ThreadKey, str]] = ()
    ) -> ThreadRecord | None:
        return await self.tx(bags.delete, self._q, key, agent, children)

    async def head(self, key: ThreadKey) -> ThreadRecord | None:
        return await self.read(bags.head, self._q, key)

    async def latest(self, key: ThreadKey) -> Latest:
        return await self.read(bags.latest, self._q, key)

    async def run(self, key: ThreadKey, run_id: str) -> RunRecord | None:
        return await self.read(reads.run, self._q, key, run_id)

    async def snapshot(self, key: ThreadKey, agent: str) -> ThreadSnapshot | None:
        return await self.read(reads.snapshot, self._q, key, agent)

    async def run_messages(self, key: ThreadKey, run_id: str) -> list[Message]:
        return await self.read(reads.run_messages, self._q, key, run_id)

    async def events(
        self, key: ThreadKey, after: int, limit: int = 500, *, born: datetime | None = None
    ) -> list[Batch]:
        return await self.read(reads.events, self._q, key, after, limit, born)

    async def threads(
        self, partition: str, agent: str, limit: int, after: str | None
    ) -> tuple[list[ThreadRecord], str | None]:
        return await self.read(reads.threads, self._q, partition, agent, limit, after)

    async def due_jobs(self, limit: int = 100) -> list[tuple[ThreadKey, str]]:
        return await self.read(side_jobs.due, self._q, limit, time.time())

    async def claim_job(self, key: ThreadKey, job_id: str, lease: float) -> JobRecord | None:
        return await self.tx(side_jobs.claim, self._q, key, job_id, float(lease), time.time())

    async def postpone_job(self, key: ThreadKey, job_id: str, attempt: int, seconds: float) -> bool:
        return await self.tx(
            side_jobs.postpone, self._q, key, job_id, attempt, float(seconds), time.time()
        )

    async def finish_job(
        self, key: ThreadKey, job_id: str, attempt: int, result: NewTitle | NewLabel | None = None
    ) -> Batch | None:
        try:
            if isinstance(result, NewLabel):
                return await self._label(key, job_id, attempt, result)
            if isinstance(result, NewTitle):
                return await self._retitle(key, job_id, attempt, result)
            await self.tx(side_jobs.finish, self._q, key, job_id, attempt)
        except side_jobs.NotOurs:
            pass
        return None

    async def _label(self, key: ThreadKey, job_id: str, attempt: int, new: NewLabel) -> Batch:
        log = _log([ReasoningSummary(new.message_id, new.ordinal, new.text)])
        last, run_id = await self.tx(
            side_jobs.label, self._q, key, job_id, attempt, new.message_id,
            [new.ordinal, new.text], log.body,
        )  # fmt: skip
        return _batch(last, run_id, log)

    async def _retitle(
        self, key: ThreadKey, job_id: str, attempt: int, new: NewTitle
    ) -> Batch | None:
        # The event says what the column can hold.
        text = plain(new.text)
        log = _log([ThreadUpdated(text, "generated")])
        may = (*new.replaces, *new.replaces[:1] * 3)
        values = {
            "text": text, "at": new.at.timestamp(), "seen": new.messages, "to_turn": new.runs,
            "may_1": may[0], "may_2": may[1], "may_3": may[2],
        }  # fmt: skip
        last = await self.tx(side_jobs.retitle, self._q, key, job_id, attempt, values, log.body)
        return None if last is None else _batch(last, "", log)

    async def compact(self, key: ThreadKey, before: datetime) -> None:
        short = await self.read(compaction.shortened, self._q, key, before.timestamp())
        if short is not None:
            await self.tx(compaction.write, self._q, key, short)

    async def long_logs(self, before: datetime, limit: int = 100) -> list[ThreadKey]:
        return await self.read(compaction.long_logs, self._q, before.timestamp(), limit)

    async def run_source(self, key: ThreadKey, run_id: str) -> RunSource | None:
        return await self.read(side_jobs.source, self._q, key, run_id)

    async def get_record(self, scope: RecordScope, key: str) -> str | None:
        return await self.read(records.get, self._q, scope, key)

    async def list_records(
        self, scope: RecordScope, prefix: str, after: str, limit: int
    ) -> list[tuple[str, str]]:
        return await self.read(records.listed, self._q, scope, prefix, after, limit)

    async def put_record(
        self, scope: RecordScope, key: str, value: str, hold: RunHold | None = None
    ) -> None:
        await self.tx(records.put, self._q, scope, key, value, hold, time.time())

    async def delete_record(
        self, scope: RecordScope, key: str, hold: RunHold | None = None
    ) -> bool:
        return await self.tx(records.delete, self._q, scope, key, hold)
