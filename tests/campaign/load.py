"""
Many workers on many threads: ``python -m tests.campaign.load --workers 8 --threads 200 --sends 10``.

Every worker sends to every thread. The database is looked at all the time, and every log afterwards:
each thread has one active run at most, and its runs begin in the order in which they were accepted.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import attrs

from pai import AgentDefinition, ToolContext, create_pai, define_agent, tool
from pai.runtime import _engines
from pai.stores import open_store
from pai.stores._sql import SqlStore
from pai.testing import Call, ScriptedModel

from .checks import events_of, log_faults
from .forking import a_store, fork
from .watcher import thread_ids
from .workload import Marks

AT_ONCE = 24
"""Sends that a worker has under way."""


@attrs.frozen
class Load:
    url: str
    folder: Path
    workers: int
    threads: int
    sends: int

    @property
    def runs(self) -> int:
        return self.threads * self.sends


def _turn(request: Any) -> Any:
    return "done" if request.messages[-1].role == "assistant" else ["I work", Call("work")]


def _agent(marks: Marks) -> AgentDefinition[Any]:
    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work, and say from when to when."""
        begun = time.monotonic_ns()
        await anyio.sleep(0.001)
        marks.add(ctx.thread_id, begun, time.monotonic_ns())
        return "done"

    return define_agent(name="a", model=ScriptedModel(_turn), tools={"work": work})


async def _work(load: Load, number: int) -> None:
    """Send this worker's share, and run whatever there is until all is over."""
    _engines.POLL = 0.1
    limiter = anyio.CapacityLimiter(AT_ONCE)
    async with create_pai(
        agents={"a": _agent(Marks(load.folder / "marks"))}, store=load.url
    ) as app:

        async def send(thread: int, place: int) -> None:
            async with limiter:
                await app.thread("a", thread_id=f"t{thread}").send(f"{place} of {number}")

        async with anyio.create_task_group() as group:
            for place in range(number, load.sends, load.workers):
                for thread in random.sample(range(load.threads), load.threads):
                    group.start_soon(send, thread, place)
        while not (load.folder / "over").exists():  # noqa: ASYNC110  # a file tells nobody
            await anyio.sleep(0.05)


async def _watch(load: Load, findings: list[str]) -> tuple[int, int]:
    """Look until all has ended; how often that was, and how many runs were seen active at once."""
    store = open_store(load.url)
    assert isinstance(store, SqlStore)
    await store.open()
    samples = most = ended = 0
    with anyio.fail_after(900):
        while ended < load.runs:
            active, ended, double = await store.read(_sample)
            samples += 1
            most = max(most, active)
            findings += [f"{thread} has {count} active runs" for thread, count in double]
            await anyio.sleep(0.02)
    await store.close()
    return samples, most


def _sample(connection: Any) -> tuple[int, int, list[Any]]:
    def one(where: str) -> int:
        text = f"SELECT count(*) FROM runs WHERE {where}"
        count: int = connection.execute(text).fetchone()[0]
        return count

    double = connection.execute(
        "SELECT thread_id, count(*) FROM runs WHERE status IN ('running', 'suspended')"
        " GROUP BY thread_id HAVING count(*) > 1"
    ).fetchall()
    return one("status = 'running'"), one("status = 'completed'"), double


async def _check(load: Load, findings: list[str]) -> None:
    chance = random.Random(0)
    async with create_pai(
        agents={"a": _agent(Marks(load.folder / "late"))}, store=load.url, work=False
    ) as app:
        ids = await thread_ids(app)
        if len(ids) != load.threads:
            findings.append(f"{len(ids)} threads")
        for thread_id in ids:
            handle = app.thread("a", thread_id=thread_id)
            state = await handle.state()
            events = await events_of(handle, state.cursor)
            findings += [f"{thread_id}: {fault}" for fault in log_faults(state, events, chance)]
            if [run.status for run in state.runs] != ["completed"] * load.sends:
                findings.append(f"{thread_id}: {[run.status for run in state.runs]}")
    lines = Marks(load.folder / "marks").lines()
    if len(lines) != load.runs:
        findings.append(f"tools ran {len(lines)} times")
    # Whoever worked on a thread worked on it alone.
    spans = sorted([(thread, int(begun), int(ended)) for thread, begun, ended in lines])
    for (thread, _, ended), (other, begun, _) in pairwise(spans):
        if thread == other and begun < ended:
            findings.append(f"{thread} was worked on by two at once")


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s load --", description=__doc__)
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--threads", type=int, default=200)
    parser.add_argument("--sends", type=int, default=10)
    parser.add_argument("--store", default="postgresql", help="as for the kill campaign")
    options = parser.parse_args()
    findings: list[str] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(a_store(options.store, folder))
        load = Load(url, folder, options.workers, options.threads, options.sends)
        if not url.startswith("sqlite"):
            from pai.stores._sql import postgresql

            postgresql._CONNECTIONS = 4  # servers allow for a hundred
        started = time.monotonic()
        pids = [fork(_work, load, i, log=folder / "log") for i in range(load.workers)]
        try:
            samples, most = anyio.run(_watch, load, findings)
        finally:
            (folder / "over").touch()
            codes = [os.waitpid(pid, 0)[1] for pid in pids]
        seconds = time.monotonic() - started
        if any(codes):
            findings.append(f"workers ended with {codes}: {(folder / 'log').read_text()[-2000:]}")
        anyio.run(_check, load, findings)
    print(
        f"{load.workers} workers, {load.threads} threads, {load.runs} runs in {seconds:.0f} s"
        f" ({load.runs / seconds:.0f} a second); {samples} looks, {most} active at once at most;"
        f" {len(findings)} findings"
    )
    if findings:
        sys.exit("\n".join(findings[:40]))


if __name__ == "__main__":
    main()
