"""
What a turn costs as its thread grows: ``python tests/bench/growth.py [TURNS]``.

Each turn is a run of two model calls with a tool call between, in SQLite. Printed are its
transactions, statements that write, rows read outside of the history, and the rows of the history;
then what reading, repairing and encoding the history costs a stored message, and the bytes on disk.
"""

from __future__ import annotations

import contextlib
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs

from pai import create_pai, define_agent, tool
from pai.loop import repaired
from pai.models._openai.chat_messages import encode_message
from pai.models._openai.history import encoded_history
from pai.protocol import ThreadKey, message_view
from pai.schema import dump_json
from pai.stores import open_store
from pai.stores._sql import SqlStore, reads
from pai.stores._sql.store import Database
from pai.testing import Call, ScriptedModel

KEY = ThreadKey("default", "t")
TEXT = "Some words of an answer that is neither long nor short. " * 4


@attrs.define
class Counts:
    """What one turn asked of the database."""

    transactions: int = 0
    reads: int = 0
    writes: int = 0
    rows: int = 0
    history: int = 0


class Counted:
    """A database that counts what goes through it."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.dialect = database.dialect
        self.url = database.url
        self.open = database.open
        self.close = database.close
        self.counts = Counts()

    async def tx(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.counts.transactions += 1
        return await self._database.tx(self._counted(fn), *args)

    async def read(self, fn: Callable[..., Any], *args: Any) -> Any:
        self.counts.reads += 1
        return await self._database.read(self._counted(fn), *args)

    def _counted(self, fn: Callable[..., Any]) -> Callable[..., Any]:
        def counted(connection: Any, *args: Any) -> Any:
            return fn(_Connection(connection, self.counts), *args)

        return counted


class _Connection:
    def __init__(self, connection: Any, counts: Counts) -> None:
        self._connection = connection
        self._counts = counts

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        if not sql.lstrip().upper().startswith("SELECT"):
            self._counts.writes += 1
        # What a history is made of grows with the thread, and nothing else may.
        is_history = "FROM messages" in sql or "FROM actions" in sql
        return _Cursor(self._connection.execute(sql, parameters), self._counts, is_history)


class _Cursor:
    def __init__(self, cursor: Any, counts: Counts, is_history: bool) -> None:
        self._cursor = cursor
        self._counts = counts
        self._is_history = is_history

    @property
    def rowcount(self) -> int:
        count: int = self._cursor.rowcount
        return count

    def _seen(self, count: int) -> None:
        if self._is_history:
            self._counts.history += count
        else:
            self._counts.rows += count

    def fetchone(self) -> Any:
        row = self._cursor.fetchone()
        self._seen(row is not None)
        return row

    def fetchall(self) -> list[Any]:
        rows: list[Any] = self._cursor.fetchall()
        self._seen(len(rows))
        return rows


def _turn(request: Any) -> Any:
    return TEXT if request.messages[-1].role == "assistant" else ["I add.", Call("add", {"a": 1})]


@tool(inline=True)
def add(ctx: Any, a: int) -> int:
    """Add one."""
    return a + 1


async def grow(url: str, turns: int) -> list[Counts]:
    """Run so many turns of one thread, and count each."""
    store = open_store(url)
    assert isinstance(store, SqlStore)
    counted = Counted(store._database)
    model = ScriptedModel(_turn, chunk=20)
    agent = define_agent(name="a", model=model, tools={"add": add})
    found = []
    async with create_pai(agents={"a": agent}, store=SqlStore(counted), plugins=()) as app:
        thread = app.thread("a", thread_id=KEY.thread_id)
        for _ in range(turns):
            counted.counts = Counts()
            run = await thread.send("Please add one to this, and tell me.")
            async for event in run.events():
                if event.type == "run-finished":
                    assert event.status == "completed", event
            # An end that was told is taken off the list a moment later.
            await app._core.settled()
            await anyio.lowlevel.checkpoint()
            found.append(counted.counts)
            model.requests.clear()
    return found


async def history_cost(url: str) -> tuple[int, float, float, float]:
    """Messages, and the µs a message that reading, repairing and encoding them takes; CPU time."""
    store = open_store(url)
    assert isinstance(store, SqlStore)
    await store.open()
    best = [9e9, 9e9, 9e9]
    count = 0
    for _ in range(9):
        clock = time.process_time
        start = clock()
        # As a claim reads it.
        found = await store.read(reads.history, store._q, KEY, 10**9)
        read = clock()
        messages = repaired(found)
        mended = clock()
        encoded_history(messages, "chat", lambda message: encode_message(message, reasoning=False))
        end = clock()
        count = len(messages)
        best = [
            min(*pair)
            for pair in zip(best, (read - start, mended - read, end - mended), strict=True)
        ]
    await store.close()
    read_us, mended_us, encoded_us = (value / count * 1e6 for value in best)
    return count, read_us, mended_us, encoded_us


async def shorten(url: str) -> None:
    """Make the log short, as a runtime does some minutes after the end of a run."""
    store = open_store(url)
    await store.open()
    await store.compact(KEY, datetime.now(UTC))
    await store.close()


async def canonical(url: str) -> int:
    """Bytes of the messages' canonical JSON."""
    store = open_store(url)
    await store.open()
    snapshot = await store.snapshot(KEY, "a")
    assert snapshot is not None
    await store.close()
    views = [message_view(message) for message in snapshot.messages]
    return sum([len(dump_json(view.codec.to_json(view)).encode()) for view in views])


def stored(path: Path) -> int:
    """Bytes of the file, without what is free in it."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("VACUUM")
    return path.stat().st_size


def main() -> None:
    turns = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'growth.db'}"
        series = anyio.run(grow, url, turns)
        print("| turn | transactions | statements that write | reads | other rows | history rows |")
        print("| --- | --- | --- | --- | --- | --- |")
        for turn in (1, 2, 10, 30, 100, 300, 1000):
            if turn <= turns:
                c = series[turn - 1]
                print(
                    f"| {turn} | {c.transactions} | {c.writes} | {c.reads} | {c.rows} | {c.history} |"
                )
        count, read, mended, encoded = anyio.run(history_cost, url)
        total = read + mended + encoded
        print(f"{count} messages: {read:.1f} + {mended:.1f} + {encoded:.1f} = {total:.1f} µs each")
        anyio.run(shorten, url)
        said, kept = anyio.run(canonical, url), stored(Path(folder) / "growth.db")
        print(f"{kept:,} bytes for {said:,} of messages: {kept / said:.2f}")


if __name__ == "__main__":
    main()
