"""The statements of side jobs; parameters are named as in queries.py."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa

from pai.stores._sql.statement import Statement
from pai.stores._sql.tables import jobs, messages, runs, threads

__all__ = ("JobQueries",)

_p = sa.bindparam
_ZERO = sa.literal_column("0", sa.Integer)
_ONE = sa.literal_column("1", sa.Integer)


class JobQueries:
    """
    The statements.

    Args:
        made: Compiles one.
        upsert: The dialect's ``insert``.
        now: The store's clock.
    """

    def __init__(
        self,
        made: Callable[[sa.ClauseElement], Statement],
        upsert: Callable[[sa.Table], Any],
        now: sa.ColumnElement[float],
    ) -> None:
        until = now + _p("lease", type_=sa.Double)
        in_thread = jobs.c.partition == _p("scope"), jobs.c.thread_id == _p("thread")
        this = *in_thread, jobs.c.id == _p("job")
        ours = *this, jobs.c.attempt == _p("at_attempt", type_=sa.BigInteger)
        of_message = *in_thread, jobs.c.id >= _p("first"), jobs.c.id < _p("end")
        message = (
            messages.c.partition == _p("scope"), messages.c.thread_id == _p("thread"),
            messages.c.id == _p("message"),
        )  # fmt: skip
        head = threads.c.partition == _p("scope"), threads.c.id == _p("thread")

        self.add = made(
            upsert(jobs)
            .values(
                partition=_p("scope"), thread_id=_p("thread"), id=_p("job"), kind=_p("kind"),
                run_id=_p("run"), payload=_p("payload"), attempt=_p("at_attempt"), ready=until,
            )
            .on_conflict_do_nothing(index_elements=["partition", "thread_id", "id"])
        )  # fmt: skip
        self.drop = made(sa.delete(jobs).where(*of_message))
        self.due = made(
            sa.select(jobs.c.partition, jobs.c.thread_id, jobs.c.id)
            .where(jobs.c.ready <= now)
            .order_by(jobs.c.ready)
            .limit(_p("most", type_=sa.Integer))
            .offset(_ZERO)
        )
        self.claim = made(
            sa.update(jobs)
            .where(*this, jobs.c.ready <= now)
            .values(attempt=jobs.c.attempt + _ONE, ready=until)
            .returning(jobs.c.kind, jobs.c.run_id, jobs.c.payload, jobs.c.attempt)
        )
        self.postpone = made(sa.update(jobs).where(*ours).values(ready=until))
        self.finish = made(sa.delete(jobs).where(*ours).returning(jobs.c.run_id))
        # It is nobody's any more, and waits for its message.
        self.keep_label = made(
            sa.update(jobs)
            .where(*ours)
            .values(payload=_p("payload", type_=sa.Text), ready=sa.null(), attempt=_ZERO)
            .returning(jobs.c.run_id)
        )
        self.kept_labels = made(
            sa.delete(jobs).where(*of_message, jobs.c.ready.is_(None)).returning(jobs.c.payload)
        )
        self.labels = made(sa.select(messages.c.labels).where(*message))
        self.set_labels = made(
            sa.update(messages).where(*message).values(labels=_p("text", type_=sa.Text))
        )
        # The thread's lock, and the number of the event.
        count = {"events": threads.c.events + _ONE}
        self.count_event = made(
            sa.update(threads).where(*head).values(count).returning(threads.c.events)
        )
        self.retitle = made(
            sa.update(threads)
            .where(
                *head,
                sa.func.coalesce(threads.c.title_source, sa.literal_column("''", sa.Text)).in_(
                    [_p(name, type_=sa.Text) for name in ("may_1", "may_2", "may_3")]
                ),
            )
            .values(
                title=_p("text", type_=sa.Text),
                title_source=sa.literal_column("'generated'", sa.Text),
                titled_at=_p("at", type_=sa.Double),
                titled_messages=_p("seen", type_=sa.BigInteger),
                titled_runs=_p("to_turn", type_=sa.BigInteger),
                **count,
            )
            .returning(threads.c.events)
        )
        self.turn = made(
            sa.select(runs.c.turn).where(
                runs.c.partition == _p("scope"),
                runs.c.thread_id == _p("thread"),
                runs.c.id == _p("run"),
            )
        )
