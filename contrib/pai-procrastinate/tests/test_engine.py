"""The engine on a real PostgreSQL: wakes in transactions, and processes that come and go."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psycopg
import pytest
from pai_procrastinate import ProcrastinateEngine
from pai_procrastinate._wakes import lock_of

from pai import (
    Approve,
    DefinitionError,
    Pai,
    RequireApproval,
    Subagent,
    ToolContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.errors import StoreError
from pai.protocol import ThreadKey, ToolCallPart
from pai.testing import Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent


def app_of(url: str, script: Any = ("Hi.",), *, engine: Any = None, **options: Any) -> Pai:
    agent = define_agent(name="a", model=ScriptedModel(script))
    made = engine or ProcrastinateEngine(poll=0.2)
    return create_pai(agents={"a": agent}, store=url, engine=made, **options)


def rows(url: str, ask: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(ask).fetchall()


LISTENERS = (
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
    " AND query LIKE 'LISTEN%' AND state = 'idle'"
)
JOBS = "SELECT lock, args, status::text FROM procrastinate_jobs ORDER BY id"


# ---------------------------------------------------------------------------- wakes


async def test_a_wake_is_one_job_of_ids(url: str) -> None:
    """R-5: it is committed with the run, carries ids only, and one that waits is enough."""
    async with app_of(url, work=False) as app:
        for text in ("one", "two", "three"):
            await app.thread("a", thread_id="t").send(f"secret {text}")
        await app.thread("a", thread_id='u"/[').send("secret")
    ids = {"partition": "default", "thread_id": "t"}
    assert rows(url, JOBS) == [
        ('["default","t"]', ids, "todo"),
        ('["default","u\\"/["]', {"partition": "default", "thread_id": 'u"/['}, "todo"),
    ]
    assert "secret" not in str(rows(url, "SELECT * FROM procrastinate_jobs"))


async def test_what_is_not_accepted_wakes_nobody(url: str) -> None:
    async with app_of(url, work=False) as app:
        store: Any = app._core.store
        key = ThreadKey("default", "t")

        def torn(connection: Any) -> None:
            app._core.engine.wake_in(connection, key)
            raise RuntimeError

        with pytest.raises(RuntimeError):
            await store.tx(torn)
        assert rows(url, JOBS) == []
        run = await app.thread("a", thread_id="t").send("one", run_id="r")
        await app.thread("a", thread_id="t").send("one", run_id="r")  # O-18
        await run.cancel()


async def test_where_no_wake_can_be_written_nothing_is_accepted(url: str) -> None:
    async with app_of(url, work=False) as app:
        rows_of = "DROP TABLE procrastinate_jobs CASCADE"
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(rows_of)
        with pytest.raises(StoreError):
            await app.thread("a", thread_id="t").send("one")
    assert rows(url, "SELECT * FROM threads") == []


async def test_a_job_is_not_taken_before_its_run_is_there(url: str) -> None:
    """The lost wake: a worker that takes the waiting job while another run is being accepted."""
    async with app_of(url, work=False) as app:
        await app.thread("a", thread_id="t").send("one")
        key = ThreadKey("default", "t")
        with psycopg.connect(url) as accepting, psycopg.connect(url, autocommit=True) as working:
            worker = "INSERT INTO procrastinate_workers DEFAULT VALUES RETURNING id"
            (number,) = working.execute(worker).fetchone() or (0,)
            working.execute('LISTEN "procrastinate_queue_v1#pai"')
            app._core.engine.wake_in(accepting, key)
            fetch = f"SELECT id FROM procrastinate_fetch_job_v2(ARRAY['pai']::varchar[], {number})"
            assert working.execute(fetch).fetchone() == (None,)
            accepting.commit()
            told = list(working.notifies(timeout=5, stop_after=1))
            assert len(told) == 1
            (taken,) = working.execute(fetch).fetchone() or (None,)
            assert taken is not None
            # One that is being worked on may have looked already: the next run gets its own.
            app._core.engine.wake_in(accepting, key)
            accepting.commit()
    assert [status for _, _, status in rows(url, JOBS)] == ["doing", "todo"]


def test_locks_of_two_threads_differ() -> None:
    assert lock_of(ThreadKey("a", 'b","c')) != lock_of(ThreadKey('a","b', "c"))


async def test_runs_are_worked_on_in_order(url: str) -> None:
    """R-1: by the process that works; the sender only sends."""
    async with app_of(url, work=False) as sender, app_of(url, ["one", "two", "three"]):
        thread = sender.thread("a", thread_id="t")
        runs = [await thread.send(text) for text in ("1", "2", "3")]
        with anyio.fail_after(20):
            assert [(await run.result()).text for run in runs] == ["one", "two", "three"]
    # A wake that came while the thread was worked on may be left, for the next to find nothing.
    assert len(rows(url, JOBS)) <= 1
    assert rows(url, "SELECT * FROM procrastinate_workers") == []


async def test_double_and_lost_wakes_do_no_harm(url: str) -> None:
    async with app_of(url, work=False) as sender:
        run = await sender.thread("a", thread_id="t").send("hello")
        rows(url, "DELETE FROM procrastinate_jobs RETURNING id")
        async with app_of(url) as app:
            with anyio.fail_after(20):
                assert (await run.result()).text == "Hi."
            for _ in range(5):
                app._core.engine.wake(ThreadKey("default", "t"))
                app._core.engine.wake(ThreadKey("default", "nowhere"))
            again = await app.thread("a", thread_id="t").send("more")
            with anyio.fail_after(20):
                assert (await again.result()).status == "failed"  # the script is over
        state = await sender.thread("a", thread_id="t").state()
    assert [item.status for item in state.runs] == ["completed", "failed"]


async def test_a_runtime_that_closes_wakes_the_next(url: str) -> None:
    """Its runs are handed back with their wake, whatever the lease."""
    async with app_of(url, work=False) as sender:
        thread = sender.thread("a", thread_id="t")
        async with app_of(url, [["partial", Hang()]], lease=3600):
            run = await thread.send("hello")
            with anyio.fail_after(20):
                async for event in run.events():
                    if event.type == "text-delta":
                        break
        assert [status for _, _, status in rows(url, JOBS)] == ["todo"]
        async with app_of(url, lease=3600):
            with anyio.fail_after(20):
                assert (await run.result()).text == "Hi."


async def test_a_body_that_fails_still_hands_back(url: str) -> None:
    async def body() -> None:
        async with app_of(url, [Hang()]) as app, anyio.create_task_group() as tasks:
            run = await app.thread("a", thread_id="t").send("hello")
            async for event in run.events():
                if event.type == "run-started":
                    tasks.start_soon(failing)

    async def failing() -> None:
        raise RuntimeError

    with pytest.raises(ExceptionGroup) as caught, anyio.fail_after(20):
        await body()
    assert caught.group_contains(RuntimeError)
    assert [status for _, _, status in rows(url, JOBS)] == ["todo"]


async def test_a_worker_that_lost_its_connections_works_on(url: str) -> None:
    async with app_of(url, work=False) as sender, app_of(url, ["one", "two"]):
        thread = sender.thread("a", thread_id="t")
        with anyio.fail_after(40):
            assert (await (await thread.send("1")).result()).text == "one"
            rows(
                url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()",
            )
            assert (await (await thread.send("2")).result()).text == "two"


class Asks:
    """Wants an approval, which may be waited for in vain."""

    def __init__(self, expires_after: float | None) -> None:
        self.expires_after = expires_after

    @hookimpl
    def before_tool_call(self) -> RequireApproval:
        return RequireApproval("it costs", expires_after=self.expires_after)


def asking(script: Any, expires_after: float | None = None) -> Any:
    @tool
    async def pay(ctx: ToolContext[Any]) -> str:
        """Pay."""
        return "paid"

    return define_agent(
        name="a", model=ScriptedModel(script), tools={"pay": pay}, lifecycle=Asks(expires_after)
    )


async def test_an_answer_wakes_the_worker(url: str) -> None:
    """It is given in a process that does not work, and the wake is of its transaction."""
    agents = {"a": asking([[Call("pay", {}, "p")], "Thanks."])}
    async with (
        create_pai(agents=agents, store=url, engine="procrastinate", work=False) as sender,
        create_pai(agents=agents, store=url, engine=ProcrastinateEngine(poll=3600)),
    ):
        with anyio.fail_after(20):
            await anyio.to_thread.run_sync(listened, url)
            run = await sender.thread("a", thread_id="t").send("hello")
            assert (await run.result()).status == "suspended"
            await run.resume([Approve("p")])
            assert (await run.result()).text == "Thanks."


async def test_a_call_that_expires_wakes_the_worker(url: str) -> None:
    agents = {"a": asking([[Call("pay", {}, "p")], "Too late."], expires_after=0.5)}
    async with create_pai(agents=agents, store=url, engine=ProcrastinateEngine(poll=0.2)) as app:
        run = await app.thread("a", thread_id="t").send("hello")
        with anyio.fail_after(20):
            await run.result()
            while (await app.thread("a", thread_id="t").state()).runs[0].status != "completed":
                assert (await run.result()).status in {"suspended", "completed"}


async def test_a_subagent_goes_on_in_the_room_of_the_run_that_waits(url: str) -> None:
    helper = define_agent(name="helper", model=ScriptedModel(["Found.", "Found."]))
    calls = [Call("helper", {"prompt": name}, name) for name in ("one", "two")]
    boss = define_agent(
        name="a",
        model=ScriptedModel([calls, "Done."]),
        subagents={"helper": Subagent(helper, "Finds things.")},
    )
    engine = ProcrastinateEngine(poll=0.2)
    async with create_pai(agents={"a": boss}, store=url, engine=engine, max_runs=1) as app:
        with anyio.fail_after(20):
            run = await app.thread("a", thread_id="t").send("hello")
            assert (await run.result()).text == "Done."
        state = await app.thread("a", thread_id="t").state()
    parts = [part for message in state.messages for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCallPart)]
    assert [(call.outcome, call.output) for call in calls] == [("completed", "Found.")] * 2


async def test_at_most_max_runs(url: str) -> None:
    async with app_of(url, [Hang(), Hang()], max_runs=1) as app:
        for name in ("t1", "t2"):
            await app.thread("a", thread_id=name).send("hello")
        run = app.thread("a", thread_id="t1")
        with anyio.fail_after(20):
            async for event in run.events():
                if event.type == "run-started":
                    break
        statuses = [row[0] for row in rows(url, "SELECT status FROM runs ORDER BY thread_id")]
        assert statuses == ["running", "queued"]


# ---------------------------------------------------------------------------- where it works


@pytest.mark.parametrize("store", ["memory:", "sqlite:///pai.db"])
def test_it_needs_postgresql(store: str) -> None:
    with pytest.raises(DefinitionError, match="procrastinate needs PostgreSQL"):
        create_pai(
            agents={"a": define_agent(name="a", model="demo")},
            store=store,
            engine="procrastinate",
        )


def test_it_works_on_asyncio_and_sends_from_trio(url: str) -> None:
    pytest.importorskip("trio")

    async def works() -> None:
        async with app_of(url):
            pass

    async def sends() -> None:
        async with app_of(url, work=False) as app:
            await app.thread("a", thread_id="t").send("hello")

    with pytest.raises(DefinitionError, match="works on asyncio alone"):
        anyio.run(works, backend="trio")
    anyio.run(sends, backend="trio")
    assert len(rows(url, JOBS)) == 1


def test_wrong_options() -> None:
    with pytest.raises(DefinitionError, match="poll"):
        ProcrastinateEngine(poll=0)


async def test_many_may_begin_at_once(url: str) -> None:
    """procrastinate's tables are made by the first, and beside those of pai."""

    async def begin() -> None:
        async with app_of(url, engine="procrastinate"):
            pass

    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(begin)


# ---------------------------------------------------------------------------- processes


class Worker:
    def __init__(self, url: str, log: Path, lease: float) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "pai", "worker", str(HERE / "worker_app.py:make")],
            env=os.environ | {"TEST_URL": url, "TEST_LOG": str(log), "TEST_LEASE": str(lease)},
            stdout=subprocess.PIPE,
            text=True,
        )
        self.pid = self._process.pid

    def ready(self) -> None:
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready: works on runs of a\n"

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        if self._process.poll() is None:
            self._process.send_signal(how)
            self._process.communicate(timeout=30)
        return self._process.returncode


@contextmanager
def processes(url: str, log: Path, number: int, lease: float = 2.0) -> Iterator[list[Worker]]:
    workers = [Worker(url, log, lease) for _ in range(number)]
    try:
        for worker in workers:
            worker.ready()
        yield workers
    finally:
        for worker in workers:
            worker.end(signal.SIGKILL)


@asynccontextmanager
async def working(
    url: str, log: Path, number: int, lease: float = 2.0
) -> AsyncIterator[list[Worker]]:
    manager = processes(url, log, number, lease)
    workers = await anyio.to_thread.run_sync(manager.__enter__)
    try:
        yield workers
    finally:
        await anyio.to_thread.run_sync(manager.__exit__, None, None, None)


async def test_several_processes_share_the_work(url: str, tmp_path: Path) -> None:
    """R-1: each thread's runs in order, one at a time, none twice; both processes work."""
    log = tmp_path / "log"
    async with app_of(url, work=False) as sender, working(url, log, 2):
        runs = []
        for turn in range(3):
            for name in range(8):
                thread = sender.thread("a", thread_id=f"t{name}")
                runs.append(await thread.send("go", run_id=f"t{name}-{turn}"))
        with anyio.fail_after(50):
            for run in runs:
                assert (await run.result()).text == "Worked."
    told: dict[str, list[str]] = defaultdict(list)
    pids = set()
    for line in log.read_text().splitlines():
        what, pid, run_id, thread_id = line.split()
        told[thread_id].append(f"{what} {run_id}")
        pids.add(pid)
    for name in range(8):
        expected = [f"{what} t{name}-{turn}" for turn in range(3) for what in ("begin", "end")]
        assert told[f"t{name}"] == expected
    assert len(pids) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_the_thread_of_a_killed_worker_goes_on(url: str, tmp_path: Path) -> None:
    """R-10: its job's lock is lifted, the lease ends, and another takes the run over."""
    log, hold = tmp_path / "log", tmp_path / "hold"
    hold.touch()
    async with app_of(url, work=False) as sender:
        async with working(url, log, 1) as (first,):
            run = await sender.thread("a", thread_id="t").send("go")
            with anyio.fail_after(20):
                async for event in run.events():
                    if event.type == "tool-call":
                        break
                await anyio.to_thread.run_sync(written, log)
            await anyio.to_thread.run_sync(first.end, signal.SIGKILL)
        assert [status for _, _, status in rows(url, JOBS)] == ["doing"]
        hold.unlink()
        async with working(url, log, 1):
            with anyio.fail_after(30):
                assert (await run.result()).text == "Worked."
    assert [line.split()[0] for line in log.read_text().splitlines()] == ["begin", "begin", "end"]


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM to wait for")
async def test_a_worker_that_is_told_to_end_wakes_another(url: str, tmp_path: Path) -> None:
    """R-3: the run goes on at once, although the lease is an hour, and no job stays behind."""
    log, hold = tmp_path / "log", tmp_path / "hold"
    hold.touch()
    async with app_of(url, work=False) as sender:
        async with working(url, log, 1, 3600) as (first,):
            run = await sender.thread("a", thread_id="t").send("go")
            with anyio.fail_after(20):
                await anyio.to_thread.run_sync(written, log)
            assert await anyio.to_thread.run_sync(first.end) == 0
        assert [status for _, _, status in rows(url, JOBS)] == ["todo"]
        hold.unlink()
        async with working(url, log, 1, 3600):
            with anyio.fail_after(20):
                assert (await run.result()).text == "Worked."


def listened(url: str) -> None:
    """Wait until a worker is told of jobs; one that is written before waits for its next look."""
    while not rows(url, LISTENERS):
        os.sched_yield()


def written(log: Path) -> None:
    while not log.exists():
        os.sched_yield()
