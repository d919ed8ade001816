"""What wakes workers: the port, the engine that is built in, and how a process lets go."""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from stevedore import ExtensionManager

from pai import (
    DefinitionError,
    Pai,
    StoreError,
    ThreadNotFound,
    ToolContext,
    create_pai,
    define_agent,
    tool,
)
from pai.errors import Fault
from pai.ports import Engine, EngineHost, Store
from pai.protocol import ThreadKey
from pai.runtime import _engines
from pai.runtime._room import Room
from pai.testing import Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'pai.db'}"


class Told:
    """An engine that writes its wakes into the store's transaction, and keeps what it was told."""

    claims = False
    transactional = True

    def __init__(self, *, broken: bool = False) -> None:
        self.told: list[Any] = []
        self.host: EngineHost | None = None
        self.broken = broken

    def check(self, store: Store) -> Sequence[Fault]:
        return [] if store.durable else [Fault("store", "a database is needed")]

    async def open(self, host: EngineHost) -> None:
        self.host = host

    def stop(self) -> None:
        self.told.append("stop")

    async def close(self) -> None:
        self.told.append("close")

    def wake_in(self, tx: Any, key: ThreadKey) -> None:
        assert tx.in_transaction
        tx.execute("CREATE TABLE IF NOT EXISTS wakes (partition TEXT, thread TEXT)")
        tx.execute("INSERT INTO wakes VALUES (?, ?)", key)
        if self.broken:
            raise RuntimeError
        self.told.append(key)

    def wake(self, key: ThreadKey) -> None:
        self.told.append(("late", key))


def app_of(model: ScriptedModel, store: Any, **options: Any) -> Pai:
    return create_pai(agents={"a": define_agent(name="a", model=model)}, store=store, **options)


async def wakes(app: Pai) -> list[Any]:
    store: Any = app._core.store
    rows = await store.read(lambda c: c.execute("SELECT * FROM wakes").fetchall())
    return [tuple(row) for row in rows]


async def test_a_wake_is_written_with_the_message(url: str) -> None:
    """R-5: it carries the thread's key and nothing else, and nobody else begins the run."""
    engine = Told()
    assert isinstance(engine, Engine)
    async with app_of(ScriptedModel(["Hi."]), url, engine=engine) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("hello", run_id="r")
        key = ThreadKey("default", "t")
        assert engine.told == [key]
        assert await wakes(app) == [("default", "t")]
        assert (await thread.state()).runs[0].status == "queued"
        assert engine.host is not None
        assert engine.host.works
        await engine.host.drain(key)
        assert (await run.result()).text == "Hi."
        # The same request again is no new run: nothing is to be woken.
        await thread.send("hello", run_id="r")
        await engine.host.drain(key)
        assert engine.told == [key]
        assert await wakes(app) == [("default", "t")]
    assert engine.told == [key, "stop", "close"]


async def test_what_an_engine_cannot_write_is_not_sent(url: str) -> None:
    async with app_of(ScriptedModel(["Hi."]), url, engine=Told(broken=True)) as app:
        thread = app.thread("a", thread_id="t")
        with pytest.raises(RuntimeError):
            await thread.send("hello")
        with pytest.raises(ThreadNotFound):
            await thread.state()


async def test_a_thread_is_drained_once_at_a_time(url: str) -> None:
    """A second wake tells the first to look again."""
    engine = Told()
    model = ScriptedModel(["one", "two"])
    async with app_of(model, url, engine=engine) as app:
        thread, key = app.thread("a", thread_id="t"), ThreadKey("default", "t")
        assert engine.host is not None
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(engine.host.drain, key)
            await anyio.lowlevel.checkpoint()
            await thread.send("1")
            engine.host.drain_soon(key)
            engine.host.drain_soon(key)
        run = await thread.send("2")
        await engine.host.drain(key)
        assert (await run.result()).text == "two"
        assert [item.attempt for item in await attempts(app)] == [1, 1]


async def attempts(app: Pai) -> list[Any]:
    found = await app._core.store.snapshot(ThreadKey("default", "t"), "a")
    assert found is not None
    return found.runs


async def test_a_lost_wake_does_no_harm(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another process queued, and told nobody, is found."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    async with app_of(ScriptedModel([]), url, work=False) as sender:
        await sender.thread("a", thread_id="t").send("hello", run_id="r")
    async with app_of(ScriptedModel(["Hi."]), url) as app:
        run = await app.thread("a", thread_id="t").run("r")
        with anyio.fail_after(10):
            assert (await run.result()).text == "Hi."


async def test_a_runtime_that_closes_hands_its_runs_back(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-3: the next worker goes on at once, however long the lease, and however often."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    for attempt in range(1, 6):  # more often than a run may be taken over (R-3b)
        async with app_of(ScriptedModel([["partial", Hang()]]), url, lease=math.inf) as app:
            thread = app.thread("a", thread_id="t")
            if attempt == 1:
                await thread.send("hello", run_id="r")
            run = await thread.run("r")
            with anyio.fail_after(10):
                async for event in run.events():
                    if event.type == "text-delta" and (await attempts(app))[0].attempt == attempt:
                        break
    async with app_of(ScriptedModel(["Hi."]), url, lease=math.inf) as app:
        run = await app.thread("a", thread_id="t").run("r")
        with anyio.fail_after(10):
            result = await run.result()
        assert (result.status, result.text) == ("completed", "Hi.")


@pytest.mark.parametrize("limit", [None, 600.0])
async def test_a_tool_in_a_thread_is_told_that_its_run_goes_elsewhere(
    url: str, limit: float | None
) -> None:
    """A-CTX-2: nobody waits for it, so the signal is all that stops it."""
    told: list[str | None] = []
    begun, ended = threading.Event(), threading.Event()

    @tool(timeout=limit)
    def slow(ctx: ToolContext[Any]) -> str:
        """Take its time."""
        begun.set()
        ctx.signal.wait(30)
        told.append(ctx.signal.reason)
        ended.set()
        return "late"

    agent = define_agent(name="a", model=ScriptedModel([Call("slow")]), tools={"slow": slow})
    async with create_pai(agents={"a": agent}, store=url) as app:
        run = await app.thread("a", thread_id="t").send("hello")
        async for event in run.events():
            if event.type == "tool-call":
                break
        await anyio.to_thread.run_sync(begun.wait, 10)
    await anyio.to_thread.run_sync(ended.wait, 10)
    assert told == ["cancelled" if limit else "shutdown"]


async def test_runs_without_room_stay_in_their_queue(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process that has room may take them, whatever the lease, and nobody waits at the end."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    names = ["t1", "t2", "t3"]
    async with app_of(ScriptedModel([Hang()]), url, lease=math.inf, max_runs=1) as app:
        for name in names:
            run = await app.thread("a", thread_id=name).send("hello", run_id=name)
            if name == "t1":
                async for event in run.events():
                    if event.type == "run-started":
                        break
        async with app_of(ScriptedModel(["b", "c"]), url, lease=math.inf, max_runs=1) as other:
            with anyio.fail_after(10):
                for name in names[1:]:
                    run = await other.thread("a", thread_id=name).run(name)
                    assert (await run.result()).status == "completed"
    async with app_of(ScriptedModel(["a"]), url, lease=math.inf) as app:
        run = await app.thread("a", thread_id="t1").run("t1")
        with anyio.fail_after(10):
            assert (await run.result()).text == "a"


async def passing(room: Room, key: ThreadKey) -> None:
    if await room.enter(key):
        room.leave()


@pytest.mark.parametrize("granted", [False, True])
async def test_a_place_is_not_lost_with_one_who_waited_for_it(granted: bool) -> None:
    room = Room(1)
    first, second, third = (ThreadKey("p", name) for name in "abc")
    assert await room.enter(first)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(passing, room, second)
        await anyio.wait_all_tasks_blocked()
        if granted:
            room.leave()
        tasks.cancel_scope.cancel()
    if not granted:
        room.leave()
    with anyio.fail_after(1):
        assert await room.enter(third)
    room.lend(first)
    assert not await room.enter(first)


class Unable(Told):
    async def open(self, host: EngineHost) -> None:
        raise StoreError("no")


async def test_an_engine_that_does_not_open(url: str) -> None:
    with pytest.raises(StoreError):
        async with app_of(ScriptedModel([]), url, engine=Unable()):
            pass
    async with app_of(ScriptedModel([]), url):  # the store was let go of
        pass


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ("magic", r"engine: 'magic' is not available: known are .*embedded"),
        (object(), "engine: expected a name or an engine, got object"),
        (Told(), "engine.store: a database is needed"),
    ],
)
def test_an_engine_that_cannot_be(engine: Any, message: str) -> None:
    """All that is wrong is told at once."""
    with pytest.raises(DefinitionError, match=message) as caught:
        app_of(ScriptedModel(), "memory:", engine=engine, lease=0)
    assert {fault.path for fault in caught.value.faults} >= {"lease"}


def test_engines_are_found_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    here = EntryPoint("own", f"{__name__}:Told", "pai.engines")
    broken = EntryPoint("broken", f"{__name__}:nothing", "pai.engines")
    found = [here, broken]
    monkeypatch.setattr(ExtensionManager, "list_entry_points", lambda _: found)
    assert isinstance(app_of(ScriptedModel(), "sqlite:///x", engine="own")._core.engine, Told)
    with pytest.raises(DefinitionError, match=r"test_engines:nothing cannot be loaded"):
        app_of(ScriptedModel(), "memory:", engine="broken")
    found.append(here)
    with pytest.raises(DefinitionError, match="several installed packages"):
        app_of(ScriptedModel(), "memory:", engine="own")
