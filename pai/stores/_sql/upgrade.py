"""
Bringing an older database to the present tables: one transaction, and nobody else meanwhile.

The version stands in our own table ``meta``, which the stores read at start, so alembic gives the
operations alone: its own version table would be a second truth.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

from pai.errors import StoreError
from pai.stores._sql import schema, tables
from pai.stores._sql.statement import Connection

if TYPE_CHECKING:
    import sqlalchemy as sa

__all__ = ("Upgradable", "Versions", "upgrade_tables", "versions")


class Versions(NamedTuple):
    """
    Versions of the tables.

    Args:
        found: That of the database; ``None``: it is empty, or is not there yet.
        needed: That of this pai.
    """

    found: int | None
    needed: int


class Upgradable(Protocol):
    """A database that can be had alone."""

    def look(self) -> AbstractContextManager[Connection | None]:
        """A connection to look with; ``None``: there is no database."""

    def alone(self) -> AbstractContextManager[sa.Connection]:
        """
        A transaction beside which nobody has the database open; it commits at the end.

        Raises:
            StoreError: Another process has it open.
        """

    def found(self, connection: Connection) -> set[str]:
        """The names of its tables, as far as they could be ours."""

    @property
    def subject(self) -> str:
        """What to call it in an error."""


def versions(database: Upgradable) -> Versions:
    """
    Look which version the database has; nothing is changed.

    Raises:
        StoreError: It can't be reached, or is no database of ours.
    """
    with database.look() as connection:
        found = None
        if connection is not None:
            found = schema.version(connection, database.found(connection), database.subject)
        return Versions(found, tables.VERSION)


def upgrade_tables(database: Upgradable) -> Versions:
    """
    Bring the database to the present version; all of it, or nothing.

    Returns:
        The versions it had and has now.

    Raises:
        StoreError: It is no database of ours, or of a newer version, or another process has it
            open.
    """
    before = versions(database)
    if before.found is None:
        raise StoreError(f"{database.subject} is empty: pai makes its tables when it starts")
    if before.found > before.needed:
        raise schema.newer(database.subject, before.found)
    if before.found == before.needed:
        return before
    # Only here: it costs most of a second.
    from alembic.migration import MigrationContext
    from alembic.operations import Operations

    from pai.stores._sql.migrations import STEPS

    with database.alone() as connection:
        # Another process may have done it meanwhile.
        raw = cast("Connection", connection.connection.driver_connection)
        found = schema.version(raw, database.found(raw), database.subject)
        operations = Operations(MigrationContext.configure(connection))
        for version in range((found or 0) + 1, tables.VERSION + 1):
            STEPS[version](operations)
        connection.exec_driver_sql(f"UPDATE meta SET version = {tables.VERSION}")  # noqa: S608  # a constant
    return Versions(found, tables.VERSION)
