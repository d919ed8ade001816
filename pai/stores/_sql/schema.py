"""Making the tables in an empty database, and knowing one of ours from one of others."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from pai.errors import MigrationNeeded, StoreError
from pai.stores._sql import tables
from pai.stores._sql.statement import Connection
from pai.stores._sql.tables import metadata

__all__ = ("OURS", "check", "create", "newer", "version")

_APP = "pai"

OURS = frozenset(metadata.tables)
"""The names of our tables."""

_FIRST = frozenset({"actions", "events", "jobs", "messages", "meta", "records", "runs", "threads"})
"""Those of version 1: every later one has them too."""


def version(connection: Connection, found: set[str], subject: str) -> int | None:
    """
    The version of a database of ours.

    Args:
        connection: Where to look.
        found: Its tables, as far as they could be ours.
        subject: What to call it in an error.

    Returns:
        The version; ``None`` for an empty database.

    Raises:
        StoreError: It belongs to something else.
    """
    if not found:
        return None
    if not found >= _FIRST:
        raise _foreign(subject)
    row = connection.execute("SELECT app, version FROM meta").fetchone()
    if row is None or row[0] != _APP:
        raise _foreign(subject)
    known: int = row[1]
    return known


def check(connection: Connection, found: set[str], subject: str, command: str) -> bool:
    """
    Look whether the database is ours, and of the present version.

    Args:
        connection: Where to look.
        found: Its tables, as far as they could be ours.
        subject: What to call it in an error.
        command: What upgrades it.

    Returns:
        Whether the tables are there; ``False`` for an empty database.

    Raises:
        StoreError: It belongs to something else, or to a newer version.
        MigrationNeeded: It is of an older version.
    """
    known = version(connection, found, subject)
    if known is None:
        return False
    if known < tables.VERSION:
        raise MigrationNeeded(
            f"{subject} has version {known} of the tables, and {tables.VERSION} is needed: make a backup"
            f" and run '{command}'"
        )
    if known > tables.VERSION:
        raise newer(subject, known)
    if not found >= OURS:
        raise _foreign(subject)
    return True


def newer(subject: str, known: int) -> StoreError:
    return StoreError(
        f"{subject} has version {known} of the tables, and this pai knows {tables.VERSION}:"
        " install a newer pai"
    )


def _foreign(subject: str) -> StoreError:
    return StoreError(
        f"{subject} holds tables of something else, and nothing was changed in it: give pai a"
        " database of its own"
    )


def create(connection: Connection, dialect: str) -> None:
    """Make the tables; the caller has begun a transaction in which there are none."""
    made: sa.Dialect
    made = sqlite.dialect() if dialect == "sqlite" else postgresql.dialect()  # type: ignore[no-untyped-call]
    for table in metadata.sorted_tables:
        connection.execute(str(CreateTable(table).compile(dialect=made)))
        for index in sorted(table.indexes, key=lambda index: str(index.name)):
            connection.execute(str(CreateIndex(index).compile(dialect=made)))
    connection.execute(f"INSERT INTO meta (app, version) VALUES ('{_APP}', {tables.VERSION})")  # noqa: S608  # two constants
