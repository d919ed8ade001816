"""
Every statement of the store, built once a dialect.

Parameters are named other than columns where they do not fill one: *scope* and *thread* are a
thread's key, *run* a run's id, *held* the fence a worker believes in. ``now`` is the store's clock:
the database's own in PostgreSQL, where workers sit on many machines.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from pai.stores._sql.idle import IdleQueries
from pai.stores._sql.job_queries import JobQueries
from pai.stores._sql.log_queries import LogQueries
from pai.stores._sql.statement import Statement
from pai.stores._sql.tables import actions, events, messages, records, runs, threads

__all__ = ("Queries",)

S = TypeVar("S", sa.Update, sa.Select[Any])

_p = sa.bindparam
_ZERO = sa.literal_column("0", sa.Integer)
_ONE = sa.literal_column("1", sa.Integer)


def _word(text: str) -> sa.ColumnElement[str]:
    return sa.literal_column(f"'{text}'", sa.Text)


_RUNNING, _QUEUED, _SETTLED = _word("running"), _word("queued"), _word("settled")
_USER, _SUSPENDED, _WAITING = _word("user"), _word("suspended"), _word("waiting")
_QUESTION = _word("question")

_HEAD = (
    threads.c.agent, threads.c.title, threads.c.title_source, threads.c.metadata,
    threads.c.created_at, threads.c.updated_at, threads.c.messages, threads.c.events,
    threads.c.runs, threads.c.queued, threads.c.active, threads.c.turn, threads.c.fence,
    threads.c.takeovers, threads.c.titled_at, threads.c.titled_messages, threads.c.titled_runs,
)  # fmt: skip
"""A thread's head, in the order that rows.py reads."""

_RUN = (
    runs.c.id, runs.c.agent, runs.c.version, runs.c.operation, runs.c.request, runs.c.digest,
    runs.c.created_at, runs.c.metadata, runs.c.status, runs.c.parent_run_id, runs.c.attempt,
    runs.c.episode, runs.c.outcome, runs.c.reason, runs.c.stop_reason, runs.c.usage, runs.c.error,
    runs.c.started_at, runs.c.finished_at, runs.c.cancel, runs.c.after, runs.c.steps, runs.c.patch,
)  # fmt: skip
"""A run, in the order that rows.py reads: that of the record's fields."""

_MESSAGE = (
    messages.c.seq, messages.c.id, messages.c.role, messages.c.parts, messages.c.run_id,
    messages.c.created_at, messages.c.metadata, messages.c.labels,
)  # fmt: skip

_CALL = (
    actions.c.call_id, actions.c.message_id, actions.c.tool, actions.c.status, actions.c.outcome,
    actions.c.output, actions.c.error, actions.c.input, actions.c.rewritten, actions.c.kind,
    actions.c.payload, actions.c.digest, actions.c.decision, actions.c.expires_at,
)  # fmt: skip
"""A call, in the order that rows.py reads; behind it stands whether it has expired."""


def _row(table: sa.Table) -> dict[str, Any]:
    """All columns, each filled by the parameter of its name."""
    return {column.name: _p(column.name) for column in table.columns}


class Queries:
    """The statements, as text for one dialect (``"sqlite"`` or ``"postgresql"``)."""

    def __init__(self, name: str) -> None:
        dialect: sa.Dialect
        if name == "sqlite":
            dialect = sqlite.dialect(paramstyle="qmark")
            self._now: sa.ColumnElement[float] = _p("now", type_=sa.Double)
        else:
            from sqlalchemy.dialects.postgresql import psycopg

            dialect = psycopg.dialect()  # type: ignore[no-untyped-call]
            self._now = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)
        self._until = self._now + _p("lease", type_=sa.Double)
        self._upsert = sqlite.insert if name == "sqlite" else postgresql.insert

        self._dialect = dialect

        def made(statement: sa.ClauseElement) -> Statement:
            return Statement(statement, dialect)

        self.accept = made(self._accept(claim=False))
        self.accept_claim = made(self._accept(claim=True))
        self.add_run = made(self._add_run())
        self.claim = made(self._claim())
        self.oldest = made(
            sa.select(runs.c.id, runs.c.turn)
            .where(*_in_thread(runs), runs.c.status == _QUEUED)
            .order_by(runs.c.turn)
            .limit(_ONE)
            .offset(_ZERO)
        )
        self.activate = made(
            sa.update(threads)
            .where(*_this_thread())
            .values(active=_p("run"), turn=_p("to_turn", type_=sa.BigInteger))
        )
        self.start_run = made(self._start_run())
        self.renew = made(self._of_active({"ready": self._until}).returning(threads.c.cancel))
        self.append = made(
            self._of_active(
                {"events": threads.c.events + _p("n_events", type_=sa.Integer)}
            ).returning(threads.c.events)
        )
        self.commit = made(self._commit({}))
        self.settle = made(self._settle())
        self.add_message = made(
            self._upsert(messages)
            .values({**_row(messages), "labels": sa.null()})
            .on_conflict_do_nothing(index_elements=["partition", "thread_id", "id"])
        )
        self.put_message = made(self._put_message())
        self.add_events = made(
            sa.insert(events).inline().values({**_row(events), "compact": sa.null()})
        )
        self.put_call = made(self._put_call())
        bags = _p("new_metadata", type_=sa.Text)
        shown = messages.c.replaced.is_(None)
        one = *_in_thread(messages), messages.c.id == _p("message"), shown
        self.run_metadata = made(_of_run(sa.select(runs.c.metadata)))
        self.thread_metadata = made(sa.select(threads.c.metadata).where(*_this_thread()))
        self.message_metadata = made(sa.select(messages.c.metadata).where(*one))
        self.set_run_metadata = made(_of_run(sa.update(runs)).values(metadata=bags))
        self.set_thread_metadata = made(
            sa.update(threads).where(*_this_thread()).values(metadata=bags)
        )
        self.set_run_patch = made(
            _of_run(sa.update(runs)).values(patch=_p("new_patch", type_=sa.Text))
        )
        self.set_message_metadata = made(sa.update(messages).where(*one).values(metadata=bags))
        self.end_run = made(self._end_run(runs.c.status == _RUNNING).returning(runs.c.metadata))
        self.ask_cancel = made(self._ask_cancel())
        self.cancel_active = made(
            _of_run(sa.update(runs)).values(cancel=sa.func.coalesce(runs.c.cancel, _p("why")))
        )
        self.end_idle = made(
            self._end_run(
                sa.or_(runs.c.status == _QUEUED, runs.c.status == _SUSPENDED),
                cancel=_p("why", type_=sa.Text),
            ).returning(runs.c.metadata)
        )
        self.leave_queue = made(self._leave_queue())

        own = sa.select(*_HEAD).where(*_this_thread())
        self.head = made(own)
        # Locked, where others could write meanwhile: whoever changes metadata begins with this lock.
        self.lock = made(own.with_for_update())
        self.tell = made(self._tell())
        self.delete = made(
            sa.delete(threads)
            .where(*_this_thread(), threads.c.agent == _p("of_agent"))
            .returning(*_HEAD)
        )
        self.forget_records = made(sa.delete(records).where(*_in_thread(records)))
        self.born = made(sa.select(threads.c.created_at).where(*_this_thread()))
        newest = sa.select(threads.c.runs).where(*_this_thread()).scalar_subquery()
        self.latest_run = made(sa.select(runs.c.id).where(*_in_thread(runs), runs.c.turn == newest))
        self.latest_message = made(
            sa.select(messages.c.id)
            .where(*_in_thread(messages), shown)
            .order_by(messages.c.turn.desc(), messages.c.seq.desc())
            .limit(_ONE)
            .offset(_ZERO)
        )
        self.run = made(_of_run(sa.select(*_RUN)))
        self.runs = made(sa.select(*_RUN).where(*_in_thread(runs)).order_by(runs.c.turn))
        every = sa.select(*_MESSAGE).where(*_in_thread(messages))
        every = every.order_by(messages.c.turn, messages.c.seq)
        in_order = every.where(messages.c.replaced.is_(None))
        self.history = made(in_order)
        self.history_until = made(
            in_order.where(messages.c.turn <= _p("until", type_=sa.BigInteger))
        )
        turn = _of_run(sa.select(runs.c.turn)).scalar_subquery()
        self.run_messages = made(every.where(messages.c.turn == turn, messages.c.role != _USER))
        expired = actions.c.expires_at <= self._now
        calls = (
            sa.select(*_CALL, sa.case((expired, _ONE), else_=_ZERO))
            .where(*_in_thread(actions), actions.c.run_id == _p("run"))
            .order_by(actions.c.call_id)
        )
        self.calls = made(calls)
        self.open_calls = made(
            calls.where(sa.or_(actions.c.status != _SETTLED, actions.c.kind == _QUESTION))
        )
        self.waiting_calls = made(calls.where(actions.c.status == _WAITING))
        ended = sa.select(
            actions.c.run_id, actions.c.call_id, actions.c.outcome, actions.c.output,
            actions.c.error, actions.c.input, actions.c.rewritten,
        ).where(
            # Those that say more than their message: how it ended, or what it was edited to.
            *_in_thread(actions), sa.or_(actions.c.status == _SETTLED, actions.c.rewritten == _ONE)
        )  # fmt: skip
        self.ended_calls = made(ended)
        self.ended_calls_of_run = made(ended.where(actions.c.run_id == _p("run")))
        self.waiting = made(
            sa.select(threads.c.partition, threads.c.id)
            .where(threads.c.ready <= self._now)
            .order_by(threads.c.ready)
            .limit(_p("most", type_=sa.Integer))
            .offset(_ZERO)
        )
        self.listed, self.listed_after = (made(page) for page in _pages())

        held = threads.c.fence == _p("held", type_=sa.BigInteger), threads.c.active == _p("run")
        # Locked, where others could write meanwhile.
        self.hold = made(sa.select(threads.c.fence).where(*_this_thread(), *held).with_for_update())
        of_plugin = *_in_thread(records), records.c.plugin == _p("of_plugin")
        self.record = made(
            sa.select(records.c.value).where(*of_plugin, records.c.key == _p("name"))
        )
        self.records = made(
            sa.select(records.c.key, records.c.value)
            .where(
                *of_plugin,
                records.c.key >= _p("prefix", type_=sa.Text),
                records.c.key > _p("after", type_=sa.Text),
                records.c.key < _p("end", type_=sa.Text),
            )
            .order_by(records.c.key)
            .limit(_p("most", type_=sa.Integer))
            .offset(_ZERO)
        )
        self.put_record = made(self._put_record())
        self.log = LogQueries(made)
        self.jobs = JobQueries(made, self._upsert, self._now)
        self.delete_record = made(sa.delete(records).where(*of_plugin, records.c.key == _p("name")))

    @cached_property
    def idle(self) -> IdleQueries:
        """Statements of runs that no worker holds, made when they are first needed."""
        return IdleQueries(self._dialect, self._now, self._until)

    def _of_active(self, values: dict[str, Any]) -> sa.Update:
        """Change the head of a thread whose active run is ours: where the fence is checked."""
        return (
            sa.update(threads)
            .where(
                *_this_thread(),
                threads.c.fence == _p("held", type_=sa.BigInteger),
                threads.c.active == _p("run"),
            )
            .values(values)
        )

    def _accept(self, *, claim: bool) -> sa.Insert:
        """
        Make the thread or count the run in it; with *claim*, give it the run if it is free.

        It is claimed if *active* is the run's id afterwards.
        """
        c = threads.c
        first: dict[str, Any] = {
            "runs": _ONE, "queued": _ZERO if claim else _ONE, "takeovers": _ZERO,
            "cancel": sa.null(),
            "active": _p("run") if claim else sa.null(),
            "owner": _p("holder") if claim else sa.null(),
            "turn": _ONE if claim else _ZERO,
            "fence": _p("fences", type_=sa.BigInteger) + (_ONE if claim else _ZERO),
            "ready": self._until if claim else self._now, "updated_at": _p("moved"),
            "messages": _p("n_messages"), "events": _p("n_events"),
            "titled_at": sa.null(), "titled_messages": sa.null(), "titled_runs": sa.null(),
            "compacted": sa.null(),
        }  # fmt: skip
        queued = {
            "queued": c.queued + _ONE,
            "ready": sa.case((c.active.is_(None), sa.func.coalesce(c.ready, self._now)),
                             else_=c.ready),
            "events": c.events + _p("n_events"),
        }  # fmt: skip
        if claim:
            first["events"] = _p("n_events") + _p("n_started")
            taken = {
                "ready": self._until,
                "queued": c.queued,
                "events": c.events + _p("n_events") + _p("n_started"),
                "active": _p("run"),
                "owner": _p("holder"),
                "turn": c.runs + _ONE,
                "fence": c.fence + _ONE,
                "takeovers": _ZERO,
                "cancel": sa.null(),
            }
            free = sa.and_(c.active.is_(None), c.queued == _ZERO)
            queued = {
                name: sa.case((free, value), else_=queued.get(name, c[name]))
                for name, value in taken.items()
            }
        again = {
            "runs": c.runs + _ONE,
            "messages": c.messages + _p("n_messages"),
            "updated_at": _p("moved"),
            **queued,
        }
        return (
            self._upsert(threads)
            .values({**_row(threads), **first})
            .on_conflict_do_update(index_elements=["partition", "id"], set_=again)
            .returning(*_HEAD)
        )

    def _add_run(self) -> sa.Insert:
        # Only the same id may be passed over; a second active run must be refused.
        return (
            self._upsert(runs)
            .values(_row(runs))
            .on_conflict_do_nothing(index_elements=["partition", "thread_id", "id"])
        )

    def _claim(self) -> sa.Update:
        """
        Take the thread for its active run (*active* is it) or its oldest queued one (it is null).

        Which one that is must be asked by a statement of its own: PostgreSQL would answer a
        subquery from before the wait for the row.
        """
        c = threads.c
        idle = c.active.is_(None)
        return (
            sa.update(threads)
            .where(
                *_this_thread(),
                sa.or_(sa.and_(idle, c.queued > _ZERO), c.ready <= self._now),
            )
            .values(
                fence=c.fence + _ONE,
                owner=_p("holder", type_=sa.Text),
                ready=self._until,
                events=c.events + _p("n_started", type_=sa.Integer),
                queued=sa.case((idle, c.queued - _ONE), else_=c.queued),
                takeovers=sa.case((idle, _ZERO), else_=c.takeovers + _ONE),
                cancel=sa.case((idle, sa.null()), else_=c.cancel),
            )
            .returning(*_HEAD)
        )

    def _start_run(self) -> sa.Update:
        return (
            _of_run(sa.update(runs))
            .values(
                status=_RUNNING,
                # One that was suspended, and now expires, begins an episode.
                attempt=sa.case((runs.c.status == _SUSPENDED, _ONE), else_=runs.c.attempt + _ONE),
                episode=sa.case(
                    (runs.c.status == _SUSPENDED, runs.c.episode + _ONE), else_=runs.c.episode
                ),
                started_at=sa.func.coalesce(runs.c.started_at, _p("began", type_=sa.Double)),
            )
            .returning(*_RUN)
        )

    def _commit(self, more: dict[str, Any]) -> sa.Update:
        c = threads.c
        return self._of_active(
            {
                "events": c.events + _p("n_events", type_=sa.Integer),
                "messages": c.messages + _p("n_messages", type_=sa.Integer),
                "takeovers": _ZERO,
                **more,
            }
        ).returning(c.events, c.messages, c.turn, c.cancel, c.queued)

    def _settle(self) -> sa.Update:
        """
        Let go of the active run.

        A thread with more in its queue waits from now on, so that a long queue of one thread does
        not keep others from their turn. The cancel wish stays readable until the next claim.
        """
        return self._commit(
            {
                "active": sa.null(),
                "owner": sa.null(),
                "updated_at": _p("moved", type_=sa.Double),
                "ready": sa.case((threads.c.queued > _ZERO, self._now), else_=sa.null()),
            }
        )

    def _put_message(self) -> sa.Insert:
        statement = self._upsert(messages).values({**_row(messages), "labels": sa.null()})
        told = ("run_id", "role", "parts", "created_at")
        return statement.on_conflict_do_update(
            index_elements=["partition", "thread_id", "id"],
            # Its place stays, and its metadata, which others may have changed meanwhile.
            set_={name: statement.excluded[name] for name in told},
        )

    def _put_call(self) -> sa.Insert:
        told = (
            "message_id", "tool", "status", "outcome", "output", "error", "input", "rewritten",
            "kind", "payload", "digest", "decision", "expires_at",
        )  # fmt: skip
        keys = ("partition", "thread_id", "run_id", "call_id")
        statement = self._upsert(actions).values({name: _p(name) for name in keys + told})
        return statement.on_conflict_do_update(
            index_elements=list(keys),
            set_={name: statement.excluded[name] for name in told},
            # How a call ended never changes.
            where=actions.c.status != _SETTLED,
        )

    def _put_record(self) -> sa.Insert:
        statement = self._upsert(records).values({**_row(records), "updated_at": self._now})
        return statement.on_conflict_do_update(
            index_elements=["partition", "thread_id", "plugin", "key"],
            set_={name: statement.excluded[name] for name in ("value", "updated_at")},
        )

    def _end_run(self, where: sa.ColumnElement[bool], **more: Any) -> sa.Update:
        names = ("outcome", "reason", "stop_reason", "usage", "error", "finished_at")
        values = {name: _p("end_" + name, type_=runs.c[name].type) for name in names}
        return (
            _of_run(sa.update(runs))
            .where(where)
            .values(
                status=_p("end_status", type_=sa.Text),
                **values,
                **more,
            )
        )

    def _tell(self) -> sa.Update:
        c = threads.c
        return (
            sa.update(threads)
            .where(*_this_thread())
            .values(
                title=_p("new_title", type_=sa.Text),
                title_source=_p("new_source", type_=sa.Text),
                metadata=_p("new_metadata", type_=sa.Text),
                events=c.events + _p("n_events", type_=sa.Integer),
            )
            .returning(c.events)
        )

    def _ask_cancel(self) -> sa.Update:
        c = threads.c
        wish = sa.func.coalesce(c.cancel, _p("why", type_=sa.Text))
        return (
            sa.update(threads)
            .where(*_this_thread())
            .values(cancel=sa.case((c.active == _p("run"), wish), else_=c.cancel))
            .returning(c.active)
        )

    def _leave_queue(self) -> sa.Update:
        c = threads.c
        empty = sa.and_(c.active.is_(None), c.queued == _ONE)
        return (
            sa.update(threads)
            .where(*_this_thread())
            .values(
                queued=c.queued - _ONE,
                events=c.events + _ONE,
                updated_at=_p("moved", type_=sa.Double),
                ready=sa.case((empty, sa.null()), else_=c.ready),
            )
            .returning(c.events)
        )


def _this_thread() -> tuple[sa.ColumnElement[bool], ...]:
    return threads.c.partition == _p("scope"), threads.c.id == _p("thread")


def _in_thread(table: sa.Table) -> tuple[sa.ColumnElement[bool], ...]:
    return table.c.partition == _p("scope"), table.c.thread_id == _p("thread")


def _of_run(statement: S) -> S:
    return statement.where(*_in_thread(runs), runs.c.id == _p("run"))


def _pages() -> tuple[sa.Select[Any], sa.Select[Any]]:
    """An agent's threads, newest first: the first page, and one after a place in it."""
    c = threads.c
    first = (
        sa.select(c.id, *_HEAD)
        .where(c.partition == _p("scope"), c.agent == _p("of_agent"))
        .order_by(c.updated_at.desc(), c.id.desc())
        .limit(_p("most", type_=sa.Integer))
        .offset(_ZERO)
    )
    place = sa.tuple_(_p("after_time", type_=sa.Double), _p("after_id", type_=sa.Text))
    return first, first.where(sa.tuple_(c.updated_at, c.id) < place)
