"""What a transaction does with plugins' records: one plain function each."""

from __future__ import annotations

from pai.ports import RecordScope, RunHold
from pai.stores._rules import lease_lost
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import Row
from pai.stores._sql.statement import Connection

__all__ = ("delete", "get", "listed", "put")

_LAST = "\U0010ffff"
"""No key has this character, so all that begin with a prefix lie before the prefix and it."""


def _scope(scope: RecordScope) -> Row:
    return {"scope": scope.partition, "thread": scope.thread_id, "of_plugin": scope.plugin}


def _check(c: Connection, q: Queries, hold: RunHold | None) -> None:
    if hold is None:
        return
    (scope, thread), run_id, fence = hold
    if q.hold(c, scope=scope, thread=thread, run=run_id, held=fence).fetchone() is None:
        raise lease_lost(run_id)


def get(c: Connection, q: Queries, scope: RecordScope, key: str) -> str | None:
    row = q.record(c, **_scope(scope), name=key).fetchone()
    return None if row is None else str(row[0])


def listed(
    c: Connection, q: Queries, scope: RecordScope, prefix: str, after: str, limit: int
) -> list[tuple[str, str]]:
    rows = q.records(
        c, **_scope(scope), prefix=prefix, after=after, end=prefix + _LAST, most=limit
    ).fetchall()
    return [(row[0], row[1]) for row in rows]


def put(
    c: Connection,
    q: Queries,
    scope: RecordScope,
    key: str,
    value: str,
    hold: RunHold | None,
    now: float,
) -> None:
    _check(c, q, hold)
    q.put_record(
        c,
        partition=scope.partition,
        thread_id=scope.thread_id,
        plugin=scope.plugin,
        key=key,
        value=value,
        now=now,
    )


def delete(c: Connection, q: Queries, scope: RecordScope, key: str, hold: RunHold | None) -> bool:
    _check(c, q, hold)
    return q.delete_record(c, **_scope(scope), name=key).rowcount > 0
