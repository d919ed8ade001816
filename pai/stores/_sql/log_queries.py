"""The statements that read logs and make them short; parameters are named as in queries.py."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa

from pai.stores._sql.statement import Statement
from pai.stores._sql.tables import events, runs, threads

__all__ = ("LogQueries",)

_p = sa.bindparam
_ZERO = sa.literal_column("0", sa.Integer)


class LogQueries:
    """
    The statements.

    Args:
        made: Compiles one.
    """

    def __init__(self, made: Callable[[sa.ClauseElement], Statement]) -> None:
        compacted = sa.func.coalesce(threads.c.compacted, _ZERO)
        head = threads.c.partition == _p("scope"), threads.c.id == _p("thread")
        log = events.c.partition == _p("scope"), events.c.thread_id == _p("thread")
        before = _p("before", type_=sa.Double)

        self.events = made(
            sa.select(
                events.c.last, events.c.size, events.c.run_id, events.c.body, events.c.compact
            )
            .where(*log, events.c.last > _p("after", type_=sa.BigInteger))
            .order_by(events.c.last)
            .limit(_p("most", type_=sa.Integer))
            .offset(_ZERO)
        )
        self.compacted = made(sa.select(compacted).where(*head))
        self.uncompacted = made(
            sa.select(
                events.c.last, events.c.size, events.c.run_id, events.c.body, events.c.compact
            )
            .where(*log, events.c.last > _p("after", type_=sa.BigInteger))
            .order_by(events.c.last)
        )
        self.ended = made(
            sa.select(runs.c.id).where(
                runs.c.partition == _p("scope"),
                runs.c.thread_id == _p("thread"),
                runs.c.id == _p("run"),
                runs.c.finished_at <= before,
            )
        )
        self.set_compacted = made(
            sa.update(threads)
            .where(*head, compacted == _p("after", type_=sa.BigInteger))
            .values(compacted=_p("upto", type_=sa.BigInteger))
        )
        self.drop = made(
            sa.delete(events).where(
                *log,
                events.c.last >= _p("first_last", type_=sa.BigInteger),
                events.c.last < _p("upto", type_=sa.BigInteger),
            )
        )
        self.shorten = made(
            sa.update(events)
            .where(*log, events.c.last == _p("upto", type_=sa.BigInteger))
            .values(
                size=_p("new_size", type_=sa.BigInteger),
                body=_p("new_body", type_=sa.Text),
                compact=_p("new_compact", type_=sa.BigInteger),
            )
        )
        self.long = made(
            sa.select(threads.c.partition, threads.c.id)
            .where(
                threads.c.updated_at <= before,
                threads.c.active.is_(None),
                threads.c.queued == _ZERO,
                compacted < threads.c.events,
            )
            .limit(_p("most", type_=sa.Integer))
            .offset(_ZERO)
        )
