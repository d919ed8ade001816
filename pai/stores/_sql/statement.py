"""A statement, built by SQLAlchemy once and run on the driver's own connection ever after."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import Any, Protocol

import sqlalchemy as sa

__all__ = ("Connection", "Cursor", "Statement")


class Cursor(Protocol):
    """What both drivers' cursors have."""

    @property
    def rowcount(self) -> int: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...


class Connection(Protocol):
    """What both drivers' connections have: a statement can be run on them without a cursor."""

    def execute(self, sql: str, parameters: Any = ..., /) -> Cursor: ...


class Statement:
    """
    A Core statement as text in one dialect; call it with a connection and parameters by name.

    All its parameters are bound by the caller: constants stand in the text.
    """

    __slots__ = ("_bind", "sql")

    def __init__(self, statement: sa.ClauseElement, dialect: sa.Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        self.sql = str(compiled)
        # A dialect with places instead of names tells the order in which it wants the values.
        names: list[str] | None = getattr(compiled, "positiontup", None)
        self._bind: Callable[[dict[str, object]], object] | None
        if names is None:
            self._bind = None
        elif len(names) > 1:
            self._bind = itemgetter(*names)
        else:
            self._bind = lambda given: [given[name] for name in names]

    def __call__(self, connection: Connection, /, **given: object) -> Cursor:
        bind = self._bind
        return connection.execute(self.sql, given if bind is None else bind(given))
