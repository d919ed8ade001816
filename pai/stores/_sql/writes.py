"""
What a transaction does: one plain function each, given rows that are encoded already.

Each begins with one UPDATE of the thread's head, which is the thread's lock, checks the fence and
hands out numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pai.errors import ThreadBusy, ThreadNotFound
from pai.protocol import Commit, Leaves, RunFinished, RunRecord, ThreadKey
from pai.stores._bags import Bags, put_in
from pai.stores._rules import (
    digest_conflict,
    lease_lost,
    message_taken,
    settled_call,
    stamp,
)
from pai.stores._sql import pending
from pai.stores._sql.bags import merge_bags
from pai.stores._sql.jobs import JobRows, keep_labels, write as write_jobs
from pai.stores._sql.log import Log, joined, write_log
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import Row, body_of, metadata_from_text, run_from_row
from pai.stores._sql.statement import Connection

__all__ = (
    "SHORT",
    "AcceptRows",
    "ClaimRows",
    "CommitRows",
    "Known",
    "Taken",
    "Unwanted",
    "accept",
    "append",
    "claim",
    "commit",
    "renew",
)

SHORT = 32
"""Messages of a history that a claim reads by itself; a longer one is read beside the writers."""


class Known(Exception):
    """
    The run was accepted before: rolls back what was counted for it.

    Args:
        run: Its record.
        head: Its thread's head, a row.
    """

    def __init__(self, run: RunRecord, head: Any) -> None:
        super().__init__(run)
        self.run = run
        self.head = head


class Unwanted(Exception):
    """The caller can't work on the run that is next: rolls the claim back."""


class Written(NamedTuple):
    """
    A commit.

    Args:
        last: The number of its last event.
        wish: Why the run shall be cancelled, if somebody asked.
        more: More runs wait.
        log: Its events, as they were written.
        bags: What it made of metadata.
        new: Which of its side jobs are new.
        stopped: Runs of subagents that end with calls of it, or are to.
    """

    last: int
    wish: str | None
    more: bool
    log: Log
    bags: Bags | None
    new: list[bool]
    stopped: Sequence[pending.StoppedRun]


class ClaimRows(NamedTuple):
    owner: str
    lease: float
    started: Log
    takes: Callable[[RunRecord], bool] | None


class AcceptRows(NamedTuple):
    head: Row
    run: Row
    message: Row | None
    log: Log
    reject: bool
    supersede: bool
    leaves: Leaves | None
    claim: ClaimRows | None


class Accepting(NamedTuple):
    """
    What an accept did.

    Args:
        head: The thread's head, a row.
        claimed: Whether the run is claimed.
        history: The rows of the history before it, messages and calls that ended; ``None``: it is
            too long to read here.
        stopped: A run that made place for it, and those of its subagents.
    """

    head: Any
    claimed: bool
    history: tuple[list[Any], list[Any]] | None
    stopped: Sequence[pending.StoppedRun]


class CommitRows(NamedTuple):
    log: Log
    message: Row | None
    calls: list[Row]
    stops: list[str]
    """Calls whose subagents are to be stopped."""
    why: str
    leaves: Leaves | None
    end: Row | None
    suspend: Row | None
    patch: str | None
    jobs: JobRows | None
    labelled: bool
    merging: Commit | None
    """The commit itself, where it changes metadata."""


class Taken(NamedTuple):
    """
    A claim.

    Args:
        head: The thread's head, a row.
        run: The run.
        turn: Its turn.
        calls: Its open calls, as rows.
        history: Rows of messages and of calls that ended; ``None``: too long to read here.
        started: The events of the claim, as they were written.
    """

    head: Any
    run: RunRecord
    turn: int
    calls: list[Any]
    history: tuple[list[Any], list[Any]] | None
    started: Log


# Places in the row of a thread's head.
_AGENT, _MESSAGES, _EVENTS, _RUNS, _QUEUED, _ACTIVE, _TURN = 0, 6, 7, 8, 9, 10, 11


def _scope(key: ThreadKey) -> Row:
    return {"scope": key.partition, "thread": key.thread_id}


def accept(c: Connection, q: Queries, key: ThreadKey, rows: AcceptRows, now: float) -> Accepting:
    """Queue a run, or claim it at once."""
    after = rows.run["after"]
    stopped = pending.supersede(c, q, key, rows.leaves, now) if rows.supersede else []
    claim = rows.claim
    run_id = str(rows.run["id"])
    counted: Row = {"n_messages": 0 if rows.message is None else 1, "n_events": rows.log.size}
    body, size = rows.log.body, rows.log.size
    if claim is None:
        head = q.accept(c, **rows.head, **counted, now=now, moved=rows.run["created_at"]).fetchone()
        claimed = False
    else:
        head = q.accept_claim(
            c,
            **rows.head,
            **counted,
            n_started=claim.started.size,
            run=run_id,
            holder=claim.owner,
            lease=claim.lease,
            now=now,
            moved=rows.run["created_at"],
        ).fetchone()
        claimed = head[_ACTIVE] == run_id
    if head[_AGENT] != rows.head["agent"]:
        raise ThreadNotFound(key.thread_id)
    run = rows.run
    if claimed:
        run = {**run, "status": "running", "attempt": 1, "started_at": now}
    turn = head[_RUNS]
    if q.add_run(c, turn=turn, **run).rowcount == 0:
        known = run_from_row(q.run(c, **_scope(key), run=run_id).fetchone())
        if known.digest != run["digest"]:
            raise digest_conflict(run_id)
        raise Known(known, head)
    if not claimed:
        if head[_ACTIVE] is not None:
            pending.check_pending(c, q, key, head[_ACTIVE], now)
        if rows.reject and (head[_ACTIVE] is not None or head[_QUEUED] > 1):
            raise ThreadBusy(key.thread_id)
    if after is not None:
        pending.place_of(c, q, key, str(after))
        if claimed:
            pending.replace_after(c, q, key, str(after), turn)
    history: tuple[list[Any], list[Any]] | None = None
    before = head[_MESSAGES] - (rows.message is not None)
    if claimed and claim is not None:
        # Both batches are one row: the price of an insert, and nobody reads between them.
        if claim.started.size:
            body = joined(body, claim.started.body) if size else claim.started.body
            size += claim.started.size
        if before <= SHORT:
            history = _history(c, q, key, turn - 1) if before else ([], [])
    write_log(c, q, key, run_id, head[_EVENTS], size, body)
    if rows.message is not None:
        seq = head[_MESSAGES]
        if q.add_message(c, turn=turn, seq=seq, **rows.message).rowcount == 0:
            raise message_taken(str(rows.message["id"]))
    return Accepting(head, claimed, history, stopped)


def _history(c: Connection, q: Queries, key: ThreadKey, until: int) -> tuple[list[Any], list[Any]]:
    scope = _scope(key)
    rows = q.history_until(c, **scope, until=until).fetchall()
    return rows, q.ended_calls(c, **scope).fetchall()


def claim(c: Connection, q: Queries, key: ThreadKey, rows: ClaimRows, now: float) -> Taken | None:
    scope = _scope(key)
    started = rows.started
    head = q.claim(
        c, **scope, holder=rows.owner, lease=rows.lease, n_started=started.size, now=now
    ).fetchone()
    if head is None:
        return None
    run_id, turn = head[_ACTIVE], head[_TURN]
    if run_id is None:
        run_id, turn = q.oldest(c, **scope).fetchone()
        q.activate(c, **scope, run=run_id, to_turn=turn)
    record = run_from_row(q.start_run(c, **scope, run=run_id, began=now).fetchone())
    if rows.takes is not None and not rows.takes(record):
        raise Unwanted
    calls: list[Any] = []
    if record.attempt > 1 or record.episode > 1:
        calls = q.open_calls(c, **scope, run=run_id, now=now).fetchall()
    elif record.after is not None:
        pending.replace_after(c, q, key, record.after, turn)
    # One small event, which only now can say the attempt.
    stamp(started.events, record)
    started = Log(started.events, body_of(started.events))
    write_log(c, q, key, run_id, head[_EVENTS], started.size, started.body)
    history = _history(c, q, key, turn) if head[_MESSAGES] <= SHORT else None
    return Taken(head, record, turn, calls, history, started)


def renew(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    fence: int,
    lease: float,
    now: float,
) -> str | None:
    row = q.renew(c, **_scope(key), run=run_id, held=fence, lease=lease, now=now).fetchone()
    if row is None:
        raise lease_lost(run_id)
    wish: str | None = row[0]
    return wish


def append(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    fence: int,
    log: Log,
    jobs: JobRows | None,
    now: float,
) -> int:
    """Write a batch; the number of the thread's last event is returned."""
    size = log.size
    row = q.append(c, **_scope(key), run=run_id, held=fence, n_events=size).fetchone()
    if row is None:
        raise lease_lost(run_id)
    last: int = row[0]
    if jobs is not None:
        write_jobs(c, q, key, jobs, now)
    write_log(c, q, key, run_id, last, size, log.body)
    return last


def commit(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str,
    fence: int,
    rows: CommitRows,
    now: float,
) -> Written:
    scope = _scope(key)
    log = rows.log
    counted: Row = {
        "n_events": log.size,
        "n_messages": 0 if rows.message is None else 1,
    }
    held: Row = {"run": run_id, "held": fence}
    end = rows.end
    if rows.suspend is not None:
        row = pending.suspend(c, q, key, run_id, fence, rows.suspend, counted)
    elif end is None:
        row = q.commit(c, **scope, **held, **counted).fetchone()
    else:
        row = q.settle(
            c, **scope, **held, **counted, now=now, moved=end["end_finished_at"]
        ).fetchone()
    if row is None:
        raise lease_lost(run_id)
    last, seq, turn, wish, queued = row
    new = [] if rows.jobs is None else write_jobs(c, q, key, rows.jobs, now)
    if rows.message is not None:
        q.put_message(c, turn=turn, seq=seq, **rows.message)
        if rows.labelled:
            keep_labels(c, q, key, str(rows.message["id"]))
    for call in rows.calls:
        if q.put_call(c, **call).rowcount == 0:
            raise settled_call(str(call["call_id"]))
    stopping = pending.Stopping(rows.leaves, now, [])
    if rows.stops:
        pending.stop_subagents(c, q, key, run_id, rows.stops, rows.why, stopping)
    bags = None
    if rows.merging is not None:
        bags = merge_bags(c, q, key, run_id, rows.merging)
        put_in(log.events, bags, None)
        log = Log(log.events, body_of(log.events))
    if rows.patch is not None:
        q.set_run_patch(c, **scope, run=run_id, new_patch=rows.patch)
    if rows.suspend is not None:
        queued_again = pending.queue_if_answered(c, q, key, run_id, now)
        if queued_again is not None:
            # One batch: nobody is to see it suspended.
            events = [*log.events, *queued_again.events]
            log, last = Log(events, joined(log.body, queued_again.body)), last + 1
        write_log(c, q, key, run_id, last, log.size, log.body)
        return Written(last, wish, queued_again is not None, log, bags, new, stopping.found)
    if end is not None:
        # The head said that the run is the active one, and only a running one may end here.
        ended = q.end_run(c, **scope, run=run_id, **end).fetchone()
        if ended is None:
            raise lease_lost(run_id)
        log = _finished(log, ended[0])
    write_log(c, q, key, run_id, last, log.size, log.body)
    return Written(last, wish, end is not None and queued > 0, log, bags, new, stopping.found)


def _finished(log: Log, text: str) -> Log:
    """The log of a run's end: its last event says what the run's metadata is by now."""
    event = log.events[-1] if log.events else None
    if not isinstance(event, RunFinished) or (text == "{}" and not event.metadata):
        return log
    shown = metadata_from_text(text).shown()
    if event.metadata == shown:
        return log
    # Somebody else has changed it since the worker looked.
    event.metadata = shown
    return Log(log.events, body_of(log.events))
