"""The stores under test."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from pai.ports import Store
from pai.stores import MemoryStore, open_store

Make = Callable[[], Store]


def sqlite_store(path: Path, driver: str) -> Store:
    from pai.stores._sql import SqlStore
    from pai.stores._sql.sqlite import SqliteDatabase

    if driver == "stdlib":
        return SqlStore(SqliteDatabase(str(path), driver=sqlite3))
    dbapi2 = pytest.importorskip("pysqlite3.dbapi2")
    return SqlStore(SqliteDatabase(str(path), driver=dbapi2))


@pytest.fixture(params=["memory", "sqlite-pysqlite3", "sqlite-stdlib", "postgresql"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Make:
    """Make a store that is not open, always over the same data."""
    kind = request.param
    if kind == "memory":
        return MemoryStore
    if kind == "postgresql":
        url = request.getfixturevalue("postgres")
        return lambda: open_store(url)
    driver = kind.removeprefix("sqlite-")
    return lambda: sqlite_store(tmp_path / "pai.db", driver)
