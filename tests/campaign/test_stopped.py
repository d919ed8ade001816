"""A worker that was paused past its lease cannot write one row (R-4)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from pai.protocol import RunStarted, ThreadKey
from pai.stores import open_store
from pai.stores._sql import SqlStore
from pai.stores._sql.tables import metadata

from ..processes import command
from .stopped import places


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP")
def test_a_worker_of_sqlite_that_was_stopped_past_its_lease_writes_nothing(
    tmp_path: Path,
) -> None:
    """R-4: a real process, stopped, overtaken and continued."""
    stop_and_go_on(f"sqlite:///{tmp_path / 'pai.db'}", "trio")


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGSTOP")
def test_a_worker_of_postgresql_that_was_stopped_past_its_lease_writes_nothing(
    postgres: str,
) -> None:
    """R-4: also one that was stopped with the row of its thread locked."""
    stop_and_go_on(postgres, "asyncio")


def stop_and_go_on(url: str, backend: str) -> None:
    with subprocess.Popen(
        command("tests.campaign.stopped", url, backend),
        stdout=subprocess.PIPE,
        text=True,
    ) as worker:
        try:
            anyio.run(watch, url, worker, backend=backend)
            assert worker.wait(20) == 0
        finally:
            worker.kill()


async def watch(url: str, worker: subprocess.Popen[str]) -> None:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    await store.open()
    for number, place in enumerate(places(url)):
        key = ThreadKey("default", f"t{number}")
        _, status = await anyio.to_thread.run_sync(os.waitpid, worker.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status), place
        # The run stays in other hands, so that nothing but the fence keeps the worker out.
        fence = await taken(store, key)
        before = await rows(store, key.thread_id)
        worker.send_signal(signal.SIGCONT)
        refused = (await line(worker)).split()
        assert await rows(store, key.thread_id) == before, place
        assert refused, place
        if place[0].endswith("before"):
            assert place[0].partition(":")[0] in refused, place
        await store.renew(key, "r", fence, 0.0)
        assert await line(worker) == "completed", place
    await store.close()


async def line(worker: subprocess.Popen[str]) -> str:
    assert worker.stdout is not None
    text = await anyio.to_thread.run_sync(worker.stdout.readline)
    return text.strip()


async def taken(store: SqlStore, key: ThreadKey) -> int:
    """Take the thread's run as soon as its lease has ended."""
    while True:
        claimed = await store.claim(key, "another", 60.0, [RunStarted(key.thread_id)])
        if claimed is not None:
            return claimed.fence
        await anyio.sleep(0.02)


async def rows(store: SqlStore, thread_id: str) -> dict[str, list[Any]]:
    """Every row of the thread."""

    def read(connection: Any) -> dict[str, list[Any]]:
        found = {}
        for table in metadata.sorted_tables:
            text = f"SELECT * FROM {table.name}"
            found[table.name] = sorted(
                [row for row in connection.execute(text).fetchall() if thread_id in row], key=repr
            )
        return found

    return await store.read(read)
