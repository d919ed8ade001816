"""Which version a database's tables have, and bringing an older one to the present."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pai.errors import DefinitionError, Fault

if TYPE_CHECKING:
    from pai.stores._sql.upgrade import Upgradable, Versions

__all__ = ("store_versions", "upgrade_store")


def store_versions(url: str) -> Versions:
    """
    The version of the database's tables (``None``: it is empty), and the one this pai needs.

    Args:
        url: ``"sqlite:///path"`` or ``"postgresql://..."``.

    Raises:
        DefinitionError: It is the URL of no database of ours, or the driver is missing.
        StoreError: It can't be reached, or is no database of ours.
    """
    from pai.stores._sql.upgrade import versions

    return versions(_database(url))


def upgrade_store(url: str) -> Versions:
    """
    Bring the database's tables to the present version: all of it, or nothing.

    Args:
        url: ``"sqlite:///path"`` or ``"postgresql://..."``.

    Returns:
        The version it had, and the one it has now.

    Raises:
        DefinitionError: It is the URL of no database of ours, or the driver is missing.
        StoreError: It can't be reached, is empty, no database of ours, or of a newer version, or
            another process has it open.
    """
    from pai.stores._sql.upgrade import upgrade_tables

    return upgrade_tables(_database(url))


def _database(url: str) -> Upgradable:
    if not url.startswith(("sqlite:", "postgresql:")):
        # The text may be a password, or a path: it is not repeated.
        message = "not a database of pai: write 'sqlite:///path' or 'postgresql://…'"
        raise DefinitionError([Fault("url", message)], subject="db")
    from pai.stores._sql import database_of

    return database_of(url)
