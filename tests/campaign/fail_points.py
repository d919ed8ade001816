"""
Named places around every transaction, and between its statements, at which a process may be struck.

``commit: before`` is reached when a worker asks for the transaction, ``commit: statement 2`` behind
its second statement, ``commit: written`` before it is committed, ``commit: after`` when the worker
learns that it was. The names are those of the store's functions.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import anyio

from pai.errors import LeaseLost
from pai.ports import Store
from pai.stores import open_store
from pai.stores._sql import SqlStore
from pai.stores._sql.store import Database

__all__ = ("FailPoints", "Strike", "kill", "open_struck", "stop")


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


class Strike:
    """
    Strikes once, at the given passing of a place.

    Args:
        place: Its name; what it begins with is enough, and ``""`` is any place.
        passing: At which passing, from 1.
        strike: What is done then, given the place's full name.
    """

    def __init__(self, place: str, passing: int, strike: Callable[[str], None]) -> None:
        self._place = place
        self._left = passing
        self._strike = strike

    def __call__(self, place: str) -> None:
        if place.startswith(self._place):
            self._left -= 1
            if self._left == 0:
                self._strike(place)


class FailPoints:
    """
    A database whose transactions tell where they are.

    Args:
        database: The real one.
        reached: Told the name of each place; from the event loop, or from a thread of the database.
        alone: Before and after a transaction, wait until no other one is under way.

    Attributes:
        refused: Transactions that were refused since the lease was lost.
        under_way: How many are asked for and not answered.
    """

    def __init__(
        self, database: Database, reached: Callable[[str], None], *, alone: bool = False
    ) -> None:
        self._database = database
        self._reached = reached
        self._alone = alone
        self.dialect = database.dialect
        self.url = database.url
        self.open = database.open
        self.close = database.close
        self.read = database.read
        self.refused: list[str] = []
        self.under_way = 0

    async def tx(self, fn: Callable[..., Any], *args: Any) -> Any:
        name, reached = fn.__name__, self._reached

        def told(connection: Any, *args: Any) -> Any:
            value = fn(_Connection(connection, name, reached), *args)
            reached(f"{name}: written")
            return value

        if self._alone:
            await self.quiet()
        reached(f"{name}: before")
        self.under_way += 1
        try:
            value = await self._database.tx(told, *args)
        except LeaseLost:
            self.refused.append(name)
            raise
        finally:
            self.under_way -= 1
        if self._alone:
            await self.quiet()
        reached(f"{name}: after")
        return value

    async def quiet(self) -> None:
        """Wait until no transaction is under way."""
        while self.under_way:  # noqa: ASYNC110  # nobody tells
            await anyio.sleep(0.001)


class _Connection:
    def __init__(self, connection: Any, name: str, reached: Callable[[str], None]) -> None:
        self._connection = connection
        self._name = name
        self._reached = reached
        self._statements = 0

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        cursor = self._connection.execute(sql, parameters)
        self._statements += 1
        self._reached(f"{self._name}: statement {self._statements}")
        return cursor


def open_struck(
    url: str, reached: Callable[[str], None], *, alone: bool = False
) -> tuple[Store, FailPoints]:
    """The store of a URL, and what stands between it and its database."""
    store = open_store(url)
    assert isinstance(store, SqlStore)
    points = FailPoints(store._database, reached, alone=alone)
    return SqlStore(points), points
