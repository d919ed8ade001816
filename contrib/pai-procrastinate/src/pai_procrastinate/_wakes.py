"""A wake: one job in procrastinate's table, written by the transaction that queues a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, cast

import psycopg
from procrastinate import App, SyncPsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.schema import SchemaManager

from pai.errors import StoreError
from pai.protocol import ThreadKey

__all__ = ("TASK", "Wakes", "make_tables")

TASK = "pai.drain"
"""The name of the task: explicit, so that it is the same whichever module imports it."""

_MAKING = 0x7061_6902
"""The advisory lock of those who make procrastinate's tables."""


def make_tables(tx: object) -> None:
    """Make procrastinate's tables where there are none."""
    connection = cast("psycopg.Connection[Any]", tx)
    if not _missing(connection):
        return
    connection.execute(f"SELECT pg_advisory_xact_lock({_MAKING})")
    # Another process may have made them while this one waited.
    if _missing(connection):
        connection.execute(SchemaManager.get_schema())


def _missing(connection: psycopg.Connection[Any]) -> bool:
    # Not to_regclass(): it may answer from before the wait for the lock.
    found = connection.execute(
        "SELECT 1 FROM pg_catalog.pg_class"
        " WHERE relname = 'procrastinate_jobs' AND pg_catalog.pg_table_is_visible(oid)"
    )
    return found.fetchone() is None


def lock_of(key: ThreadKey) -> str:
    """The lock of a thread's jobs: two threads never have the same."""
    return json.dumps(key, ensure_ascii=False, separators=(",", ":"))


class Wakes:
    """
    Writes wakes on connections that it is handed.

    Args:
        queue: procrastinate's name for the queue.
    """

    def __init__(self, queue: str) -> None:
        # It never opens a connection of its own.
        self._app = App(connector=SyncPsycopgConnector())
        self._queue = queue
        self._channel = f"procrastinate_queue_v1#{queue}"

    def put(self, tx: object, key: ThreadKey) -> None:
        """
        Wake the thread's worker when the transaction commits.

        A job that waits for this thread already is enough: many of one lock would each begin only
        when the workers next look. It is held until the commit, so that no worker takes it before
        there is a run to find; one that passed it over meanwhile is told to look again.
        """
        connection = cast("psycopg.Connection[Any]", tx)
        waiting = connection.execute(
            "SELECT id FROM procrastinate_jobs WHERE lock = %s AND status = 'todo'"
            " AND queue_name = %s AND task_name = %s LIMIT 1 FOR SHARE SKIP LOCKED",
            (lock_of(key), self._queue, TASK),
        ).fetchone()
        if waiting is None:
            self._defer(connection, key)
        else:
            told = json.dumps({"type": "job_inserted", "job_id": waiting[0]})
            connection.execute("SELECT pg_notify(%s, %s)", (self._channel, told))

    def put_all(self, tx: object, keys: Sequence[ThreadKey]) -> None:
        """Wake the workers of threads that have waited for a while."""
        connection = cast("psycopg.Connection[Any]", tx)
        by_lock = {lock_of(key): key for key in keys}
        waiting = connection.execute(
            "SELECT lock FROM procrastinate_jobs WHERE lock = ANY(%s) AND status = 'todo'"
            " AND queue_name = %s AND task_name = %s",
            (list(by_lock), self._queue, TASK),
        ).fetchall()
        for lock in by_lock.keys() - {row[0] for row in waiting}:
            self._defer(connection, by_lock[lock])

    def _defer(self, connection: psycopg.Connection[Any], key: ThreadKey) -> None:
        try:
            self._app.configure_task(
                TASK, queue=self._queue, lock=lock_of(key), connection=connection
            ).defer(partition=key.partition, thread_id=key.thread_id)
        except ConnectorException as error:
            cause = str(error.__cause__).partition("\n")[0]
            raise StoreError(f"procrastinate cannot write a wake: {cause}") from error
