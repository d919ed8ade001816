"""The journal: what a run writes goes out in order, whole, and is told, whatever happens to the run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from pai import (
    LeaseLost,
    ModelProfile,
    StepFinish,
    StoreError,
    TextDelta,
    TextEnd,
    TextStart,
    create_pai,
    define_agent,
    tool,
)
from pai.protocol import Commit
from pai.stores import MemoryStore
from pai.testing import Call, ScriptedModel


class SlowStore(MemoryStore):
    """A store whose writes have a price, and wait for a gate where the test says so."""

    def __init__(self) -> None:
        super().__init__()
        self.gates: dict[str, anyio.Event] = {}
        self.reached = {"commit": anyio.Event(), "append": anyio.Event()}
        self.failing: Exception | None = None
        self.appended: list[list[str]] = []

    @property
    def durable(self) -> bool:
        return True

    async def _at(self, what: str) -> None:
        await anyio.lowlevel.checkpoint()
        self.reached[what].set()
        if what in self.gates:
            await self.gates[what].wait()

    async def append(self, key: Any, run_id: Any, fence: Any, events: Any, **more: Any) -> Any:
        await self._at("append")
        if self.failing is not None:
            raise self.failing
        self.appended.append([event.type for event in events])
        return await super().append(key, run_id, fence, events, **more)

    async def commit(
        self, key: Any, run_id: Any, fence: Any, change: Commit, leaves: Any = None
    ) -> Any:
        await self._at("commit")
        return await super().commit(key, run_id, fence, change, leaves)


class Paced:
    """A model that sends a delta each time the test lets it."""

    provider = name = "paced"
    profile = ModelProfile()

    def __init__(self, steps: list[anyio.Event]) -> None:
        self.steps = steps

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        yield TextStart("t")
        for number, step in enumerate(self.steps):
            yield TextDelta("t", str(number))
            await step.wait()
        yield [TextEnd("t"), StepFinish("stop")]


def runtime(model: Any, store: Any, **fields: Any) -> Any:
    agent = define_agent(name="a", model=model, **fields)
    return create_pai(agents={"a": agent}, store=store, plugins=())


@pytest.mark.anyio
@pytest.mark.parametrize("calls", [True, False], ids=["step", "last step"])
async def test_a_cancel_during_a_commit_loses_and_doubles_nothing(calls: bool) -> None:
    """R-14: the commit is told; the run ends once."""

    @tool
    async def look(ctx: Any) -> str:
        """Look."""
        return "seen"

    store = SlowStore()
    store.gates["commit"] = anyio.Event()
    model = ScriptedModel([[Call("look")] if calls else "hi", "never"])
    with anyio.fail_after(20):
        async with runtime(model, store, tools={"look": look}) as app:
            thread = app.thread("a")
            run = await thread.send("go")
            await store.reached["commit"].wait()
            await run.cancel("enough")
            store.gates["commit"].set()
            events = [event async for event in run.events()]
            result = await run.result()
            state = await thread.state()
    types = [event.type for event in events]
    assert types.count("run-finished") == types.count("step-finished") == 1
    # An end that was on its way holds: there is nothing left to cancel.
    assert result.status == ("cancelled" if calls else "completed")
    assert [message.role for message in state.messages] == ["user", "assistant"]
    if calls:
        assert [part.outcome for part in state.messages[1].parts] == ["interrupted"]
        assert types.count("tool-error") == 1


@pytest.mark.anyio
async def test_the_first_part_goes_at_once_and_the_rest_when_there_is_time() -> None:
    """R-11, R-29a"""
    store = SlowStore()
    steps = [anyio.Event() for _ in range(3)]
    with anyio.fail_after(20):
        async with runtime(Paced(steps), store) as app:
            run = await app.thread("a").send("go")
            deltas = run.text()
            assert await anext(deltas) == "0"
            # The model goes on while the store is still at a write.
            store.gates["append"] = anyio.Event()
            steps[0].set()
            await anyio.wait_all_tasks_blocked()
            steps[1].set()
            await anyio.wait_all_tasks_blocked()
            store.gates["append"].set()
            assert [await anext(deltas), await anext(deltas)] == ["1", "2"]
            steps[2].set()
            result = await run.result()
            events = [event async for event in run.events()]
    assert result.text == "012"
    assert [event.text for event in events if event.type == "text-delta"] == ["0", "1", "2"]
    assert store.appended[0] == ["step-started", "text-start", "text-delta"]


@pytest.mark.anyio
async def test_a_write_that_fails_beside_the_run_fails_the_run() -> None:
    store = SlowStore()
    store.failing = StoreError("the disk is full")
    step = anyio.Event()
    errors: list[BaseException] = []
    agent = define_agent(name="a", model=Paced([step]))
    with anyio.fail_after(20):
        app = create_pai(
            agents={"a": agent}, store=store, plugins=(), on_runtime_error=errors.append
        )
        async with app:
            await app.thread("a").send("go")
            await store.reached["append"].wait()
            await anyio.wait_all_tasks_blocked()
            step.set()
            while not errors:
                await anyio.lowlevel.checkpoint()
    assert store.failing in errors


@pytest.mark.anyio
async def test_a_lost_lease_ends_the_work_and_writes_nothing() -> None:
    """R-4"""
    store = SlowStore()
    store.failing = LeaseLost("another worker holds it")
    step = anyio.Event()
    with anyio.fail_after(20):
        async with runtime(Paced([step]), store) as app:
            thread = app.thread("a")
            await thread.send("go")
            await store.reached["append"].wait()
            await anyio.wait_all_tasks_blocked()
            step.set()
            await anyio.wait_all_tasks_blocked()
            state = await thread.state()
    assert state.runs[0].status == "running"
    assert [message.role for message in state.messages] == ["user"]


@pytest.mark.anyio
async def test_a_message_that_tools_write_to_at_once_is_stored_as_it_was_made_last() -> None:
    """Two results with data: the later form of the message is the one that stays."""

    @tool
    async def work(ctx: Any, name: str) -> str:
        """Work."""
        ctx.write_data("note", name)
        return name

    store = SlowStore()
    names = list("abcd")
    model = ScriptedModel([[Call("work", {"name": name}) for name in names], "end"])
    with anyio.fail_after(20):
        async with runtime(model, store, tools={"work": work}, ui_data={"note": str}) as app:
            thread = app.thread("a")
            result = await (await thread.send("go")).result()
            state = await thread.state()
    assert result.text == "end"
    parts = state.messages[1].parts
    assert [part.output for part in parts if part.type == "tool-call"] == names
    assert [part.value for part in parts if part.type == "data-note"] == names
