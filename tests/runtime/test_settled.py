"""Observers of a run's end are told at least once, also after a crash (R-33a)."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import (
    AgentDefinition,
    Pai,
    RunContext,
    RunOutcome,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.protocol import Commit, JobRecord, RunRecord, RunStarted, ThreadKey
from pai.runtime import _engines, _side_jobs
from pai.stores import MemoryStore, open_store
from pai.testing import ScriptedModel

from ..processes import command
from .dying_observer import agent as marking

pytestmark = pytest.mark.anyio
T = ThreadKey("default", "t")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for what a dead worker left all the time."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    monkeypatch.setattr(_side_jobs, "POLL", 0.02)
    monkeypatch.setattr(_side_jobs, "BACK_OFF", (0.01, 0.01, 0.01))


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'pai.db'}"


class Observer:
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[RunContext[Any], RunOutcome]] = []
        self.again = anyio.Event()

    @hookimpl
    async def run_settled(self, run: RunContext[Any], result: RunOutcome) -> None:
        self.told.append((run, result))
        self.again.set()


def observed(observer: object, **options: Any) -> AgentDefinition[Any]:
    options = {"model": ScriptedModel(lambda request: "fine"), **options}
    return define_agent(name="a", lifecycle=observer, **options)


async def left(app: Pai) -> list[str]:
    """Ids of the jobs in the store."""
    store: Any = app._core.store
    if isinstance(store, MemoryStore):
        return [job_id for here in store._threads.values() for job_id in here.jobs._jobs]
    rows: list[str] = await store.read(
        lambda c: [row[0] for row in c.execute("SELECT id FROM jobs").fetchall()]
    )
    return rows


async def all_told(app: Pai) -> None:
    """Wait until no job is left."""
    while await left(app):  # noqa: ASYNC110  # nothing tells it
        await anyio.sleep(0.001)


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_a_worker_is_killed_before_it_has_told(url: str, tmp_path: Path) -> None:
    """R-33a: another one builds the context again, and tells; once it has told, nobody does again."""
    marks = tmp_path / "marks"

    def kill() -> None:
        with subprocess.Popen(
            command("tests.runtime.dying_observer", url, marks),
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
            worker.send_signal(signal.SIGKILL)
            worker.wait(10)

    await anyio.to_thread.run_sync(kill)
    assert not marks.exists()
    for _ in range(2):
        async with create_pai(agents={"a": marking(marks)}, store=url) as app:
            with anyio.fail_after(20):
                await all_told(app)
            run = await app.thread("a", thread_id="t").run("r")
            assert (await run.result()).status == "completed"
        assert marks.read_text() == "r for-ada go/fine completed 2\n"


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_each_end_is_told_once_where_nothing_happens(kind: str, url: str) -> None:
    """R-33a: the delivery is recorded."""
    observer = Observer()
    async with create_pai(
        agents={"a": observed(observer)}, store="memory:" if kind == "memory" else url
    ) as app:
        for _ in range(3):
            await (await app.thread("a", thread_id="t").send("go")).result()
        with anyio.fail_after(10):
            await all_told(app)
    assert len(observer.told) == 3


async def test_no_observer_no_row(url: str) -> None:
    """R-33a: an agent without such observers writes nothing for them."""
    agent = define_agent(name="a", model=ScriptedModel(["fine"]))
    async with create_pai(agents={"a": agent}, store=url) as app:
        commits: list[Commit] = []
        store: Any = app._core.store
        commit = store.commit

        async def spy(key: Any, run_id: str, fence: int, change: Commit, leaves: Any) -> Any:
            commits.append(change)
            return await commit(key, run_id, fence, change, leaves)

        store.commit = spy
        await (await app.thread("a").send("go")).result()
    assert [change.jobs for change in commits] == [()]


async def test_a_run_that_no_worker_survives_is_told_too(url: str) -> None:
    """R-3b, R-33a: its context was never built by the worker that gave it up."""
    agent = observed(Observer())
    async with create_pai(agents={"a": agent}, store=url, work=False) as app:
        await app.thread("a", thread_id="t").send("go", run_id="r")
    store = open_store(url)
    await store.open()
    for _ in range(4):
        claimed = await store.claim(T, "dead", 0.0, [RunStarted("t")])
        assert claimed is not None
    await store.close()
    observer = Observer()
    async with create_pai(agents={"a": observed(observer)}, store=url):
        with anyio.fail_after(10):
            await observer.again.wait()
    ((context, result),) = observer.told
    assert (context.id, result.status) == ("r", "failed")
    assert result.error is not None
    assert result.error["code"] == "worker_lost"


async def leave(url: str) -> None:
    """Two runs, and a job of the first that a dead worker left."""
    agent = define_agent(name="a", model=ScriptedModel(["1", "2"]))
    async with create_pai(agents={"a": agent}, store=url) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("one", run_id="r")).result()
        await (await thread.send("two")).result()
        store = app._core.store
        snapshot = await store.snapshot(T, "a")
        assert snapshot is not None
        # A commit may leave jobs of any run.
        third = RunRecord("x", "a", "0.0.0", "trigger", {}, "", snapshot.thread.created_at)
        accepted = await store.accept(
            snapshot.thread, third, None, [], claim=("dead", 60.0), started=[]
        )
        assert accepted.claimed is not None
        jobs = (JobRecord("settled:r", "settled", "r"),)
        await store.commit(T, "x", accepted.claimed.fence, Commit(jobs=jobs))


async def test_what_is_told_again_is_as_it_was(url: str) -> None:
    """R-33a: the messages up to the run, though there are later ones; nothing can be written."""
    await leave(url)
    observer = Observer()
    async with create_pai(agents={"a": observed(observer)}, store=url) as app:
        with anyio.fail_after(10):
            await observer.again.wait()
            await all_told(app)
    ((context, result),) = observer.told
    assert [message.text for message in context.messages] == ["one", "1"]
    assert (context.id, context.operation, result.status) == ("r", "send", "completed")
    assert (result.stop_reason, result.usage.total_tokens) == ("stop", 2)


async def test_observers_are_told_whatever_the_application_raises(url: str) -> None:
    """R-32, R-33a: also where the runtime context cannot be built any more; a raising one is told."""
    await leave(url)
    observer, errors = Observer(), []

    class Breaks(Observer):
        @hookimpl
        async def run_settled(self, run: RunContext[Any], result: RunOutcome) -> None:
            raise RuntimeError("observer")

    def broken(given: object) -> object:
        raise RuntimeError("context")

    agent = observed(Breaks(), runtime_context=broken)
    async with create_pai(
        agents={"a": agent}, store=url, plugins=[observer], on_runtime_error=errors.append
    ) as app:
        with anyio.fail_after(10):
            await observer.again.wait()
            await all_told(app)
    assert len(observer.told) == 1
    assert [type(error).__name__ for error in errors] == ["RuntimeError", "PluginError"]
