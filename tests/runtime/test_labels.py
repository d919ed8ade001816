"""Labels of reasoning, as they are made beside the stream (A-REASON, R-25, R-38)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import (
    AsideItem,
    Event,
    ModelRequest,
    ModelSelection,
    ModelSettings,
    Pai,
    ReasoningPart,
    ReasoningSummaryConfig,
    ReasoningSummaryGeneratorInput,
    ReplaceValue,
    RunContext,
    StepContext,
    StepReset,
    StreamPart,
    ThreadHandle,
    ThreadState,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.loop import _log
from pai.protocol import fold
from pai.runtime import _engines, _side_jobs
from pai.testing import Call, Hang, Reason, ScriptedModel

pytestmark = pytest.mark.anyio
Given = ReasoningSummaryGeneratorInput[Any]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once, and look for what others left all the time."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    monkeypatch.setattr(_side_jobs, "POLL", 0.02)
    monkeypatch.setattr(_log, "FIRST_LOOK", 2)
    monkeypatch.setattr(_side_jobs, "BACK_OFF", (0.01, 0.01, 0.01))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


def labelling(script: list[Any], generator: Callable[[Given], Any], **options: Any) -> Any:
    return define_agent(
        name="a",
        model=ScriptedModel(script, chunk=2),
        reasoning_summary=ReasoningSummaryConfig(generator=generator),
        **options,
    )


@tool
async def step(ctx: object) -> str:
    """Go on."""
    return "on"


async def until(thread: ThreadHandle, stop: Callable[[Event], bool], after: int = 0) -> list[Event]:
    found: list[Event] = []
    with anyio.fail_after(10):
        async for event in thread.events(after):
            found.append(event)
            if stop(event):
                break
    return found


async def idle(app: Pai) -> None:
    """Wait until no side job is worked on."""
    with anyio.fail_after(10):
        while app._core.side._here or await app._core.store.due_jobs():  # noqa: ASYNC110  # nothing tells it
            await anyio.sleep(0.001)


async def whole(app: Pai, thread: ThreadHandle) -> ThreadState:
    """The state when all is done; its events tell the same, from wherever one begins (R-25)."""
    await idle(app)
    state = await thread.state()
    events = await until(thread, lambda event: event.seq == state.cursor)
    assert fold(None, events) == state
    for cut in range(1, len(events)):
        assert fold(fold(None, events[:cut]), events[cut:]) == state
    return state


def labels(state: ThreadState) -> list[list[str | None]]:
    """The labels of each message of the assistant."""
    return [
        [part.summary for part in message.parts if isinstance(part, ReasoningPart)]
        for message in state.messages
        if message.role == "assistant"
    ]


async def test_no_label_by_default(store: str) -> None:
    """A-REASON-1."""
    agent = define_agent(name="a", model=ScriptedModel([[Reason("hm"), "so"]]))
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a")
        await (await thread.send("go")).result()
        assert labels(await whole(app, thread)) == [[None]]


async def test_each_part_gets_its_own(store: str) -> None:
    """A-REASON-1, A-REASON-2: by message and place, in all steps; kept for later runs."""
    seen: list[Given] = []

    async def generator(given: Given) -> str:
        seen.append(given)
        return f"{given.reasoning}!"

    script = [[Reason("one"), "x", Reason("two"), Call("step")], [Reason("three"), "y"], "z"]
    agent = labelling(
        script, generator, tools={"step": step}, runtime_context=lambda given: given.identity
    )
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t", identity="ada")
        run = await thread.send("go")
        await run.result()
        state = await whole(app, thread)
        assert labels(state) == [["one!", "two!"], ["three!"]]
        second = await thread.send("again")
        await second.result()
    (history,) = [request.messages for request in agent.model.requests[2:]]
    assert [[p.summary for p in m.parts if p.type == "reasoning"] for m in history[1:3]] == [
        ["one!", "two!"], ["three!"],
    ]  # fmt: skip
    ids = [message.id for message in state.messages[1:]]
    by_text = {given.reasoning: given for given in seen}
    places = [(given.message_id, given.reasoning_ordinal) for given in by_text.values()]
    assert sorted(places) == sorted([(ids[0], 0), (ids[0], 1), (ids[1], 0)])
    given = by_text["two"]
    assert (given.run_id, given.thread_id, given.operation) == (run.id, "t", "send")
    assert (given.runtime_context, given.thread.id) == ("ada", "t")
    assert given.started_at == state.runs[0].started_at
    assert not given.signal.is_set()


async def test_a_label_comes_while_the_step_goes_on(store: str) -> None:
    """A-REASON-1, R-11: without holding up the stream; in a snapshot too."""
    agent = labelling([[Reason("one"), "text", Hang()]], lambda given: "Thinking")
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("go")
        await until(thread, lambda event: event.type == "text-end")
        events = await until(thread, lambda event: event.type == "reasoning-summary")
        state = await thread.state()
        assert labels(state) == [["Thinking"]]
        assert fold(None, events).messages[-1].parts[0] == ReasoningPart("one", "Thinking")
        await run.cancel()
        await run.result()
        end = await whole(app, thread)
        assert labels(end) == [["Thinking"]]
        rest = await until(thread, lambda event: event.seq == end.cursor, state.cursor)
        assert fold(state, rest) == end


async def test_a_label_comes_after_the_run(store: str) -> None:
    """R-38: the run does not wait for it, and its handle stays as it is."""
    go_on = anyio.Event()

    async def generator(given: Given) -> str:
        await go_on.wait()
        return "Late"

    agent = labelling([[Reason("one"), "text"]], generator)
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("go")
        result = await run.result()
        state = await thread.state()
        assert labels(state) == [[None]]
        go_on.set()
        end = await whole(app, thread)
        assert labels(end) == [["Late"]]
        (event,) = await until(thread, lambda event: True, state.cursor)
        assert (event.type, event.run_id) == ("reasoning-summary", run.id)
        assert fold(state, [event]) == end
        assert [event.type async for event in run.events()][-1] == "run-finished"
        again = await run.result()
        assert (again.status, again.text) == (result.status, result.text)
        assert end.thread.updated_at == state.thread.updated_at


async def test_the_default_asks_the_runs_model(store: str) -> None:
    """A-REASON-3, A-MODEL-7."""

    def turn(request: ModelRequest) -> Any:
        asked = request.instructions and "thoughts" in request.instructions[0].content
        return '"On tides"' if asked else [Reason("The moon pulls."), "Twice a day."]

    model = ScriptedModel(turn)
    agent = define_agent(
        name="a", model=ModelSelection(model, ModelSettings(temperature=1)), reasoning_summary=True
    )
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go")).result()
        assert labels(await whole(app, thread)) == [["On tides"]]
    asked = model.requests[-1]
    assert asked.settings == ModelSettings()
    assert [message.text for message in asked.messages] == ["The moon pulls."]


async def test_a_failure_changes_nothing(store: str) -> None:
    """A-REASON-3: neither the run nor the other labels."""
    errors: list[BaseException] = []

    def generator(given: Given) -> str | None:
        if given.reasoning == "bad":
            raise RuntimeError("no")
        return None if given.reasoning == "none" else "fine"

    agent = labelling([[Reason("bad"), Reason("none"), Reason("good"), "x"]], generator)
    async with create_pai(agents={"a": agent}, store=store, on_runtime_error=errors.append) as app:
        thread = app.thread("a", thread_id="t")
        assert (await (await thread.send("go")).result()).status == "completed"
        await until(thread, lambda event: event.type == "reasoning-summary")
        with anyio.fail_after(10):
            while len(errors) < 4:  # noqa: ASYNC110  # four attempts
                await anyio.sleep(0.001)
        assert labels(await whole(app, thread)) == [[None, None, "fine"]]


async def test_labels_pass_transform_aside(store: str) -> None:
    """A-LIFE-1: before the first write."""

    class Hides:
        @hookimpl
        def transform_aside(self, item: AsideItem, run: RunContext[Any]) -> ReplaceValue | None:
            assert run.thread_id == "t"
            return ReplaceValue("hidden") if item.kind == "label" else None

    agent = labelling([[Reason("one"), "x"]], lambda given: "secret", lifecycle=Hides())
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go")).result()
        assert labels(await whole(app, thread)) == [["hidden"]]


class Again:
    """Takes the first try back once *ready*."""

    def __init__(self, ready: Callable[[], Any]) -> None:
        self._ready = ready

    @hookimpl
    async def wrap_model_call(
        self, step: StepContext[Any], call_model: Any
    ) -> AsyncIterator[StreamPart]:
        async for part in call_model(step.request):
            if part.type != "step-finish":
                yield part
        await self._ready()
        yield StepReset("again")
        async for part in call_model(step.request):
            yield part


@pytest.mark.parametrize("late", [False, True])
async def test_a_reset_takes_labels_along(store: str, late: bool) -> None:
    """R-25, R-37: those that are there, and those that are still being made."""
    old_made, go_on = anyio.Event(), anyio.Event()

    async def generator(given: Given) -> str:
        if given.reasoning == "old":
            old_made.set()
            if late:
                await go_on.wait()
        elif late:
            go_on.set()
        return given.reasoning.upper()

    async def ready() -> None:
        with anyio.fail_after(10):
            await old_made.wait()
            if not late:
                await until(thread, lambda event: event.type == "reasoning-summary")

    script = [[Reason("old"), "x"], ["y", Reason("new"), Reason("more")]]
    agent = labelling(script, generator, lifecycle=Again(ready))
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        assert (await (await thread.send("go")).result()).status == "completed"
        assert labels(await whole(app, thread)) == [["NEW", "MORE"]]
        events = await until(thread, lambda event: event.type == "run-finished")
    assert late == ("OLD" not in [getattr(event, "summary", "") for event in events])


async def test_a_takeover_takes_labels_along(tmp_path: Path) -> None:
    """R-13, R-25: of the step that is made again."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"

    async def hangs(given: Given) -> str:
        if given.reasoning == "two":
            await anyio.sleep_forever()
        return given.reasoning.upper()

    first = [[Reason("zero"), Call("step")], [Reason("one"), Reason("two"), Hang()]]
    agent = labelling(first, hangs, tools={"step": step})
    async with create_pai(agents={"a": agent}, store=url) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("go", run_id="r")
        await until(thread, lambda event: getattr(event, "summary", "") == "ONE")
    agent = labelling([[Reason("three"), "x"]], hangs, tools={"step": step})
    async with create_pai(agents={"a": agent}, store=url) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.run("r")
        with anyio.fail_after(10):
            assert (await run.result()).status == "completed"
        assert labels(await whole(app, thread)) == [["ZERO"], ["THREE"]]
