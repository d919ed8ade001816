"""``pai worker`` and ``pai threads``: real processes on one store."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from pai import DefinitionError, Pai, ThreadNotFound, ThreadRef, create_pai, define_agent, hookimpl
from pai.cli._load_app import load_app
from pai.cli._threads import Of, delete_thread, list_threads, show_thread
from pai.cli._worker import run_worker

from .test_chat import pai

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no SIGTERM to wait for")

APP = '''
import os
import time
from pathlib import Path

import anyio
import anyio.to_thread

from pai import ToolContext, create_pai, define_agent, tool
from pai.testing import Call, ScriptedModel

HERE = Path(__file__).parent


def note(*words):
    with (HERE / "log").open("a") as file:
        file.write(" ".join(map(str, words)) + "\\n")


@tool(idempotent=True)
async def work(ctx: ToolContext) -> str:
    """Write down who works on what."""
    note("begin", os.getpid(), ctx.run_id, ctx.thread_id)
    if (HERE / "hold").exists():
        # As a tool does that runs in a thread and does not heed its signal.
        await anyio.to_thread.run_sync(time.sleep, 600, abandon_on_cancel=True)
    note("end", os.getpid(), ctx.run_id, ctx.thread_id)
    return "done"


def answer(request):
    return [Call("work", {})] if request.messages[-1].role == "user" else "Worked."


agent = define_agent(name="a", model=ScriptedModel(answer), tools={"work": work})
app = create_pai(agents={"a": agent}, store="URL", lease=3600, work=False)


def make():
    return create_pai(agents={"a": agent, "b": agent}, store="URL", lease=3600)
'''


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'pai.db'}"


@pytest.fixture
def home(tmp_path: Path, url: str) -> Path:
    (tmp_path / "mine.py").write_text(APP.replace("URL", url))
    return tmp_path


def sender(url: str) -> Pai:
    """It only sends: its agent has another model and no tool."""
    return create_pai(agents={"a": define_agent(name="a", model="demo")}, store=url, work=False)


class Worker:
    def __init__(self, home: Path, target: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "pai", "worker", target],
            cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def end(self, how: signal.Signals = signal.SIGTERM) -> tuple[int, str, str]:
        self.process.send_signal(how)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@asynccontextmanager
async def working(home: Path, number: int, target: str = "mine.py") -> AsyncIterator[list[Worker]]:
    workers = [Worker(home, target) for _ in range(number)]
    try:
        for worker in workers:
            assert await anyio.to_thread.run_sync(worker.line) == "ready: works on runs of a\n"
        yield workers
    finally:
        for worker in workers:
            if worker.process.poll() is None:
                await anyio.to_thread.run_sync(worker.end, signal.SIGKILL)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_worker_that_is_told_to_end_hands_its_runs_over(home: Path, url: str) -> None:
    """R-3: the next worker goes on at once, although the lease is an hour; it exits with 0."""
    (home / "hold").touch()
    async with sender(url) as app, working(home, 1) as (first,):
        run = await app.thread("a", thread_id="t").send("go", run_id="r")
        with anyio.fail_after(30):
            async for event in run.events():
                if event.type == "tool-call":
                    break
            await anyio.to_thread.run_sync(begun, home)
        code, out, err = await anyio.to_thread.run_sync(first.end)
        assert (code, err) == (0, "")
        assert out.splitlines() == [
            "ending: runs under way are handed to other workers",
            "ended, although a tool's thread did not heed its signal",
        ]
        (home / "hold").unlink()
        async with working(home, 1):
            with anyio.fail_after(30):
                assert (await run.result()).text == "Worked."
        state = await app.thread("a", thread_id="t").state()
    assert [item.status for item in state.runs] == ["completed"]
    assert [line.split()[0] for line in (home / "log").read_text().splitlines()] == [
        "begin", "begin", "end",
    ]  # fmt: skip


def begun(home: Path) -> None:
    while not (home / "log").exists():
        pass


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_several_processes_share_the_work(home: Path, url: str) -> None:
    """R-1: on one file or on one server, each thread's runs in order, one at a time, none twice."""
    threads, turns = [f"t{number}" for number in range(8)], range(3)
    async with sender(url) as app, working(home, 2) as workers:
        runs = []
        for turn in turns:
            for name in threads:
                run = await app.thread("a", thread_id=name).send("go", run_id=f"{name}-{turn}")
                runs.append(run)
        with anyio.fail_after(50):
            for run in runs:
                assert (await run.result()).text == "Worked."
        for worker in workers:
            assert (await anyio.to_thread.run_sync(worker.end))[0] == 0
    told: dict[str, list[str]] = defaultdict(list)
    for line in (home / "log").read_text().splitlines():
        what, _, run_id, thread_id = line.split()
        told[thread_id].append(f"{what} {run_id}")
    assert dict(told) == {
        name: [f"{what} {name}-{turn}" for turn in turns for what in ("begin", "end")]
        for name in threads
    }


AGENT = "from pai import define_agent\nx = define_agent(name='x', model='demo')\n"


@pytest.mark.parametrize(
    ("target", "options", "said"),
    [
        ("mine.py", {}, "a worker needs a store that others share"),
        ("mine.py:make", {}, "a worker needs a store that others share"),
        ("mine.py:agent", {"store": "memory:"}, "a worker needs a store that others share"),
        ("mine.py:app", {"store": "sqlite:///x.db"}, "leave out the options"),
        ("mine.py:work", {}, "'work' is a ToolDefinition"),
        ("mine.py:nothing", {}, "'nothing' is not there"),
        ("only.py", {}, "store: which one?"),
        ("only.py", {"store": "sqlite:///x.db", "engine": "magic"}, "engine: 'magic'"),
        ("nowhere.py", {}, "there is no such file"),
    ],
)
def test_what_cannot_be_a_worker(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    target: str,
    options: dict[str, str],
    said: str,
) -> None:
    """It takes a runtime, what makes one, or an agent with a store, and says what is wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "mine.py").write_text(APP.replace("URL", "memory:"))
    (tmp_path / "only.py").write_text(AGENT)
    with pytest.raises(DefinitionError, match=re.escape(said)):
        run_worker(
            load_app(target, store=options.get("store"), engine=options.get("engine"), plugins=())
        )
    assert not list(tmp_path.glob("*.db"))


def test_threads_are_listed_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "teams.py").write_text(
        "from pai import create_pai, define_agent, tool\n"
        "@tool\n"
        "def add(ctx, a: int, b: int) -> int:\n"
        "    'Add.'\n"
        "    return a + b\n"
        "def make():\n"
        "    tools = {'add': add}\n"
        "    agents = {key: define_agent(name=key, model='demo', tools=tools) for key in 'ab'}\n"
        "    return create_pai(agents=agents,\n"
        "        store='sqlite:///pai.db', scope_key=lambda identity: identity['team'])\n"
    )

    def app() -> Pai:
        return load_app("teams.py:make", store=None, engine=None, plugins=())

    async def talk() -> None:
        async with app() as made:
            for name, text in (("sums", "What is 2 + 3?"), ("colours", "Say \x1b[31mred")):
                run = await made.thread("a", thread_id=name).send(text)
                assert (await run.result()).status == "completed"

    def printed() -> str:
        return capsys.readouterr().out

    anyio.run(talk)
    of, elsewhere = Of("a"), Of("a", json.dumps({"team": "t"}))
    list_threads(app(), of, limit=1, after=None)
    first = capsys.readouterr()
    assert [line.split()[0] for line in first.out.splitlines()] == ["colours"]
    cursor = first.err.removeprefix("more: --after ").strip()
    list_threads(app(), of, limit=20, after=cursor)
    assert [line.split()[0] for line in printed().splitlines()] == ["sums"]
    show_thread(app(), "sums", of)
    shown = printed()
    assert "user: What is 2 + 3?" in shown
    assert 'add({"a": 2, "b": 3}) completed: 5' in shown
    assert re.search(r"^run \S+  .*  completed$", shown, re.MULTILINE)
    show_thread(app(), "colours", of)
    assert "\x1b" not in printed()
    list_threads(app(), elsewhere, limit=20, after=None)
    assert printed() == ""
    with pytest.raises(ThreadNotFound):
        show_thread(app(), "sums", elsewhere)
    with pytest.raises(DefinitionError, match="expected JSON"):
        list_threads(app(), Of("a", "{"), limit=20, after=None)
    with pytest.raises(DefinitionError, match="which one"):
        list_threads(app(), Of(), limit=20, after=None)


def test_a_thread_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-16: with all that is of it, after a person agreed; who watches for it is told."""
    url, told = f"sqlite:///{tmp_path / 'pai.db'}", []

    class Watches:
        @hookimpl
        def thread_deleted(self, thread: ThreadRef) -> None:
            told.append(thread.id)

    def app() -> Pai:
        agent = define_agent(name="a", model="demo", lifecycle=Watches())
        return create_pai(agents={"a": agent}, store=url, plugins=())

    async def talk() -> None:
        async with app() as made:
            for name in ("one", "two"):
                await (await made.thread("a", thread_id=name).send("Hello")).result()

    anyio.run(talk)
    with pytest.raises(DefinitionError, match="say --yes"):
        delete_thread(app(), "one", Of(), yes=False)
    delete_thread(app(), "one", Of(), yes=True)
    assert told == ["one"]
    capsys.readouterr()
    list_threads(app(), Of(), limit=20, after=None)
    assert [line.split()[0] for line in capsys.readouterr().out.splitlines()] == ["two"]
    with pytest.raises(ThreadNotFound):
        delete_thread(app(), "one", Of(), yes=True)


def test_threads_at_the_command_line(tmp_path: Path) -> None:
    """The words of the commands, each in a process of its own."""
    (tmp_path / "mine.py").write_text(AGENT.replace("'x'", "'assistant'"))
    url = f"sqlite:///{tmp_path / 'pai.db'}"

    async def talk() -> None:
        agent = define_agent(name="assistant", model="demo")
        async with create_pai(agents={"assistant": agent}, store=url) as app:
            await (await app.thread("assistant", thread_id="sums").send("Hello")).result()

    anyio.run(talk)
    (tmp_path / "pai.toml").write_text('store = "sqlite:///pai.db"\n')
    shown = pai(tmp_path, "threads", "show", "mine.py", "sums")
    assert (shown.returncode, shown.stdout.splitlines()[0]) == (0, "user: Hello")
    deleted = pai(tmp_path, "threads", "delete", "mine.py", "sums", "--yes")
    assert (deleted.returncode, deleted.stdout) == (0, "deleted sums\n")
