"""Making the tables in an empty database, and knowing one of ours from one of others."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from pai.errors import MigrationNeeded, StoreError
from pai.stores._sql.statement import Connection
from pai.stores._sql.tables import VERSION, metadata

__all__ = ("OURS", "check", "create")

_APP = "pai"

OURS = frozenset(metadata.tables)
"""The names of our tables."""


def check(connection: Connection, found: set[str], subject: str) -> bool:
    """
    Look whether the database is ours.

    Args:
        connection: Where to look.
        found: Its tables, as far as they could be ours.
        subject: What to call it in an error.

    Returns:
        Whether the tables are there; ``False`` for an empty database.

    Raises:
        StoreError: It belongs to something else, or to a newer version.
        MigrationNeeded: It is of an older version.
    """
    if not found:
        return False
    if not found >= OURS:
        raise _foreign(subject)
    row = connection.execute("SELECT app, version FROM meta").fetchone()
    if row is None or row[0] != _APP:
        raise _foreign(subject)
    version = row[1]
    if version < VERSION:
        raise MigrationNeeded(
            f"{subject} has version {version} of the tables, and {VERSION} is needed:"
            " run 'pai db upgrade'"
        )
    if version > VERSION:
        raise StoreError(
            f"{subject} has version {version} of the tables, and this pai knows {VERSION}:"
            " install a newer pai"
        )
    return True


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
    connection.execute(f"INSERT INTO meta (app, version) VALUES ('{_APP}', {VERSION})")  # noqa: S608  # two constants
