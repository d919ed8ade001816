"""
The tables, alike in SQLite and PostgreSQL.

Each key begins with the partition and the thread (R-7). Columns are text, integers and reals, since
statements run on the driver's own connection, past SQLAlchemy's converters: JSON is text, a time is
seconds since the epoch, a truth is 0 or 1.
"""

from __future__ import annotations

import sqlalchemy as sa

__all__ = (
    "VERSION",
    "actions",
    "events",
    "jobs",
    "messages",
    "meta",
    "metadata",
    "records",
    "runs",
    "threads",
)

VERSION = 2
"""The version of these tables. A change of them belongs into the step that makes it: migrations/."""

metadata = sa.MetaData()

# By code point, as Python sorts, and cheaper to compare than by a locale's rules.
_Key = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, _Key, primary_key=True, nullable=False)


def _number(name: str, *, primary_key: bool = False) -> sa.Column[int]:
    return sa.Column(
        name, sa.BigInteger, primary_key=primary_key, nullable=False, autoincrement=False
    )


def _text(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=nullable)


def _real(name: str, *, nullable: bool = False) -> sa.Column[float]:
    return sa.Column(name, sa.Double, nullable=nullable)


def _of_thread() -> sa.ForeignKeyConstraint:
    # Deleting a thread deletes every row of it.
    return sa.ForeignKeyConstraint(
        ["partition", "thread_id"], ["threads.partition", "threads.id"], ondelete="CASCADE"
    )


def _index(name: str, *columns: str, where: str, unique: bool = False) -> sa.Index:
    """An index of only those rows for which *where* holds."""
    text = sa.text(where)
    return sa.Index(name, *columns, unique=unique, sqlite_where=text, postgresql_where=text)


meta = sa.Table(
    "meta",
    metadata,
    sa.Column("app", sa.Text, primary_key=True, nullable=False),
    _number("version"),
)
"""One row: whose database this is, and of which version."""

threads = sa.Table(
    "threads",
    metadata,
    _key("partition"),
    _key("id"),
    sa.Column("agent", _Key, nullable=False),
    _text("title", nullable=True),
    _text("title_source", nullable=True),
    _text("metadata"),
    _real("created_at"),
    _real("updated_at"),
    # How many it has of each; the newest number is the count.
    _number("runs"),
    _number("messages"),
    _number("events"),
    # The queue: how many wait, the active run with its turn, who holds it, its fence, and
    # since when there is a run to take: that of the queue, or the active one from then on.
    _number("queued"),
    sa.Column("active", _Key, nullable=True),
    _number("turn"),
    _text("owner", nullable=True),
    _number("fence"),
    _real("ready", nullable=True),
    _number("takeovers"),
    _text("cancel", nullable=True),
    # When the title was last generated, and how many messages and runs it had seen.
    _real("titled_at", nullable=True),
    sa.Column("titled_messages", sa.BigInteger, nullable=True),
    sa.Column("titled_runs", sa.BigInteger, nullable=True),
    # The number up to which the log is compact.
    sa.Column("compacted", sa.BigInteger, nullable=True),
    _index("threads_ready", "ready", where="ready IS NOT NULL"),
    sa.Index("threads_listed", "partition", "agent", "updated_at", "id"),
    sqlite_with_rowid=False,
)
"""A thread's head: the counters and the fence lie in one row, so that one UPDATE checks them all."""

messages = sa.Table(
    "messages",
    metadata,
    _key("partition"),
    _key("thread_id"),
    # The turn is the place of its run among the thread's runs: by (turn, seq) a history reads run
    # by run, by seq as the messages came.
    _number("turn", primary_key=True),
    _number("seq", primary_key=True),
    sa.Column("id", _Key, nullable=False),
    sa.Column("run_id", _Key, nullable=False),
    _text("role"),
    _text("parts"),
    _text("metadata"),
    _real("created_at"),
    # The turn of the run that replaced it (a regenerate): no later run sees it.
    sa.Column("replaced", sa.BigInteger, nullable=True),
    # Labels of reasoning parts, by place: a JSON object.
    _text("labels", nullable=True),
    _of_thread(),
    sa.Index("messages_id", "partition", "thread_id", "id", unique=True),
    sqlite_with_rowid=False,
)
"""Messages. Their parts never change: how a call ended stands in its action, labels in *labels*."""

runs = sa.Table(
    "runs",
    metadata,
    _key("partition"),
    _key("thread_id"),
    _key("id"),
    _number("turn"),
    _text("agent"),
    _text("version"),
    _text("operation"),
    _text("request"),
    _text("digest"),
    _text("metadata"),
    _text("status"),
    sa.Column("parent_run_id", _Key, nullable=True),
    _number("attempt"),
    _number("episode"),
    _text("outcome", nullable=True),
    _text("reason", nullable=True),
    _text("stop_reason", nullable=True),
    _text("usage", nullable=True),
    _text("error", nullable=True),
    _text("cancel", nullable=True),
    _real("created_at"),
    _real("started_at", nullable=True),
    _real("finished_at", nullable=True),
    # The message a regenerate goes on from; assistant messages before the present episode; what
    # prepare_run decided.
    sa.Column("after", _Key, nullable=True),
    sa.Column("steps", sa.BigInteger, nullable=False, server_default="0"),
    _text("patch", nullable=True),
    _of_thread(),
    # A thread has at most one active run.
    _index(
        "runs_active",
        "partition",
        "thread_id",
        unique=True,
        where="status IN ('running', 'suspended')",
    ),
    _index("runs_queued", "partition", "thread_id", "turn", where="status = 'queued'"),
    sqlite_with_rowid=False,
)
"""Runs. The caller's identity and data lie in *request*, so that any worker can go on (R-6)."""

actions = sa.Table(
    "actions",
    metadata,
    _key("partition"),
    _key("thread_id"),
    _key("run_id"),
    _key("call_id"),
    sa.Column("message_id", _Key, nullable=False),
    _text("tool"),
    _text("status"),
    # How it ended: JSON but for the outcome; *input* where it differs from the message's.
    _text("outcome", nullable=True),
    _text("output", nullable=True),
    _text("error", nullable=True),
    _text("input", nullable=True),
    _number("rewritten"),
    # What an answer is waited for, for which input, until when, and what was decided.
    _text("kind", nullable=True),
    _text("payload", nullable=True),
    _text("digest", nullable=True),
    _text("decision", nullable=True),
    _real("expires_at", nullable=True),
    _of_thread(),
    sqlite_with_rowid=False,
)
"""Tool calls: open ones, those that wait for an answer, and how each ended."""

events = sa.Table(
    "events",
    metadata,
    _key("partition"),
    _key("thread_id"),
    _number("last", primary_key=True),
    _number("size"),
    sa.Column("run_id", _Key, nullable=False),
    _text("body"),
    # Not null: it stands for several batches of a run that has ended; see Batch.
    sa.Column("compact", sa.BigInteger, nullable=True),
    _of_thread(),
    sqlite_with_rowid=False,
)
"""The log, one row a batch; *last* is the number of its last event, *body* their JSON array."""

jobs = sa.Table(
    "jobs",
    metadata,
    _key("partition"),
    _key("thread_id"),
    _key("id"),
    _text("kind"),
    sa.Column("run_id", _Key, nullable=False),
    _text("payload"),
    _number("attempt"),
    _real("ready", nullable=True),
    _of_thread(),
    _index("jobs_ready", "ready", where="ready IS NOT NULL"),
    sqlite_with_rowid=False,
)
"""
Side jobs: titles, labels (R-38), and ends that observers are to be told of (R-33a).

A label that came before its message waits here for it, as a row that is never *ready*.
"""

records = sa.Table(
    "records",
    metadata,
    _key("partition"),
    # Empty for a record of no thread, so there is no foreign key.
    _key("thread_id"),
    _key("plugin"),
    _key("key"),
    _text("value"),
    _real("updated_at"),
    sqlite_with_rowid=False,
)
"""Plugins' rows."""
