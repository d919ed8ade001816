"""Making logs short: what is read, and what one transaction writes."""

from __future__ import annotations

from typing import NamedTuple

from pai.protocol import ThreadKey, compact
from pai.stores._rules import compacted_to
from pai.stores._sql.packing import packed
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import Row, batch_from_row, body_of
from pai.stores._sql.statement import Connection

__all__ = ("Short", "long_logs", "shortened", "write")


class Short(NamedTuple):
    """
    A log made short.

    Args:
        after: The number up to which it was compact before.
        upto: The number up to which it is now.
        rows: What takes the place of which batches.
    """

    after: int
    upto: int
    rows: list[Row]


def _scope(key: ThreadKey) -> Row:
    return {"scope": key.partition, "thread": key.thread_id}


def shortened(c: Connection, q: Queries, key: ThreadKey, before: float) -> Short | None:
    """What there is to write; ``None``: nothing."""
    scope = _scope(key)
    row = q.log.compacted(c, **scope).fetchone()
    if row is None:
        return None
    after = int(row[0])
    batches = [batch_from_row(r) for r in q.log.uncompacted(c, **scope, after=after).fetchall()]
    ids = {batch.run_id for batch in batches if batch.run_id}
    ended = {
        run_id
        for run_id in ids
        if q.log.ended(c, **scope, run=run_id, before=before).fetchone() is not None
    }
    rows: list[Row] = [
        {
            "first_last": first_last,
            "upto": batch.last,
            "new_size": batch.size,
            "new_body": packed(body_of(batch.events)),
            "new_compact": batch.compact,
        }
        for batch, first_last in compact(batches, ended)
    ]
    upto = compacted_to(batches, ended, after)
    return Short(after, upto, rows) if rows or upto != after else None


def write(c: Connection, q: Queries, key: ThreadKey, short: Short) -> None:
    scope = _scope(key)
    # The thread's lock; another one may have done it meanwhile.
    done = q.log.set_compacted(c, **scope, after=short.after, upto=short.upto)
    if done.rowcount == 0:
        return
    for row in short.rows:
        q.log.drop(c, **scope, first_last=row["first_last"], upto=row["upto"])
        q.log.shorten(c, **scope, **row)


def long_logs(c: Connection, q: Queries, before: float, limit: int) -> list[ThreadKey]:
    return [ThreadKey(*row) for row in q.log.long(c, before=before, most=limit).fetchall()]
