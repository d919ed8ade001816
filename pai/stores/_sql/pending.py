"""
What a transaction does to a run that no worker holds: one plain function each.

Each locks the thread's head first, as those in writes.py do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any, NamedTuple

import attrs

from pai.errors import CallsPending, ThreadNotFound
from pai.protocol import (
    INTERRUPTED,
    CallOutcome,
    CallRecord,
    Decision,
    Event,
    JobRecord,
    Leaves,
    RunEnd,
    RunRecord,
    ThreadKey,
    child_id,
)
from pai.stores._rules import (
    SUPERSEDED,
    again,
    cancelled_end,
    check_goes_on,
    ended_calls,
    finished_event,
    lease_lost,
    leaves_subagents,
    not_shown,
    plain,
    ruled,
)
from pai.stores._sql.jobs import job_rows, write as write_jobs
from pai.stores._sql.log import Log, write_log
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import (
    Row,
    body_of,
    call_from_row,
    call_row,
    end_values,
    metadata_from_text,
    run_from_row,
)
from pai.stores._sql.statement import Connection

__all__ = (
    "StoppedRun",
    "Stopping",
    "answer",
    "calls",
    "cancel",
    "check_pending",
    "place_of",
    "queue_if_answered",
    "release",
    "replace_after",
    "stop_subagents",
    "supersede",
    "suspend",
)


class StoppedRun(NamedTuple):
    """
    A run that was cancelled, or stopped with another.

    Args:
        key: Its thread.
        run_id: It.
        reason: Why.
        last: The number of its last event.
        log: The events of its end; ``None`` if a worker holds it.
        jobs: The side jobs that it left.
    """

    key: ThreadKey
    run_id: str
    reason: str
    last: int = 0
    log: Log | None = None
    jobs: Sequence[JobRecord] = ()


class Stopping(NamedTuple):
    """
    A transaction that ends runs without a worker.

    Args:
        leaves: The side jobs that each leaves.
        now: The time.
        found: The runs so far.
    """

    leaves: Leaves | None
    now: float
    found: list[StoppedRun]


def _scope(key: ThreadKey) -> Row:
    return {"scope": key.partition, "thread": key.thread_id}


def _told(events: list[Event]) -> Log:
    return Log(events, body_of(events))


def calls(c: Connection, q: Queries, key: ThreadKey, run_id: str, now: float) -> list[CallRecord]:
    rows = q.calls(c, **_scope(key), run=run_id, now=now).fetchall()
    return [call_from_row(row) for row in rows]


def answer(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    decisions: Sequence[Decision],
    request: str | None,
    now: float,
) -> tuple[RunRecord, int, Log | None]:
    """Store answers; the run, and its event with its number, unless all were known."""
    scope = _scope(key)
    head = q.idle.lock(c, **scope).fetchone()
    row = None if head is None else q.run(c, **scope, run=run_id).fetchone()
    if row is None:
        raise ThreadNotFound(key.thread_id)
    run = run_from_row(row)
    known = {call.call_id: call for call in calls(c, q, key, run_id, now)}
    new: list[CallRecord] = []
    for decision in decisions:
        answered = ruled(known.get(decision.call_id), decision)
        if answered is not None:
            new.append(answered)
    if not new:
        return run, 0, None
    check_goes_on(run, new[0].call_id)
    for call in new:
        q.put_call(c, **call_row(key, run_id, call))
    if request is not None:
        q.idle.set_request(c, **scope, run=run_id, new_request=request)
    if run.status == "suspended":
        q.idle.queue_run(c, **scope, run=run_id)
        run = attrs.evolve(run, status="queued", attempt=0, episode=run.episode + 1)
        last = q.idle.queue_again(c, **scope, now=now).fetchone()[0]
    else:
        last = q.idle.count_event(c, **scope).fetchone()[0]
    log = _told([again([call.call_id for call in new])])
    write_log(c, q, key, run_id, last, log.size, log.body)
    return run, last, log


def suspend(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    fence: int,
    values: Row,
    counted: Row,
) -> Any:
    """Stop the run; its head's row, as a commit returns it, or ``None`` if it is not ours."""
    scope = _scope(key)
    given = {**counted, "run": run_id, "held": fence, "expires_at": values["expires_at"]}
    row = q.idle.suspend(c, **scope, **given).fetchone()
    if row is not None:
        q.idle.suspend_run(c, **scope, run=run_id, used=values["usage"], n_steps=values["steps"])
    return row


def queue_if_answered(
    c: Connection, q: Queries, key: ThreadKey, run_id: str, now: float
) -> Log | None:
    """Queue a run again that was answered while it suspended: its event, which is counted."""
    scope = _scope(key)
    if q.idle.answered(c, **scope, run=run_id).fetchone() is None:
        return None
    q.idle.queue_run(c, **scope, run=run_id)
    q.idle.queue_again(c, **scope, now=now)
    return _told([again(None)])


def release(
    c: Connection, q: Queries, key: ThreadKey, run_id: str, fence: int, delay: float, now: float
) -> tuple[int, Log]:
    """Queue a run again; the number of the event, and the event."""
    scope = _scope(key)
    row = q.idle.release(c, **scope, run=run_id, held=fence, lease=delay, now=now).fetchone()
    if row is None:
        raise lease_lost(run_id)
    q.idle.release_run(c, **scope, run=run_id)
    log = _told([again(None)])
    write_log(c, q, key, run_id, row[0], 1, log.body)
    return row[0], log


def cancel(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    reason: str,
    leaves: Leaves | None,
    now: float,
) -> list[StoppedRun]:
    """Note the wish, or end a run that nobody holds, and with it the runs of its subagents."""
    stopping = Stopping(leaves, now, [])
    _stop(c, q, key, run_id, reason, stopping)
    return stopping.found


def _stop(
    c: Connection, q: Queries, key: ThreadKey, run_id: str, reason: str, stopping: Stopping
) -> bool:
    """Cancel a run; whether there is one of this id."""
    scope = _scope(key)
    why = plain(reason)
    head = q.ask_cancel(c, **scope, run=run_id, why=why).fetchone()
    row = None if head is None else q.run(c, **scope, run=run_id).fetchone()
    if row is None:
        return False
    run = run_from_row(row)
    if run.status == "running":
        q.cancel_active(c, **scope, run=run_id, why=why)
        stopping.found.append(StoppedRun(key, run_id, reason))
    elif run.status in ("queued", "suspended"):
        end = cancelled_end(reason, run.usage)
        active = head[0] == run_id
        _end_idle(c, q, key, run, active, end, "interrupted", INTERRUPTED, stopping)
    return True


def stop_subagents(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    calls: Iterable[str],
    reason: str,
    stopping: Stopping,
) -> None:
    """Cancel the runs of subagents that calls have started. Each locks its thread, after ours."""
    for call_id in calls:
        for place in count():
            own = child_id(key.thread_id, run_id, call_id, place)
            child = ThreadKey(key.partition, own)
            if not _stop(c, q, child, own, reason, stopping):
                break


def _end_idle(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run: RunRecord,
    active: bool,
    end: RunEnd,
    outcome: CallOutcome,
    error: str,
    stopping: Stopping,
) -> None:
    scope, leaves, now = _scope(key), stopping.leaves, stopping.now
    jobs = () if leaves is None else leaves(run)
    if (rows := job_rows(jobs, None)) is not None:
        write_jobs(c, q, key, rows, now)
    open_calls: list[CallRecord] = []
    if active:
        open_rows = q.open_calls(c, **scope, run=run.id, now=now).fetchall()
        open_calls = [call_from_row(row) for row in open_rows]
    records, events = ended_calls(open_calls, outcome, error)
    for record in records:
        q.put_call(c, **call_row(key, run.id, record))
    row = q.end_idle(c, **scope, run=run.id, why=plain(end.reason), **end_values(end)).fetchone()
    events.append(finished_event(end, metadata_from_text(row[0])))
    log = _told(events)
    moved = end.finished_at.timestamp()
    if active:
        head = q.idle.leave_active(c, **scope, moved=moved, n_events=log.size, now=now).fetchone()
    else:
        head = q.leave_queue(c, **scope, moved=moved).fetchone()
    write_log(c, q, key, run.id, head[0], log.size, log.body)
    why = end.reason or end.status
    stopping.found.append(StoppedRun(key, run.id, why, head[0], log, jobs))
    left = [record.call_id for record in records if leaves_subagents(record)]
    stop_subagents(c, q, key, run.id, left, why, stopping)


def check_pending(c: Connection, q: Queries, key: ThreadKey, active: str, now: float) -> None:
    """
    See that the thread's active run does not wait for answers.

    Raises:
        CallsPending: It does (R-3a).
    """
    scope = _scope(key)
    run = run_from_row(q.run(c, **scope, run=active).fetchone())
    if run.status == "suspended":
        rows = q.waiting_calls(c, **scope, run=active, now=now).fetchall()
        raise CallsPending([row[0] for row in rows])


def supersede(
    c: Connection, q: Queries, key: ThreadKey, leaves: Leaves | None, now: float
) -> list[StoppedRun]:
    """End the active run if it is suspended, its calls denied, and the runs of its subagents."""
    stopping = Stopping(leaves, now, [])
    scope = _scope(key)
    head = q.idle.lock(c, **scope).fetchone()
    if head is None or head[0] is None:
        return []
    run = run_from_row(q.run(c, **scope, run=head[0]).fetchone())
    if run.status == "suspended":
        end = cancelled_end("superseded", run.usage)
        _end_idle(c, q, key, run, True, end, "denied", SUPERSEDED, stopping)
    return stopping.found


def place_of(c: Connection, q: Queries, key: ThreadKey, message_id: str) -> tuple[int, int]:
    """
    Turn and number of a message that the thread shows; empty is the beginning.

    Raises:
        InvalidInput: It shows none of this id.
    """
    if not message_id:
        return 0, 0
    row = q.idle.place(c, **_scope(key), message=message_id).fetchone()
    if row is None:
        raise not_shown(message_id)
    return row[0], row[1]


def replace_after(c: Connection, q: Queries, key: ThreadKey, after: str, turn: int) -> None:
    """Mark what stands behind a message as replaced by the run of *turn*, if that still shows."""
    scope = _scope(key)
    place: Any = (0, 0)
    if after:
        place = q.idle.place(c, **scope, message=after).fetchone()
    if place is not None:
        q.idle.replace(c, **scope, own_turn=turn, at_turn=place[0], at_seq=place[1])
