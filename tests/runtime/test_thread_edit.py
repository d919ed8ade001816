"""Threads are renamed and deleted, whatever their runs do, in every store."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from hypothesis import example, given, settings, strategies as st

from pai import (
    AsideItem,
    InvalidInput,
    Limits,
    Pai,
    PluginError,
    ReplaceValue,
    RunContext,
    StoreError,
    ThreadNotFound,
    ThreadRef,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.protocol import fold
from pai.testing import Call, Hang, ScriptedModel

from ..postgres import PostgresMissing, fresh_database

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'pai.db'}"


@pytest.fixture(params=["sqlite", "postgresql"])
def durable(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'pai.db'}"


def app_of(store: str = "memory:", *plugins: object, turns: Any = None, **options: Any) -> Pai:
    agent = define_agent(
        name="a",
        model=ScriptedModel(turns or ["one", "two", "three", "four"]),
        lifecycle=compose_lifecycle(*plugins),
    )
    return create_pai(agents={"a": agent, "b": agent}, store=store, plugins=(), **options)


async def rows(app: Pai) -> int:
    """Rows of all tables but the version's."""
    store: Any = app._core.store
    if not store.durable:
        return len(store._threads) + sum([len(keys) for keys in store._records.values()])

    def count(connection: Any) -> int:
        from pai.stores._sql.tables import metadata

        tables = [name for name in metadata.tables if name != "meta"]
        found = [connection.execute(f"SELECT count(*) FROM {name}").fetchone() for name in tables]
        return sum([row[0] for row in found])

    found: int = await store.read(count)
    return found


# ---------------------------------------------------------------------------- rename


async def test_a_thread_is_renamed(store: str) -> None:
    """A-TITLE-3, R-25: the source is manual; watchers, lists and the state agree."""
    async with app_of(store) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go")).result()
        before = await thread.state()
        await thread.rename("Sums")
        state = await thread.state()
        assert (state.thread.title, state.thread.title_source) == ("Sums", "manual")
        assert state.cursor == before.cursor + 1
        (event,) = [e async for e in until(thread.events(after=before.cursor), state.cursor)]
        assert (event.type, event.run_id) == ("thread-updated", "")
        assert fold(before, [event]) == state
        (summary,) = (await app.threads("a")).items
        assert (summary.title, summary.title_source) == ("Sums", "manual")
        await thread.rename("Other")
        assert (await thread.state()).thread.title == "Other"


async def until(events: AsyncIterator[Any], last: int) -> AsyncIterator[Any]:
    async for event in events:
        yield event
        if event.seq >= last:
            return


async def test_a_thread_is_renamed_while_a_run_is_under_way(store: str) -> None:
    """The run sees the title that it began with, and the next one the new title."""
    seen: list[str | None] = []
    renamed = anyio.Event()

    class Look:
        @hookimpl
        async def prepare_run(self, run: RunContext[Any]) -> None:
            if not seen:
                await thread.rename("new")
                renamed.set()
            seen.append(run.thread.title)

    async with app_of(store, Look()) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("go")
        await renamed.wait()
        assert (await run.result()).status == "completed"
        assert [event.type async for event in run.events()][-1] == "run-finished"
        await (await thread.send("go")).result()
        assert seen == [None, "new"]
        assert (await thread.state()).thread.title == "new"


@pytest.mark.parametrize(
    ("title", "words"),
    [("", "not blank"), ("  ", "not blank"), (7, "a text"), ("x" * 31, "at most 30"),
     ("\ud800", "lone surrogate")],
)  # fmt: skip
async def test_a_title_that_does_not_fit_is_refused(title: Any, words: str) -> None:
    """R-39"""
    async with app_of(limits=Limits(title_length=30)) as app:
        thread = app.thread("a")
        await (await thread.send("go")).result()
        before = await thread.state()
        with pytest.raises(InvalidInput, match=words):
            await thread.rename(title)
        assert await thread.state() == before


async def test_a_rename_passes_transform_aside(store: str) -> None:
    """A-LIFE-1, R-31: piped, without a run; what does not fit is the plugin's fault."""
    seen: list[Any] = []

    class Shorter:
        @hookimpl
        def transform_aside(self, item: AsideItem, run: object, records: object) -> object:
            seen.append((item.kind, item.value, run, records))
            return ReplaceValue(str(item.value)[:-1])

    async with app_of(store, Shorter(), Shorter()) as app:
        thread = app.thread("a")
        await (await thread.send("go")).result()
        await thread.rename("title")
        assert seen == [("rename", "title", None, None), ("rename", "titl", None, None)]
        assert (await thread.state()).thread.title == "tit"
        with pytest.raises(PluginError):
            await thread.rename("x")
        assert (await thread.state()).thread.title == "tit"


async def test_only_one_s_own_threads_are_renamed_or_deleted(store: str) -> None:
    """R-7, A-RUN-5"""
    options: Any = {"scope_key": lambda identity: identity["p"]}
    async with app_of(store, **options) as app:
        mine = app.thread("a", thread_id="t", identity={"p": "1"})
        await (await mine.send("go")).result()
        before = await mine.state()
        for handle in (
            app.thread("b", thread_id="t", identity={"p": "1"}),
            app.thread("a", thread_id="t", identity={"p": "2"}),
            app.thread("a", thread_id="none", identity={"p": "1"}),
        ):
            with pytest.raises(ThreadNotFound):
                await handle.rename("x")
            with pytest.raises(ThreadNotFound):
                await handle.delete()
        assert await mine.state() == before
        with pytest.raises(ThreadNotFound):
            await anext(app.thread("b", thread_id="t", identity={"p": "1"}).events())


async def test_nothing_is_changed_in_a_runtime_that_is_not_open() -> None:
    app = app_of()
    for work in (app.thread("a").rename("x"), app.thread("a").delete()):
        with pytest.raises(StoreError, match="not open"):
            await work


# ---------------------------------------------------------------------------- delete


async def test_a_deleted_thread_leaves_no_row(store: str) -> None:
    """R-16, R-42: events, calls, records; those of other threads stay."""

    class Notes:
        name = "notes"

        @hookimpl
        async def run_started(self, run: RunContext[Any], records: Any) -> None:
            await records.put("k", run.id)

    async with app_of(store, Notes(), turns=[[Call("gone")], "one", "two"]) as app:
        thread, other = app.thread("a", thread_id="t"), app.thread("a", thread_id="u")
        await (await other.send("go")).result()
        await app.records("notes").put("of no thread", 1)
        kept, before = await rows(app), await other.state()
        await (await thread.send("go")).result()
        await thread.rename("Sums")
        assert await rows(app) > kept
        await thread.delete()
        assert await rows(app) == kept
        with pytest.raises(ThreadNotFound):
            await thread.state()
        with pytest.raises(ThreadNotFound):
            await thread.delete()
        assert await other.state() == before
        assert await app.records("notes", thread_id="t").items() == []
        assert await app.records("notes").get("of no thread") == 1
        assert [item.id for item in (await app.threads("a")).items] == ["u"]


async def test_an_active_run_and_those_that_wait_vanish(store: str) -> None:
    """R-4, R-16: nothing of them is written any more, and nobody who waits hangs."""
    ended: list[str] = []

    class Watch:
        @hookimpl
        async def run_settled(self, run: RunContext[Any]) -> None:
            ended.append(run.id)

    with anyio.fail_after(20):
        async with app_of(store, Watch(), turns=["some", Hang()]) as app:
            thread = app.thread("a", thread_id="t")
            await (await thread.send("zero")).result()
            run, waiting = await thread.send("one"), await thread.send("two")
            told: list[str] = []

            async def wait(name: str, work: Any) -> None:
                try:
                    if hasattr(work, "__aiter__"):
                        async for _ in work:
                            pass
                    else:
                        await work
                except ThreadNotFound:
                    told.append(name)

            async with anyio.create_task_group() as group:
                for name, work in {
                    "events": run.events(), "text": run.text(), "result": run.result(),
                    "thread": thread.events(), "waiting": waiting.events(),
                    "its result": waiting.result(), "late": run.events(after=10_000),
                }.items():  # fmt: skip
                    group.start_soon(wait, name, work)
                await anyio.wait_all_tasks_blocked()
                await thread.delete()
            assert len(told) == 7
            await app._core.settled()
            assert await rows(app) == 0
            await run.cancel()
            with pytest.raises(ThreadNotFound):
                await thread.run(run.id)
            with pytest.raises(ThreadNotFound):
                await run.update_metadata()
            with pytest.raises(ThreadNotFound):
                await anext(aiter(run.events(after=10_000)))
    assert ended == [ended[0]]


async def test_a_run_that_has_not_begun_never_does(store: str) -> None:
    """R-16: nobody but the run itself can be told of it between its claim and its first step."""
    with anyio.fail_after(20):
        async with app_of(store, turns=[Hang()]) as app:
            thread = app.thread("a", thread_id="t")
            await thread.send("go")
            await thread.delete()
            await app._core.settled()
            assert await rows(app) == 0


async def test_a_thread_made_later_shares_nothing(store: str) -> None:
    """R-16: its events count from 1, its watchers see only it, even if its runs have the old ids."""
    with anyio.fail_after(20):
        async with app_of(store, turns=["one", "two", "three"]) as app:
            thread = app.thread("a", thread_id="t")
            old = await thread.send("go", run_id="r")
            await old.result()
            await thread.rename("old")
            await thread.delete()
            run = await thread.send("again", run_id="r")
            events = [event async for event in run.events()]
            assert [event.seq for event in events] == list(range(1, len(events) + 1))
            assert (await run.result()).text == "two"
            state = await thread.state()
            assert state.thread.title is None
            assert len(state.messages) == 2
            assert [m.parts[0].text for m in state.messages] == ["again", "two"]
            assert fold(None, [e async for e in until(thread.events(), state.cursor)]) == state
            with pytest.raises(ThreadNotFound):
                await old.result()


async def test_another_process_s_watchers_are_told(durable: str) -> None:
    """R-16, R-25: also when a new thread of the same id has as many events."""
    with anyio.fail_after(20):
        async with app_of(durable) as app, app_of(durable, work=False) as far:
            await (await app.thread("a", thread_id="t").send("go")).result()
            watched = far.thread("a", thread_id="t").events()
            seen = [await anext(watched)]
            cursor = (await far.thread("a", thread_id="t").state()).cursor
            while seen[-1].seq < cursor:
                seen.append(await anext(watched))
            await app.thread("a", thread_id="t").delete()
            for _ in range(2):
                await (await app.thread("a", thread_id="t").send("go")).result()
            with pytest.raises(ThreadNotFound):
                await anext(watched)
            again = far.thread("a", thread_id="t")
            assert [(await anext(again.events())).seq] == [1]
            # It is accepted there, while its hub still knows the old thread.
            run = await again.send("far")
            assert (await run.result()).status == "completed"


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
@pytest.mark.parametrize("door", ["run", "send"])
async def test_who_has_just_found_a_run_is_told_that_it_goes(
    durable: str, door: str, again: bool
) -> None:
    """R-16: by its id, or by sending the same once more; nobody waits for a thread to come back."""
    with anyio.fail_after(20):
        async with app_of(durable) as app, app_of(durable, work=False) as far:
            thread = app.thread("a", thread_id="t")
            await (await thread.send("go", run_id="r")).result()
            other = far.thread("a", thread_id="t")
            if door == "run":
                run = await other.run("r")
            else:
                run = await other.send("go", run_id="r")
            await thread.delete()
            if again:
                await (await thread.send("another", run_id="s")).result()
            with pytest.raises(ThreadNotFound):
                await run.result()
            with pytest.raises(ThreadNotFound):
                await anext(aiter(run.events()))


async def test_a_worker_elsewhere_loses_its_run(durable: str) -> None:
    """R-4, R-16: it writes nothing, not even into a run of the same id in a new thread."""
    begun, go_on = anyio.Event(), anyio.Event()
    errors: list[BaseException] = []

    class Wait:
        @hookimpl
        async def prepare_run(self, run: RunContext[Any]) -> None:
            begun.set()
            await go_on.wait()
            run.emit("late", 1)

    with anyio.fail_after(20):
        async with (
            app_of(durable, Wait(), on_runtime_error=errors.append) as app,
            app_of(durable, work=False) as far,
        ):
            await app.thread("a", thread_id="t").send("old", run_id="r")
            await begun.wait()
            await far.thread("a", thread_id="t").delete()
            await far.thread("a", thread_id="t").send("new", run_id="r")
            async with app_of(durable, turns=["fresh"]) as third:
                run = await third.thread("a", thread_id="t").run("r")
                assert (await run.result()).text == "fresh"
            go_on.set()
            await app._core.settled()
            again = await far.thread("a", thread_id="t").run("r")
            events = [event async for event in again.events(after=0)]
            assert "plugin" not in [event.type for event in events]
            assert errors == []


async def test_observers_are_told_of_a_deletion(store: str) -> None:
    """R-32, R-42: each on its own, with the head, and with rows that outlive the thread."""
    seen: list[Any] = []
    errors: list[BaseException] = []

    class Told:
        name = "told"

        @hookimpl
        async def thread_deleted(self, thread: ThreadRef, records: Any, state: Any) -> None:
            with pytest.raises(ThreadNotFound):
                await app.thread("a", thread_id="t").state()
            await records.put("gone", thread.id)
            seen.append((thread.id, thread.title, state))

    class Broken:
        @hookimpl
        def thread_deleted(self) -> None:
            raise ValueError("secret")

    plugins = Broken(), Told()
    async with app_of(store, *plugins, on_runtime_error=errors.append) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go")).result()
        await thread.rename("T")
        await thread.delete()
        assert seen == [("t", "T", {})]
        (error,) = errors
        assert isinstance(error, PluginError)
        assert error.phase == "thread_deleted"
        assert "secret" not in str(error)
        assert await app.records("told").get("gone") == "t"
        assert await app.records("told", thread_id="t").items() == []


pauses = st.lists(st.integers(0, 25), min_size=1, max_size=6)


async def churn(store: str, sends: list[int], deletes: list[int]) -> None:
    """Send, watch, rename and delete at the same time; nobody hangs, and what is left is whole."""
    errors: list[BaseException] = []
    with anyio.fail_after(40):
        async with app_of(store, turns=["some text"] * 50, on_runtime_error=errors.append) as app:
            thread = app.thread("a", thread_id="t")

            async def pause(steps: int) -> None:
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()

            async def send() -> None:
                for steps in sends:
                    await pause(steps)
                    run = await thread.send("go", run_id="r" if steps % 5 == 0 else None)
                    with contextlib.suppress(ThreadNotFound):
                        result = await run.result()
                        assert result.status == "completed"
                    with contextlib.suppress(ThreadNotFound):
                        seqs = [event.seq async for event in run.events()]
                        assert seqs == sorted(set(seqs))

            async def watch(scope: anyio.CancelScope) -> None:
                with scope:
                    while True:
                        with contextlib.suppress(ThreadNotFound):
                            last = 0
                            async for event in thread.events():
                                assert event.seq == last + 1
                                last = event.seq

            async def delete() -> None:
                for steps in deletes:
                    await pause(steps)
                    with contextlib.suppress(ThreadNotFound):
                        await thread.rename(f"after {steps}")
                        await thread.delete()

            scope = anyio.CancelScope()
            async with anyio.create_task_group() as group:
                group.start_soon(watch, scope)
                async with anyio.create_task_group() as workers:
                    workers.start_soon(send)
                    workers.start_soon(send)
                    workers.start_soon(delete)
                await app._core.settled()
                scope.cancel()
            assert errors == []
            try:
                state = await thread.state()
            except ThreadNotFound:
                assert await rows(app) == 0
                return
            assert {run.status for run in state.runs} <= {"completed"}
            log = [event async for event in until(thread.events(), state.cursor)]
            assert fold(None, log) == state


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
@settings(max_examples=12)
@given(sends=pauses, deletes=pauses)
# A run is deleted that was claimed and has not begun, and another one queued behind it.
@example(sends=[0, 0, 6, 14, 19, 25], deletes=[0, 21, 25, 25])
def test_a_thread_may_be_deleted_at_any_moment(
    kind: str, sends: list[int], deletes: list[int]
) -> None:
    """R-16, R-25"""
    if kind == "memory":
        asyncio.run(churn("memory:", sends, deletes))
    elif kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(churn(f"sqlite:///{Path(folder) / 'a.db'}", sends, deletes))
    else:
        try:
            with fresh_database() as url:
                asyncio.run(churn(url, sends, deletes))
        except PostgresMissing as error:
            pytest.skip(str(error))
