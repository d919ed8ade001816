"""Whoever patches metadata at the same time, from inside of a run and beside it: nothing is lost."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pai import (
    CommandContext,
    InvalidInput,
    MetadataPatch,
    MetadataSchemas,
    Pai,
    RunContext,
    RunPatch,
    StepContext,
    StepPatch,
    ThreadNotFound,
    ThreadState,
    ToolResultContext,
    compose_lifecycle,
    create_pai,
    define_agent,
    define_command,
    hookimpl,
    tool,
)
from pai.protocol import fold
from pai.testing import Call, ScriptedModel

from ..postgres import PostgresMissing, fresh_database


def bags() -> MetadataSchemas[dict[str, int], dict[str, int]]:
    return MetadataSchemas(private=dict[str, int], public=dict[str, int])


RUN = bags()


def patch(key: str) -> MetadataPatch:
    return MetadataPatch(private={key: 1}, public={key: 1})


@tool
async def wait(ctx: Any) -> str:
    """Wait."""
    await anyio.lowlevel.checkpoint()
    return "done"


async def note(ctx: CommandContext[Any], input: dict[str, str]) -> None:
    given = patch(input["key"])
    await ctx.update_metadata(run=given, thread=given, message=given)


class Writes:
    """Patches in every way that a hook has, each time under another key."""

    def __init__(self) -> None:
        self.keys: list[str] = []

    def key(self, where: str) -> str:
        self.keys.append(f"{where}{len(self.keys)}")
        return self.keys[-1]

    @hookimpl
    async def prepare_run(self, run: RunContext[Any]) -> RunPatch:
        given = patch(self.key("prepare"))
        return RunPatch(run_metadata=given, thread_metadata=given)

    @hookimpl
    async def prepare_model_step(self, step: StepContext[Any]) -> StepPatch:
        given = patch(self.key("step"))
        return StepPatch(run_metadata=given, thread_metadata=given)

    @hookimpl
    async def tool_settled(self, result: ToolResultContext[Any]) -> None:
        key = self.key("settled")
        await result.run.update_metadata(run=patch(key), thread=patch(key))
        # What a hook wrote it sees, whoever else writes.
        assert key in result.run.metadata.public
        assert key in result.run.thread.metadata.private


def app_of(store: str, *plugins: object) -> Pai:
    agent = define_agent(
        name="a",
        model=ScriptedModel(
            [[Call("wait"), Call("wait")], "a long answer", *["more"] * 9], chunk=1
        ),
        tools={"wait": wait},
        lifecycle=compose_lifecycle(*plugins),
        run_metadata=RUN,
        thread_metadata=bags(),
        message_metadata=bags(),
        commands={
            "note": define_command(
                name="note",
                description="Note it.",
                input=dict[str, str],
                output=type(None),
                execute=note,
                run_metadata=RUN,
            )
        },
    )
    return create_pai(agents={"a": agent}, store=store, plugins=())


async def story(store: str, moves: list[tuple[str, int]]) -> None:
    writes, errors = Writes(), []
    with anyio.fail_after(30):
        async with app_of(store, writes) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go")
            states: list[ThreadState] = [await thread.state()]
            keys: dict[str, list[str]] = {"run": [], "thread": [], "command": []}

            async def beside() -> None:
                for number, (kind, pause) in enumerate(moves):
                    for _ in range(pause):
                        await anyio.lowlevel.checkpoint()
                    key = f"{kind}{number}"
                    try:
                        if kind == "run":
                            await run.update_metadata({key: 1}, {key: 1})
                        elif kind == "thread":
                            await thread.update_metadata({key: 1}, {key: 1})
                        else:
                            await thread.command("note", {"key": key})
                    except BaseException as error:
                        errors.append(error)
                        raise
                    keys[kind].append(key)
                    states.append(await thread.state())

            async with anyio.create_task_group() as group:
                group.start_soon(beside)
                assert (await run.result()).status == "completed"
            end = await thread.state()
            everywhere = {*writes.keys, *keys["command"]}
            assert set(end.thread.metadata) == everywhere | set(keys["thread"])
            assert set(end.runs[0].metadata) == everywhere | set(keys["run"])
            noted: set[str] = set()
            for message in end.messages:
                noted |= set(message.metadata)
            assert noted == set(keys["command"])
            # What clients see has come to the private bags too.
            snapshot = await app._core.store.snapshot(thread._key, "a")
            assert snapshot is not None
            assert snapshot.thread.metadata.private == snapshot.thread.metadata.public
            assert snapshot.runs[0].metadata.private == snapshot.runs[0].metadata.public
            # And from wherever one begins, the events lead to the same.
            log = [event async for event in until(thread.events(), end.cursor)]
            assert fold(None, log) == end
            for state in states:
                assert fold(state, log[state.cursor :]) == end
    assert errors == []


async def until(events: AsyncIterator[Any], last: int) -> AsyncIterator[Any]:
    async for event in events:
        yield event
        if event.seq >= last:
            return


moves = st.lists(
    st.tuples(st.sampled_from(["run", "thread", "command"]), st.integers(0, 12)), max_size=8
)


@pytest.mark.parametrize("kind", ["memory", "sqlite", "postgresql"])
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(moves=moves)
def test_no_patch_is_lost(kind: str, moves: list[tuple[str, int]]) -> None:
    """A-META-5, R-25: hooks, handles and commands meet in the store; events and state agree."""
    if kind == "memory":
        asyncio.run(story("memory:", moves))
    elif kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(story(f"sqlite:///{Path(folder) / 'a.db'}", moves))
    else:
        try:
            with fresh_database() as url:
                asyncio.run(story(url, moves))
        except PostgresMissing as error:
            pytest.skip(str(error))


@attrs.frozen
class Hidden:
    secret: str = ""


@attrs.frozen
class Pair:
    low: int = 0
    high: int = attrs.field(default=9)

    @high.validator
    def _fits(self, _: object, value: int) -> None:
        if value < self.low:
            raise ValueError("high is below low")


PAIRS = MetadataSchemas(private=Hidden, public=Pair)


@pytest.mark.anyio
@pytest.mark.parametrize("store", ["memory:", "sqlite:///{}/pai.db"])
async def test_a_patch_that_others_made_impossible_is_refused(store: str, tmp_path: Path) -> None:
    """A-META-5: it fitted what the run knew, and not what is stored by then; the run goes on."""
    seen: list[Any] = []

    class Lower:
        @hookimpl
        async def prepare_run(self, run: RunContext[Any]) -> None:
            await thread.update_metadata(public={"low": 5})
            # The run has not heard of it.
            assert run.thread.metadata.public["low"] == 0
            with pytest.raises(InvalidInput, match="below low"):
                await run.update_metadata(thread=MetadataPatch(public={"high": 3}))
            assert dict(run.thread.metadata.public) == {"low": 0, "high": 9}
            await run.update_metadata(thread=MetadataPatch(public={"high": 7}))
            seen.append(dict(run.thread.metadata.public))

    agent = define_agent(
        name="a", model=ScriptedModel(["hi"]), thread_metadata=PAIRS, lifecycle=Lower()
    )
    url = store.format(tmp_path)
    async with create_pai(agents={"a": agent}, store=url, plugins=()) as app:
        thread = app.thread("a")
        run = await thread.send("go")
        assert (await run.result()).status == "completed"
        assert (await thread.state()).thread.metadata == {"low": 5, "high": 7}
    assert seen == [{"low": 5, "high": 7}]


@pytest.mark.anyio
@pytest.mark.parametrize("store", ["memory:", "sqlite:///{}/pai.db"])
async def test_a_run_ends_whatever_becomes_of_its_metadata(store: str, tmp_path: Path) -> None:
    """A-META-5, R-33: a patch that is refused at the very end is reported, and the run settles."""
    errors: list[BaseException] = []

    class Lower:
        @hookimpl
        async def prepare_run(self, run: RunContext[Any]) -> RunPatch:
            return RunPatch(thread_metadata=MetadataPatch(public={"high": 3}))

    class Fails:
        @hookimpl
        async def prepare_run(self) -> None:
            await thread.update_metadata(public={"low": 5})
            raise ValueError

    agent = define_agent(
        name="a",
        model=ScriptedModel(["hi"]),
        thread_metadata=PAIRS,
        lifecycle=compose_lifecycle(Lower(), Fails()),
    )
    url = store.format(tmp_path)
    app = create_pai(agents={"a": agent}, store=url, plugins=(), on_runtime_error=errors.append)
    async with app:
        thread = app.thread("a")
        run = await thread.send("go")
        assert (await run.result()).status == "failed"
        assert (await thread.state()).thread.metadata == {"low": 5, "high": 9}
    assert any(isinstance(error, InvalidInput) for error in errors)


@pytest.mark.anyio
async def test_bags_are_replaced_one_by_one() -> None:
    """A-META-5: a bag that is given becomes just this, checked in the same way."""
    agent = define_agent(
        name="a", model=ScriptedModel(["hi"]), thread_metadata=PAIRS, run_metadata=PAIRS
    )
    async with create_pai(agents={"a": agent}, plugins=()) as app:
        thread = app.thread("a")
        with pytest.raises(ThreadNotFound):
            await thread.update_metadata(public={"low": 1})
        run = await thread.send("go")
        await run.result()
        for handle in (thread, run):
            await handle.update_metadata({"secret": "x"}, {"low": 1, "high": 2})
            await handle.update_metadata(public={"low": 2}, replace=True)
            with pytest.raises(InvalidInput, match=r"metadata\.private\.secret"):
                await handle.update_metadata({"secret": 1}, {"low": 3}, replace=True)
            with pytest.raises(InvalidInput, match="expected a mapping"):
                await handle.update_metadata(public=[1])  # type: ignore[arg-type]  # the test
            await handle.update_metadata()
        snapshot = await app._core.store.snapshot(thread._key, "a")
        assert snapshot is not None
        for metadata in (snapshot.thread.metadata, snapshot.runs[0].metadata):
            assert dict(metadata.public) == {"low": 2, "high": 9}
            assert dict(metadata.private) == {"secret": "x"}
        await thread.update_metadata(private={}, replace=True)
        snapshot = await app._core.store.snapshot(thread._key, "a")
        assert snapshot is not None
        assert dict(snapshot.thread.metadata.private) == {"secret": ""}


@pytest.mark.anyio
async def test_without_schemas_there_is_no_metadata() -> None:
    agent = define_agent(name="a", model=ScriptedModel(["hi"]))
    async with create_pai(agents={"a": agent}, plugins=()) as app:
        thread = app.thread("a")
        run = await thread.send("go")
        await run.result()
        for handle in (thread, run):
            with pytest.raises(InvalidInput, match="the agent declares no schemas"):
                await handle.update_metadata(public={"low": 1})
