"""PostgreSQL: psycopg's pool in worker threads, leases by the server's clock."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.to_thread
import psycopg
from psycopg_pool import ConnectionPool

from pai.errors import StoreError
from pai.stores._sql import schema, tables
from pai.stores._sql.statement import Connection

if TYPE_CHECKING:
    import sqlalchemy as sa

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

_OPEN = 0x7061_6901
"""The advisory lock that each connection of an open store shares, and an upgrade has alone."""


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
        pool: ConnectionPool[psycopg.Connection[Any]] = ConnectionPool(
            self.url,
            kwargs=_OPTIONS,
            min_size=1,
            max_size=_CONNECTIONS,
            timeout=_PATIENCE,
            name="pai",
            configure=_enter,
            open=False,
        )
        try:
            # The pool's own first connection would only tell that time is up, not why.
            with psycopg.connect(self.url, **_OPTIONS) as connection:
                held = cast("Connection", connection)
                _share(held)
                self._make_tables(held)
                # It holds the lock until another one does.
                pool.open(wait=True, timeout=_PATIENCE)
        except BaseException as error:
            pool.close()
            if isinstance(error, psycopg.Error):
                raise _mapped(error) from error
            raise
        return pool

    def _make_tables(self, connection: Connection) -> None:
        if self._check(connection):
            return
        connection.execute("BEGIN")
        connection.execute(f"SELECT pg_advisory_xact_lock({_MAKING})")
        # Another process may have made them while this one waited.
        if not self._check(connection):
            schema.create(connection, "postgresql")
        connection.execute("COMMIT")

    def _check(self, connection: Connection) -> bool:
        # The URL is not repeated: it may hold a password.
        command = "pai db upgrade URL"
        return schema.check(connection, self.found(connection), self.subject, command)

    # ------------------------------------------------------------------ upgrading

    @property
    def subject(self) -> str:
        return "the database"

    def found(self, connection: Connection) -> set[str]:
        found = connection.execute(
            "SELECT c.relname FROM pg_catalog.pg_class c WHERE c.relkind IN ('r', 'p', 'v', 'm')"
            " AND c.relnamespace = current_schema()::regnamespace"
        )
        # Others may keep their tables here, as long as none has a name of ours.
        return {row[0] for row in found.fetchall()} & schema.OURS

    @contextlib.contextmanager
    def look(self) -> Iterator[Connection | None]:
        try:
            with psycopg.connect(self.url, **_OPTIONS) as connection:
                yield cast("Connection", connection)
        except psycopg.Error as error:
            raise _mapped(error) from error

    @contextlib.contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        import sqlalchemy as sa

        engine = sa.create_engine(
            "postgresql+psycopg://",
            creator=lambda: psycopg.connect(self.url, connect_timeout=int(_PATIENCE)),
            poolclass=sa.NullPool,
        )
        try:
            with engine.connect() as connection:
                lock = f"SELECT pg_try_advisory_xact_lock({_OPEN})"
                if not connection.exec_driver_sql(lock).scalar():
                    raise _open_elsewhere(connection)
                yield connection
                connection.commit()
        except sa.exc.DBAPIError as error:
            cause = error.orig if isinstance(error.orig, Exception) else error
            raise _mapped(cause) from error


_OPTIONS: dict[str, Any] = {"autocommit": True, "connect_timeout": int(_PATIENCE)}


def _share(connection: Connection) -> None:
    """Say that the database is open here; the lock ends with the connection."""
    if not connection.execute(f"SELECT pg_try_advisory_lock_shared({_OPEN})").fetchone()[0]:
        raise StoreError("the database is being upgraded: try again when that is done")


def _enter(connection: psycopg.Connection[Any]) -> None:
    """Prepare a connection of the pool; one that was lost may come back to other tables."""
    held = cast("Connection", connection)
    held.execute(f"SET idle_in_transaction_session_timeout = {FROZEN * 1000:.0f}")
    _share(held)
    if held.execute("SELECT version FROM meta").fetchone()[0] != tables.VERSION:
        raise StoreError("the database has been upgraded: restart with the pai that did it")


def _open_elsewhere(connection: sa.Connection) -> StoreError:
    rows = connection.exec_driver_sql(
        "SELECT DISTINCT a.pid, coalesce(host(a.client_addr), 'a local socket')"
        " FROM pg_catalog.pg_locks l JOIN pg_catalog.pg_stat_activity a USING (pid)"
        " WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid::bigint = %s ORDER BY 1",
        (_OPEN,),
    )
    where = ", ".join(f"backend {pid} from {address}" for pid, address in rows)
    return StoreError(
        f"the database is open in another process ({where}): stop all that use it, and try again"
    )


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
