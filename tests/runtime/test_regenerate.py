"""Answering again, interrupting, and versions of agents."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pai import (
    InvalidInput,
    RunContext,
    RunPatch,
    ThreadBusy,
    ThreadHandle,
    ThreadNotFound,
    ToolContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.protocol import fold
from pai.testing import Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


async def texts(thread: ThreadHandle) -> list[str]:
    state = await thread.state()
    return ["".join(getattr(part, "text", "") for part in item.parts) for item in state.messages]


async def agree(thread: ThreadHandle) -> None:
    """R-25: the folded log is the state, from wherever one begins."""
    state = await thread.state()
    events = []
    stream = thread.events()
    while len(events) < state.cursor:
        events.append(await anext(stream))
    assert fold(None, events) == state
    for middle in range(1, len(events)):
        assert fold(fold(None, events[:middle]), events[middle:]) == state


async def test_the_last_answer_is_made_again(store: str) -> None:
    """A-RUN-2: what was replaced is seen by no later run, and stays with its own."""
    model = ScriptedModel(["One.", "Two.", "Two again.", "Three."])
    agent = define_agent(name="a", model=model)
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        await (await thread.send("1")).result()
        second = await thread.send("2")
        await second.result()
        again = await thread.regenerate()
        assert (await again.result()).text == "Two again."
        assert await texts(thread) == ["1", "One.", "2", "Two again."]
        assert [message.text for message in model.requests[2].messages] == ["1", "One.", "2"]
        await (await thread.send("3")).result()
        assert [message.text for message in model.requests[3].messages] == [
            "1", "One.", "2", "Two again.", "3",
        ]  # fmt: skip
        assert (await second.result()).text == "Two."
        operations = [view.operation for view in (await thread.state()).runs]
        assert operations == ["send", "send", "regenerate", "send"]
        await agree(thread)


async def test_any_message_may_be_named(store: str) -> None:
    """A-RUN-2: the assistant's is replaced with all behind it, the user's is answered anew."""
    model = ScriptedModel(["A", "B", "C", "D", "E"])
    agent = define_agent(name="a", model=model)
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        with pytest.raises(ThreadNotFound):
            await thread.regenerate()
        await (await thread.send("1")).result()
        await (await thread.send("2")).result()
        ids = [message.id for message in (await thread.state()).messages]
        await (await thread.regenerate(ids[3])).result()
        assert await texts(thread) == ["1", "A", "2", "C"]
        with pytest.raises(InvalidInput) as caught:
            await thread.regenerate(ids[3])  # it is replaced already
        assert [fault.path for fault in caught.value.faults] == ["message_id"]
        await (await thread.regenerate(ids[0])).result()
        assert await texts(thread) == ["1", "D"]
        await (await thread.regenerate((await thread.state()).messages[1].id)).result()
        assert await texts(thread) == ["1", "E"]
        await agree(thread)


async def test_a_run_that_nobody_asked_for_is_made_again_from_the_beginning(store: str) -> None:
    """A-RUN-2: where nothing is kept."""
    agent = define_agent(name="a", model=ScriptedModel(["A", "B"]))
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        await (await thread.trigger()).result()
        await (await thread.regenerate()).result()
        assert await texts(thread) == ["B"]
        await agree(thread)


async def test_what_is_queued_before_a_regenerate_is_replaced_too(store: str) -> None:
    """A-RUN-2, R-2: it replaces what is there when it starts; runs keep their order."""
    go = anyio.Event()

    @tool
    async def wait(ctx: ToolContext[None]) -> str:
        """Wait."""
        await go.wait()
        return "ok"

    model = ScriptedModel([Call("wait", {}), "A", "B", "C", "D"])
    agent = define_agent(name="a", model=model, tools={"wait": wait})
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        first = await thread.send("1")
        await thread.send("2")
        state = await thread.state()
        named = next(message.id for message in state.messages if message.run_id == first.id)
        again = await thread.regenerate(named)
        last_kept = await thread.send("3")
        go.set()
        await last_kept.result()
        assert await texts(thread) == ["1", "3", "C", "D"]  # as they came
        assert (await again.result()).text == "C"
        await agree(thread)


async def test_a_message_may_be_replaced_while_a_run_waits_for_it(store: str) -> None:
    """A-RUN-2: the run fails by name, and drops nothing."""
    go = anyio.Event()

    @tool
    async def wait(ctx: ToolContext[None]) -> str:
        """Wait."""
        await go.wait()
        return "ok"

    model = ScriptedModel(["A", Call("wait", {}), "B", "C"])
    agent = define_agent(name="a", model=model, tools={"wait": wait})
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        await (await thread.send("1")).result()
        second = await thread.send("2")
        messages = (await thread.state()).messages
        one = next(message.id for message in messages if message.role == "user")
        two = next(message.id for message in messages if message.run_id == second.id)
        await thread.regenerate(one)
        gone = await thread.regenerate(two)
        go.set()
        result = await gone.result()
        assert result.error is not None
        assert result.error["code"] == "message_replaced"
        assert await texts(thread) == ["1", "C"]
        await agree(thread)


async def test_a_run_is_interrupted(store: str) -> None:
    """R-2: the active one is cancelled and keeps what it had; those that wait keep their turn."""
    model = ScriptedModel([["Half", Hang()], "Queued.", "Now."])
    agent = define_agent(name="a", model=model)
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        first = await thread.send("1")
        async for _ in first.text():
            break
        queued = await thread.send("2")
        with pytest.raises(ThreadBusy):
            await thread.send("x", when_busy="reject")
        with pytest.raises(InvalidInput):
            await thread.send("x", when_busy="later")  # type: ignore[arg-type]
        now = await thread.send("3", when_busy="interrupt")
        result = await first.result()
        assert (result.status, result.reason, result.text) == ("cancelled", "interrupted", "Half")
        assert (await queued.result()).text == "Queued."
        assert (await now.result()).text == "Now."
        assert await texts(thread) == ["1", "2", "3", "Half", "Queued.", "Now."]
        await agree(thread)


async def test_a_version_that_does_not_fit_leaves_the_run(tmp_path: Path) -> None:
    """A-DEF-7: it stays queued, is reported once, and a version that fits goes on."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    errors: list[BaseException] = []
    asked: list[tuple[str, str]] = []

    def of(version: str) -> ScriptedModel:
        return ScriptedModel([f"By {version}."])

    def compatible(stored: str, own: str) -> bool:
        asked.append((stored, own))
        return False

    one = define_agent(name="a", model=of("1"), version="1.0.0")
    async with create_pai(agents={"main": one}, store=url, plugins=(), work=False) as app:
        run = await app.thread("main", thread_id="t").send("x", run_id="r")
    two = define_agent(name="a", model=of("2"), version="2.0.0", compatible=compatible)
    async with create_pai(
        agents={"main": two}, store=url, plugins=(), on_runtime_error=errors.append
    ) as app:
        thread = app.thread("main", thread_id="t")
        for _ in range(3):
            await app._core.drain(run._key)
        assert [view.status for view in (await thread.state()).runs] == ["queued"]
        before = (await thread.state()).cursor
    assert set(asked) == {("1.0.0", "2.0.0")}
    assert len(errors) == 1
    assert "not compatible" in str(errors[0])
    async with create_pai(agents={"other": two}, store=url, plugins=()) as app:
        await app._core.drain(run._key)  # it knows no such agent
    three = define_agent(name="a", model=of("3"), version="3.0.0")
    async with create_pai(agents={"main": three}, store=url, plugins=()) as app:
        thread = app.thread("main", thread_id="t")
        assert (await thread.state()).cursor == before
        assert (await (await thread.run("r")).result()).text == "By 3."


async def test_a_takeover_keeps_what_prepare_run_decided(tmp_path: Path) -> None:
    """A-DEF-8: it is not called again; a resume calls it."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    calls: list[int] = []

    class Decide:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> RunPatch:
            calls.append(run.attempt)
            return RunPatch(instructions=f"Attempt {run.attempt}.", max_steps=7)

    model = ScriptedModel([["Half", Hang()], "Whole."])
    agent = define_agent(name="a", model=model, lifecycle=Decide())
    async with create_pai(agents={"main": agent}, store=url, plugins=()) as app:
        run = await app.thread("main", thread_id="t").send("x", run_id="r")
        async for _ in run.text():
            break
    async with create_pai(agents={"main": agent}, store=url, plugins=()) as app:
        result = await (await app.thread("main", thread_id="t").run("r")).result()
    assert result.text == "Whole."
    assert calls == [1]
    assert [request.instructions[0].content for request in model.requests] == ["Attempt 1."] * 2
