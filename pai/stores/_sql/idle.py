"""
Statements of runs that no worker holds: suspended, answered, given back, replaced.

Parameters are named as in queries.py.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from pai.stores._sql.statement import Statement
from pai.stores._sql.tables import actions, messages, runs, threads

__all__ = ("IdleQueries",)

_p = sa.bindparam


def _one(value: int) -> sa.ColumnElement[int]:
    return sa.literal_column(str(value), sa.Integer)


def _word(text: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{text}'", sa.Text)


class IdleQueries:
    """The statements, as text for one dialect; *now* and *until* are the store's clock."""

    def __init__(
        self, dialect: sa.Dialect, now: sa.ColumnElement[float], until: sa.ColumnElement[float]
    ) -> None:
        c = threads.c
        thread = c.partition == _p("scope"), c.id == _p("thread")
        held = c.fence == _p("held", type_=sa.BigInteger), c.active == _p("run")
        run = (
            runs.c.partition == _p("scope"), runs.c.thread_id == _p("thread"),
            runs.c.id == _p("run"),
        )  # fmt: skip
        of_thread = messages.c.partition == _p("scope"), messages.c.thread_id == _p("thread")
        # Nobody holds it from here on. One takeover less: the claim to come counts as none.
        let_go: dict[str, Any] = {"owner": sa.null(), "fence": c.fence + _one(1)}
        one_more = {"events": c.events + _one(1)}

        def made(statement: sa.ClauseElement) -> Statement:
            return Statement(statement, dialect)

        self.lock = made(sa.select(c.active, c.events).where(*thread).with_for_update())
        self.suspend = made(
            sa.update(threads)
            .where(*thread, *held)
            .values(
                events=c.events + _p("n_events", type_=sa.Integer),
                messages=c.messages + _p("n_messages", type_=sa.Integer),
                ready=_p("expires_at", type_=sa.Double),
                takeovers=_one(-1),
                **let_go,
            )
            .returning(c.events, c.messages, c.turn, c.cancel, c.queued)
        )
        self.suspend_run = made(
            sa.update(runs)
            .where(*run)
            .values(
                status=_word("suspended"),
                usage=_p("used", type_=sa.Text),
                steps=_p("n_steps", type_=sa.BigInteger),
            )
        )
        self.answered = made(
            sa.select(actions.c.call_id, actions.c.expires_at).where(
                actions.c.partition == _p("scope"),
                actions.c.thread_id == _p("thread"),
                actions.c.run_id == _p("run"),
                actions.c.status == _word("answered"),
            )
        )
        self.queue_again = made(
            sa.update(threads).where(*thread).values(ready=now, **one_more).returning(c.events)
        )
        self.count_event = made(
            sa.update(threads).where(*thread).values(**one_more).returning(c.events)
        )
        self.queue_run = made(
            sa.update(runs)
            .where(*run, runs.c.status == _word("suspended"))
            .values(status=_word("queued"), attempt=_one(0), episode=runs.c.episode + _one(1))
        )
        self.set_request = made(
            sa.update(runs).where(*run).values(request=_p("new_request", type_=sa.Text))
        )
        self.release = made(
            sa.update(threads)
            .where(*thread, *held)
            .values(ready=until, takeovers=c.takeovers - _one(1), **let_go, **one_more)
            .returning(c.events)
        )
        self.release_run = made(
            sa.update(runs)
            .where(*run, runs.c.status == _word("running"))
            .values(status=_word("queued"))
        )
        self.leave_active = made(
            sa.update(threads)
            .where(*thread)
            .values(
                active=sa.null(),
                owner=sa.null(),
                updated_at=_p("moved", type_=sa.Double),
                events=c.events + _p("n_events", type_=sa.Integer),
                ready=sa.case((c.queued > _one(0), now), else_=sa.null()),
            )
            .returning(c.events)
        )
        self.place = made(
            sa.select(messages.c.turn, messages.c.seq).where(
                *of_thread, messages.c.id == _p("message"), messages.c.replaced.is_(None)
            )
        )
        at, own = _p("at_turn", type_=sa.BigInteger), _p("own_turn", type_=sa.BigInteger)
        behind = sa.and_(messages.c.turn == at, messages.c.seq > _p("at_seq", type_=sa.BigInteger))
        self.replace = made(
            sa.update(messages)
            .where(
                *of_thread,
                messages.c.replaced.is_(None),
                messages.c.turn < own,
                sa.or_(messages.c.turn > at, behind),
            )
            .values(replaced=own)
        )
