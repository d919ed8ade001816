"""What one read transaction does: one plain function each; rows are decoded where they are read."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pai.errors import ThreadNotFound
from pai.protocol import (
    Batch,
    Message,
    PendingCall,
    RunRecord,
    ThreadKey,
    ThreadRecord,
    ThreadSnapshot,
)
from pai.stores._rules import page_cursor, page_start
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import (
    Row,
    batch_from_row,
    call_from_row,
    head_from_row,
    messages_from_rows,
    moment,
    run_from_row,
)
from pai.stores._sql.statement import Connection

__all__ = ("events", "history", "run", "run_messages", "snapshot", "threads", "waiting")


def _scope(key: ThreadKey) -> Row:
    return {"scope": key.partition, "thread": key.thread_id}


def run(c: Connection, q: Queries, key: ThreadKey, run_id: str) -> RunRecord | None:
    row = q.run(c, **_scope(key), run=run_id).fetchone()
    return None if row is None else run_from_row(row)


def history(c: Connection, q: Queries, key: ThreadKey, until: int) -> list[Message]:
    """The messages of the runs up to the turn *until*, run by run."""
    scope = _scope(key)
    rows = q.history_until(c, **scope, until=until).fetchall()
    ended = q.ended_calls(c, **scope).fetchall()
    return messages_from_rows(rows, ended, by_run=True)


def snapshot(c: Connection, q: Queries, key: ThreadKey, agent: str) -> ThreadSnapshot | None:
    scope = _scope(key)
    head = q.head(c, **scope).fetchone()
    if head is None or head[0] != agent:
        return None
    rows = q.history(c, **scope).fetchall()
    ended = q.ended_calls(c, **scope).fetchall()
    runs = [run_from_row(row) for row in q.runs(c, **scope).fetchall()]
    messages = messages_from_rows(rows, ended, by_run=False)
    pending: list[PendingCall] = []
    if (active := head[10]) is not None:
        # Whether one has expired is the claim's business: no clock is asked here.
        waiting = q.waiting_calls(c, **scope, run=active, now=0.0).fetchall()
        pending = [call_from_row(row).pending(active) for row in waiting]
    return ThreadSnapshot(head_from_row(key, head), messages, runs, head[7], pending)


def run_messages(c: Connection, q: Queries, key: ThreadKey, run_id: str) -> list[Message]:
    scope = _scope(key)
    rows = q.run_messages(c, **scope, run=run_id).fetchall()
    ended = q.ended_calls_of_run(c, **scope, run=run_id).fetchall()
    return messages_from_rows(rows, ended, by_run=True)


def events(
    c: Connection, q: Queries, key: ThreadKey, after: int, limit: int, born: datetime | None
) -> list[Batch]:
    if born is not None:
        made = q.born(c, **_scope(key)).fetchone()
        if made is None or moment(made[0]) != born:
            raise ThreadNotFound(key.thread_id)
    rows = q.log.events(c, **_scope(key), after=after, most=limit).fetchall()
    return [batch_from_row(row) for row in rows]


def waiting(c: Connection, q: Queries, limit: int, now: float) -> list[ThreadKey]:
    return [ThreadKey(*row) for row in q.waiting(c, most=limit, now=now).fetchall()]


def threads(
    c: Connection, q: Queries, partition: str, agent: str, limit: int, after: str | None
) -> tuple[list[ThreadRecord], str | None]:
    given: Row = {"scope": partition, "of_agent": agent, "most": limit + 1}
    rows: list[Any]
    if after is None:
        rows = q.listed(c, **given).fetchall()
    else:
        stamp, thread_id = page_start(after)
        rows = q.listed_after(c, **given, after_time=stamp, after_id=thread_id).fetchall()
    heads = [head_from_row(ThreadKey(partition, row[0]), row[1:]) for row in rows[:limit]]
    if len(rows) <= limit or not heads:
        return heads, None
    return heads, page_cursor(heads[-1].updated_at, heads[-1].key.thread_id)
