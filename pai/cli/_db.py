"""``pai db``: which version a database has, and bringing an older one to the present."""

from __future__ import annotations

from pai.cli._config import store_url
from pai.stores import store_versions, upgrade_store

__all__ = ("print_current", "print_upgrade")


def print_current(url: str | None) -> int:
    """Say which version the database has; the exit code is 1 if it has to be upgraded."""
    found, needed = store_versions(store_url(url))
    if found is None:
        print(f"empty: pai makes the tables, of version {needed}, when it starts")
        return 0
    if found == needed:
        print(f"version {found}: that is the one this pai needs")
        return 0
    command = "pai db upgrade" if found < needed else "a newer pai"
    print(f"version {found}, and this pai needs {needed}: {command} brings them together")
    return 1


def print_upgrade(url: str | None) -> None:
    """Bring the database to the present version, and say so."""
    found, needed = upgrade_store(store_url(url))
    if found == needed:
        print(f"version {found}: nothing to do")
    else:
        print(f"upgraded from version {found} to {needed}")
