"""A batch on its way into the log."""

from __future__ import annotations

from typing import NamedTuple

from pai.protocol import Event, ThreadKey
from pai.stores._sql.queries import Queries
from pai.stores._sql.statement import Connection

__all__ = ("Log", "joined", "write_log")


class Log(NamedTuple):
    """Events on their way into the log."""

    events: list[Event]
    body: str

    @property
    def size(self) -> int:
        return len(self.events)


def write_log(
    c: Connection, q: Queries, key: ThreadKey, run_id: str, last: int, size: int, body: str
) -> None:
    """Add a row, if there is anything to tell."""
    if size:
        q.add_events(
            c,
            partition=key.partition,
            thread_id=key.thread_id,
            last=last,
            size=size,
            run_id=run_id,
            body=body,
        )


def joined(first: str, second: str) -> str:
    """Two bodies as one."""
    return f"{first[:-1]},{second[1:]}"
