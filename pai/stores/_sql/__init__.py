"""The store in a database: one set of statements for SQLite and PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from pai.errors import DefinitionError, Fault
from pai.stores._sql.store import Database, SqlStore

if TYPE_CHECKING:
    from pai.stores._sql.postgresql import PostgresDatabase
    from pai.stores._sql.sqlite import SqliteDatabase

__all__ = ("Database", "SqlStore", "database_of", "from_url")


def from_url(url: str) -> SqlStore:
    """
    Make the store for ``sqlite:///path`` or ``postgresql://...``; it is not open yet.

    Raises:
        DefinitionError: The URL is not right, or the driver is not installed.
    """
    return SqlStore(database_of(url))


def database_of(url: str) -> SqliteDatabase | PostgresDatabase:
    """The database of such a URL; nothing is touched yet. Errors are those of :func:`from_url`."""
    return _sqlite(url) if url.startswith("sqlite:") else _postgresql(url)


def _refused(name: str, message: str) -> DefinitionError:
    return DefinitionError([Fault(f"store '{name}'", message)], subject="store")


def _sqlite(url: str) -> SqliteDatabase:
    from pai.stores._sql.sqlite import SqliteDatabase

    address, _, query = url.partition("?")
    if not address.startswith("sqlite:///"):
        raise _refused("sqlite", "write 'sqlite:///file.db', or 'sqlite:////folder/file.db'")
    path = address.removeprefix("sqlite:///")
    if path in ("", ":memory:"):
        raise _refused("sqlite", "a database in memory is the store 'memory:'; this one has a file")
    options = dict(parse_qsl(query, keep_blank_values=True))
    synchronous = options.pop("synchronous", "normal").lower()
    if options:
        unknown = ", ".join(sorted(options))
        raise _refused("sqlite", f"unknown option {unknown}; known: synchronous")
    if synchronous not in ("full", "normal"):
        raise _refused("sqlite", "synchronous is 'normal' or 'full'")
    return SqliteDatabase(path, full=synchronous == "full")


def _postgresql(url: str) -> PostgresDatabase:
    try:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        from pai.stores._sql.postgresql import PostgresDatabase
    except ImportError:
        message = "its driver is missing: install pai-core[postgres]"
        raise _refused("postgresql", message) from None
    try:
        conninfo_to_dict(url)
    except ProgrammingError:
        # What the parser says may quote the password.
        message = "the URL cannot be read: write 'postgresql://user:password@host:5432/database'"
        raise _refused("postgresql", message) from None
    return PostgresDatabase(url)
