"""PostgreSQL: psycopg's pool in worker threads, leases by the server's clock."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import anyio
import anyio.to_thread
import psycopg
from psycopg_pool import ConnectionPool

from pai.errors import StoreError
from pai.stores._sql import schema
from pai.stores._sql.statement import Connection

__all__ = ("PostgresDatabase",)

T = TypeVar("T")

_CONNECTIONS = 8
_PATIENCE = 10.0
"""Seconds to wait for the server, or for a connection that works."""

FROZEN = 5.0
"""
Seconds after which the server ends the transaction of a worker that was stopped in the middle of
it: it holds the lock of a thread that others shall take over (R-4). None of ours waits within one.
"""

_READ = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
"""All statements of a read see the same moment (R-25)."""

_MAKING = 0x7061_6900
"""The advisory lock of those who make the tables."""


class PostgresDatabase:
    """
    One PostgreSQL database.

    Args:
        url: As libpq reads it.
    """

    dialect = "postgresql"

    def __init__(self, url: str) -> None:
        self.url = url
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None
        self._limiter: anyio.CapacityLimiter | None = None

    async def open(self) -> None:
        if self._pool is not None:
            raise StoreError("the store is open already")
        self._limiter = anyio.CapacityLimiter(_CONNECTIONS)
        self._pool = await anyio.to_thread.run_sync(self._prepare)

    async def close(self) -> None:
        pool, limiter, self._pool = self._pool, self._limiter, None
        if pool is None or limiter is None:
            return
        with anyio.CancelScope(shield=True):
            for _ in range(_CONNECTIONS):
                # Each that is at work gives its place back when it is done.
                await limiter.acquire_on_behalf_of(object())
            await anyio.to_thread.run_sync(pool.close)

    async def tx(self, fn: Callable[..., T], *args: Any) -> T:
        return await self._run("BEGIN", fn, args)

    async def read(self, fn: Callable[..., T], *args: Any) -> T:
        return await self._run(_READ, fn, args)

    async def _run(self, begin: str, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
        pool = self._pool
        if pool is None:
            raise StoreError("the store is not open")
        return await anyio.to_thread.run_sync(
            _transaction, pool, begin, fn, args, limiter=self._limiter
        )

    def _prepare(self) -> ConnectionPool[psycopg.Connection[Any]]:
        options = {"autocommit": True, "connect_timeout": int(_PATIENCE)}
        try:
            # The pool's own first connection would only tell that time is up, not why.
            with psycopg.connect(self.url, **options) as connection:  # type: ignore[arg-type]
                _make_tables(cast("Connection", connection))
        except psycopg.Error as error:
            raise _mapped(error) from error
        pool: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
            self.url,
            kwargs=options,
            configure=_configure,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_PATIENCE,
            name="pai",
            open=False,
        )
        pool.open()
        return pool


def _configure(connection: psycopg.Connection[Any]) -> None:
    connection.execute(f"SET idle_in_transaction_session_timeout = {FROZEN * 1000:.0f}")


def _make_tables(connection: Connection) -> None:
    if schema.check(connection, _tables(connection), "the database"):
        return
    connection.execute("BEGIN")
    connection.execute(f"SELECT pg_advisory_xact_lock({_MAKING})")
    # Another process may have made them while this one waited.
    if not schema.check(connection, _tables(connection), "the database"):
        schema.create(connection, "postgresql")
    connection.execute("COMMIT")


def _tables(connection: Connection) -> set[str]:
    found = connection.execute(
        "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm')"
        " AND c.relnamespace = current_schema()::regnamespace"
    )
    # Others may keep their tables here, as long as none has a name of ours.
    return {row[0] for row in found.fetchall()} & schema.OURS


def _transaction(
    pool: ConnectionPool[psycopg.Connection[Any]],
    begin: str,
    fn: Callable[..., T],
    args: tuple[Any, ...],
) -> T:
    try:
        for left in range(_CONNECTIONS, -1, -1):
            with pool.connection() as pooled:
                connection = cast("Connection", pooled)
                try:
                    connection.execute(begin)
                except psycopg.OperationalError:
                    # It was lost while it lay in the pool, as was every one when a server starts
                    # anew; nothing has been done, so the next may do it.
                    if left and pooled.closed:
                        continue
                    raise
                try:
                    value = fn(connection, *args)
                except BaseException:
                    if not pooled.closed:
                        connection.execute("ROLLBACK")
                    raise
                connection.execute("COMMIT")
                return value
    except (psycopg.Error, UnicodeEncodeError) as error:
        raise _mapped(error) from error
    raise AssertionError("the last attempt returns or raises")


def _mapped(error: Exception) -> StoreError:
    if isinstance(error, UnicodeEncodeError):
        return StoreError("a text is no valid Unicode (half a surrogate pair)")
    state = getattr(error, "sqlstate", None)
    if state is None:
        # No answer of a server: what is wrong is the address, the network or the server.
        return StoreError(f"PostgreSQL cannot be reached: {error}")
    # The server's details may quote a row, its first line does not.
    text = str(error).partition("\n")[0]
    return StoreError(f"PostgreSQL says: {text} ({state})")
