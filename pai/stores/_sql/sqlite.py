"""SQLite: one file, one writer thread, a few readers beside it."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import anyio
import anyio.to_thread

from pai.errors import StoreError
from pai.stores._sql import schema
from pai.stores._sql.caller import current_callers
from pai.stores._sql.guard import Guard
from pai.stores._sql.lock import FileLock
from pai.stores._sql.statement import Connection
from pai.stores._sql.writer import Held, Writer

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ("SqliteDatabase", "default_driver")

T = TypeVar("T")

_SAFE = (3, 51, 3)
"""The first version whose WAL cannot be corrupted by two that write at once."""

_EFFECTIVE = os.access in os.supports_effective_ids
_READERS = 4
_PATIENCE = 5.0
"""Seconds to wait for another process's lock."""


def default_driver() -> Any:
    """The module to talk to SQLite with: pysqlite3 brings a newer one than most Pythons have."""
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        import sqlite3

        return sqlite3
    return dbapi2


class SqliteDatabase:
    """
    One SQLite file.

    Args:
        path: The file; made if it is missing.
        full: Wait for the disk at each commit, to outlive a power cut (R-41).
        driver: ``pysqlite3.dbapi2`` or ``sqlite3``.
    """

    dialect = "sqlite"

    def __init__(self, path: str, *, full: bool = False, driver: Any = None) -> None:
        self._path = Path(path)
        self.url = f"sqlite:///{path}"
        self._full = full
        self._driver: Any = driver or default_driver()
        self._lock: FileLock | None = None
        self._guard: Guard | None = None
        self._writer: Writer | None = None
        self._idle: deque[Held] = deque()
        self._readers: anyio.CapacityLimiter | None = None

    async def open(self) -> None:
        if self._writer is not None:
            raise StoreError("the store is open already")
        connection = await anyio.to_thread.run_sync(self._prepare)
        self._readers = anyio.CapacityLimiter(_READERS)
        self._writer = Writer(connection, current_callers(), self._mapped)

    async def close(self) -> None:
        writer, readers, self._writer = self._writer, self._readers, None
        if writer is None or readers is None:
            return
        if self._guard is not None:
            self._guard.loosen()
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(writer.finish)
            for _ in range(_READERS):
                # Each reader that is at work gives its place back when it is done.
                await readers.acquire_on_behalf_of(object())
        while self._idle:
            self._idle.pop().close()
        if self._guard is not None:
            self._guard.close()
            self._guard = None
        if self._lock is not None:
            self._lock.release()
            self._lock = None

    async def tx(self, fn: Callable[..., T], *args: Any) -> T:
        if self._writer is None:
            raise _closed()
        return await self._writer.run(fn, args)

    async def read(self, fn: Callable[..., T], *args: Any) -> T:
        if self._writer is None:
            raise _closed()
        return await anyio.to_thread.run_sync(self._read, fn, args, limiter=self._readers)

    def _read(self, fn: Callable[..., T], args: tuple[Any, ...]) -> T:
        connection: Held | None = None
        try:
            connection = self._reader()
            connection.execute("BEGIN")
            try:
                return fn(connection, *args)
            finally:
                connection.execute("COMMIT")
        except BaseException as error:
            mapped = self._mapped(error)
            if mapped is error:
                raise
            raise mapped from error
        finally:
            if connection is not None:
                self._idle.append(connection)

    def _reader(self) -> Held:
        try:
            return self._idle.pop()
        except IndexError:
            # Readers neither write nor checkpoint: also an old SQLite may have them.
            return self._connect("query_only=1")

    def _connect(self, *pragmas: str) -> Held:
        connection = self._driver.connect(
            str(self._path),
            timeout=_PATIENCE,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        for pragma in ("foreign_keys=1", f"busy_timeout={_PATIENCE * 1000:.0f}", *pragmas):
            connection.execute(f"PRAGMA {pragma}")
        return cast("Held", connection)

    def _prepare(self) -> Held:
        """Take the lock, make or check the tables, and give the writer's connection."""
        path = self._path
        if not path.parent.is_dir():
            raise StoreError(f"{path}: there is no folder {path.parent}: make it first")
        if path.is_dir():
            raise StoreError(f"{path} is a folder: give the path of a file")
        fresh = not path.exists()
        # SQLite would open it, leave files beside it, and fail at the first write.
        if not fresh and not os.access(path, os.W_OK, effective_ids=_EFFECTIVE):
            raise StoreError(f"{path} cannot be written: check its permissions")
        lock = self._locked()
        connection: Held | None = None
        try:
            connection = self._connect(f"synchronous={'FULL' if self._full else 'NORMAL'}")
            self._make_tables(connection)
            self._guard = Guard(path)
        except BaseException as error:
            if connection is not None:
                connection.close()
            # Where it is locked, another process is at work here, with the same files.
            alone = "locked" not in str(error)
            lock.release(forget=alone)
            if fresh and alone:
                _forget_empty(path)
            mapped = self._mapped(error)
            if mapped is error:
                raise
            raise mapped from error
        self._lock = lock
        return connection

    # ------------------------------------------------------------------ upgrading

    @property
    def subject(self) -> str:
        return str(self._path)

    def found(self, connection: Connection) -> set[str]:
        found = connection.execute(
            "SELECT name FROM sqlite_master"
            " WHERE type = 'table' AND name NOT LIKE 'sqlite^_%' ESCAPE '^'"
        )
        return {row[0] for row in found.fetchall()}

    @contextlib.contextmanager
    def look(self) -> Iterator[Connection | None]:
        if not self._path.is_file():
            yield None
            return
        connection: Held | None = None
        try:
            connection = self._connect("query_only=1")
            yield connection
        except self._driver.Error as error:
            raise self._mapped(error) from error
        finally:
            if connection is not None:
                connection.close()

    @contextlib.contextmanager
    def alone(self) -> Iterator[sa.Connection]:
        import sqlalchemy as sa

        lock = self._locked(upgrade=True)
        raw: Held | None = None
        try:
            # Batches make a table anew under its name: its children must not go with the old one.
            raw = self._connect("foreign_keys=0")
            engine = sa.create_engine("sqlite://", creator=lambda: raw, poolclass=sa.StaticPool)
            with engine.connect() as connection:
                connection.exec_driver_sql("BEGIN EXCLUSIVE")
                yield connection
                if connection.exec_driver_sql("PRAGMA foreign_key_check").first() is not None:
                    raise StoreError(f"{self.subject}: a row lost its thread: nothing was changed")
                connection.commit()
        except (self._driver.Error, sa.exc.DBAPIError) as error:
            raise self._mapped(getattr(error, "orig", None) or error) from error
        finally:
            if raw is not None:
                raw.close()
            lock.release()

    # ------------------------------------------------------------------ the lock

    def _locked(self, *, upgrade: bool = False) -> FileLock:
        path = self._path
        old = self._driver.sqlite_version_info < _SAFE
        try:
            return FileLock(path.with_name(path.name + "-lock"), alone=old or upgrade)
        except BlockingIOError:
            if upgrade:
                raise StoreError(
                    f"{path} is open in another process: stop all that use it, and try again"
                ) from None
            reason = (
                f"and SQLite {self._driver.sqlite_version}"
                if old
                else "by one that is upgrading it (then try again), or whose older SQLite"
            )
            raise StoreError(
                f"{path} is open elsewhere, {reason} can corrupt a file that two have open:"
                " use one process, install pysqlite3 for all of them (SQLite 3.51.3 or newer), or"
                " take PostgreSQL"
            ) from None
        except OSError as error:
            raise StoreError(
                f"{path}: nothing can be written in {path.parent} ({error.strerror}): check the"
                " folder's permissions"
            ) from error

    def _make_tables(self, connection: Held) -> None:
        # Looked at before anything is changed: WAL mode is written into the file.
        made = self._check(connection)
        self._to_wal(connection)
        if made:
            return
        connection.execute("BEGIN IMMEDIATE")
        # Another process may have made them while this one waited.
        if not self._check(connection):
            schema.create(connection, self.dialect)
        connection.execute("COMMIT")

    def _check(self, connection: Held) -> bool:
        command = f"pai db upgrade {self.url}"
        return schema.check(connection, self.found(connection), self.subject, command)

    def _to_wal(self, connection: Held) -> None:
        patient_until = time.monotonic() + _PATIENCE
        while True:
            try:
                mode = connection.execute("PRAGMA journal_mode=WAL").fetchone()[0]
            except self._driver.OperationalError as error:
                # SQLite does not wait here by itself when another process is just doing the same.
                if "locked" not in str(error) or time.monotonic() > patient_until:
                    raise
                time.sleep(0.01)
            else:
                break
        if mode != "wal":
            raise StoreError(
                f"{self._path}: this file system has no shared memory for SQLite's WAL mode: put"
                " the file on a local disk"
            )
        # The files of this mode are there from the first read on: the guard needs them.
        self.found(connection)

    def _mapped(self, error: BaseException) -> BaseException:
        if isinstance(error, UnicodeEncodeError):
            return StoreError("a text is no valid Unicode (half a surrogate pair)")
        if not isinstance(error, self._driver.Error):
            return error
        text = str(error)
        for words, advice in _ADVICE.items():
            if words in text:
                return StoreError(f"{self._path}: {advice}")
        return StoreError(f"{self._path}: SQLite says: {text}")


_ADVICE = {
    "not a database": "the file is no SQLite database: give another path, or move it away",
    "readonly": "the file, or its folder, cannot be written: check its permissions",
    "unable to open": "the file cannot be opened: check its permissions and those of its folder",
    "locked": "another process kept the file locked for too long: try again",
    "full": "the disk is full: nothing was written",
}
"""What to say when SQLite says that."""


def _forget_empty(path: Path) -> None:
    with contextlib.suppress(OSError):
        if path.stat().st_size == 0:
            path.unlink()


def _closed() -> StoreError:
    return StoreError("the store is not open")
