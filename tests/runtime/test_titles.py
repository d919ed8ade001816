"""Titles of threads, as they are made after runs (A-TITLE, A-MODEL-7, R-38)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    AgentBehaviorInput,
    AsideItem,
    Event,
    ModelSelection,
    ModelSettings,
    Pai,
    PluginError,
    ReplaceValue,
    Respond,
    RunContext,
    ThreadHandle,
    ThreadState,
    ThreadTitleConfig,
    ThreadTitleGeneratorInput,
    TitleRefresh,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.protocol import fold
from pai.runtime import _engines, _side_jobs
from pai.testing import Fail, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Try again at once, and look for what others left all the time."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    monkeypatch.setattr(_side_jobs, "POLL", 0.02)
    monkeypatch.setattr(_side_jobs, "BACK_OFF", (0.01, 0.01, 0.01))


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


class Told:
    """Takes errors; more than those expected fail the test that looks."""

    def __init__(self, enough: int = 0) -> None:
        self.errors: list[BaseException] = []
        self.all = anyio.Event()
        self._enough = enough

    def __call__(self, error: BaseException) -> None:
        self.errors.append(error)
        if len(self.errors) == self._enough:
            self.all.set()


def echo() -> ScriptedModel:
    """A model that answers for good."""
    return ScriptedModel(lambda request: f"answer {len(request.messages)}")


def counted(config: Any = None, **options: Any) -> tuple[Any, list[ThreadTitleGeneratorInput[Any]]]:
    """An agent whose titles are counted, and what they were made from."""
    seen: list[ThreadTitleGeneratorInput[Any]] = []

    async def generator(given: ThreadTitleGeneratorInput[Any]) -> str:
        seen.append(given)
        return f"title {len(seen)}"

    titles = attrs.evolve(config or ThreadTitleConfig(), generator=generator)
    return define_agent(name="a", model=echo(), thread_titles=titles, **options), seen


async def say(thread: ThreadHandle, text: str = "hello") -> None:
    await (await thread.send(text)).result()


async def titled(thread: ThreadHandle, title: str) -> ThreadState:
    """The state once the thread has the title, which every watcher sees as well (R-25)."""
    events: list[Event] = []
    with anyio.fail_after(10):
        async for event in thread.events():
            events.append(event)
            if event.type == "thread-updated" and event.title == title:
                break
    state = await thread.state()
    assert fold(None, events[: state.cursor]) == state
    for cut in range(1, len(events)):
        assert fold(fold(None, events[:cut]), events[cut:]) == state
    assert (state.thread.title, state.thread.title_source) == (title, "generated")
    return state


async def idle(app: Pai) -> None:
    """Wait until no side job is worked on."""
    with anyio.fail_after(10):
        while app._core.side._here or await app._core.store.due_jobs():  # noqa: ASYNC110  # nothing tells it
            await anyio.sleep(0.001)


async def test_no_title_by_default(store: str) -> None:
    """A-TITLE-1."""
    async with create_pai(agents={"a": define_agent(name="a", model=echo())}, store=store) as app:
        thread = app.thread("a")
        await say(thread)
        assert not app._core.side.used
        assert (await thread.state()).thread.title is None


async def test_the_default_asks_the_runs_model_for_one(store: str) -> None:
    """A-TITLE-1, A-TITLE-2, A-MODEL-7: a bare model, and canonical text."""
    model = ScriptedModel(["Fine.", ' "Small\n talk" '])
    agent = define_agent(
        name="a",
        model=ModelSelection(model, ModelSettings(temperature=0.3), {"scripted": {"x": 1}}),
        instructions="Be kind.",
        thread_titles=True,
    )
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        await say(thread, "How are you?")
        await titled(thread, "Small talk")
        (listed,) = (await app.threads("a")).items
        assert (listed.title, listed.title_source) == ("Small talk", "generated")
        await say(app.thread("a", thread_id="t"))
        await idle(app)
    first, second, *_ = model.requests
    assert (first.settings.temperature, first.provider_options) == (0.3, {"scripted": {"x": 1}})
    assert (second.settings, second.provider_options) == (ModelSettings(), {})
    assert second.instructions[0].content.startswith("Write a title")
    assert second.messages[0].text == "user: How are you?\n\nassistant: Fine."
    # The second run was for the answer alone: one title is enough.
    assert len(model.requests) == 3


async def test_what_a_generator_is_given(store: str) -> None:
    """A-TITLE-4: inputs are canonical text; model and instructions are passed by."""
    asked: list[object] = []
    config = ThreadTitleConfig(model=asked.append, instructions=asked.append)  # type: ignore[arg-type]  # never asked
    agent, seen = counted(config, runtime_context=lambda given: {"user": given.identity})
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t", identity="ada")
        run = await thread.send("hello")
        await run.result()
        state = await titled(thread, "title 1")
    (given,) = seen
    assert given.runtime_context == {"user": "ada"}
    assert (given.run_id, given.thread_id, given.operation) == (run.id, "t", "send")
    assert (given.thread.id, given.thread.title) == ("t", None)
    assert given.started_at == state.runs[0].started_at
    assert [message.text for message in given.messages] == ["hello", "answer 1"]
    assert not given.signal.is_set()
    assert asked == []


async def test_model_and_instructions_may_be_functions(store: str) -> None:
    """A-MODEL-7, A-TITLE-4: asked for each call, with a model that inherits nothing."""
    asked: list[Any] = []
    model = ScriptedModel(["one", "two"])

    async def pick(given: AgentBehaviorInput[Any]) -> ScriptedModel:
        asked.append((given.thread_id, given.identity))
        return model

    def words(given: ThreadTitleGeneratorInput[Any]) -> str:
        return f"Be short, {len(given.messages)}."

    config = ThreadTitleConfig("refresh", model=pick, instructions=words)
    agent = define_agent(name="a", model=echo(), thread_titles=config)
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t", identity="ada")
        await say(thread)
        await titled(thread, "one")
        await say(thread)
        await titled(thread, "two")
    assert asked == [("t", "ada")] * 2
    instructions = [request.instructions[0].content for request in model.requests]
    assert instructions == ["Be short, 2.", "Be short, 4."]


async def test_only_after_runs_that_completed(store: str) -> None:
    """A-TITLE-2."""

    class Gate:
        @hookimpl
        def prepare_run(self, run: RunContext[Any]) -> Respond | None:
            text = run.input.text if run.input is not None else ""
            return Respond("No.", outcome="blocked") if text == "blocked" else None

    script: list[Any] = [[Fail()], ["x", Hang()], "fine"]
    told = Told()
    agent, seen = counted(lifecycle=Gate())
    agent = attrs.evolve(agent, model=ScriptedModel(script))
    async with create_pai(agents={"a": agent}, store=store, on_runtime_error=told) as app:
        thread = app.thread("a", thread_id="t")
        await say(thread, "failed")
        await say(thread, "blocked")
        run = await thread.send("cancelled")
        async for _ in run.text():
            await run.cancel()
        await run.result()
        await idle(app)
        assert seen == []
        await say(thread, "completed")
        state = await titled(thread, "title 1")
    statuses = [run.status for run in state.runs]
    assert statuses == ["failed", "blocked", "cancelled", "completed"]
    assert len(told.errors) == 1


@pytest.mark.parametrize(
    ("refresh", "after"),
    [
        (None, [1, 2, 3, 4, 5]),
        (TitleRefresh(after_runs=2), [1, 3, 5]),
        (TitleRefresh(after_messages=6), [1, 4]),
        (TitleRefresh(after_messages=6, after_runs=1), [1, 4]),
        (TitleRefresh(after_runs=1, min_age=3600), [1]),
        (TitleRefresh(min_age=0.0), [1, 2, 3, 4, 5]),
    ],
)
async def test_all_thresholds_must_be_met(
    store: str, refresh: TitleRefresh | None, after: list[int]
) -> None:
    """A-TITLE-1, A-TITLE-4: a generated title is made again when all that is given is met."""
    agent, seen = counted(ThreadTitleConfig("refresh", refresh))
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        found = []
        for number in range(1, 6):
            await say(thread)
            await idle(app)
            if len(seen) > len(found):
                found.append(number)
    assert found == after


@pytest.mark.parametrize(
    ("config", "source", "replaced"),
    [
        (ThreadTitleConfig(), None, True),
        (ThreadTitleConfig(), "generated", False),
        (ThreadTitleConfig(overwrite="generated"), "generated", True),
        (ThreadTitleConfig(overwrite="generated"), "manual", False),
        (ThreadTitleConfig(overwrite="always"), "manual", True),
        (ThreadTitleConfig("refresh"), "generated", True),
        (ThreadTitleConfig("refresh"), "manual", False),
        (ThreadTitleConfig("refresh", overwrite="empty"), "generated", False),
    ],
)
@pytest.mark.parametrize("late", [False, True])
async def test_what_may_be_replaced(
    config: ThreadTitleConfig, source: str | None, replaced: bool, late: bool
) -> None:
    """A-TITLE-3: also where the other title came while this one was made."""
    going, go_on = anyio.Event(), anyio.Event()

    async def generator(given: ThreadTitleGeneratorInput[Any]) -> str:
        going.set()
        await go_on.wait()
        return "new"

    agent = define_agent(
        name="a", model=echo(), thread_titles=attrs.evolve(config, generator=generator)
    )
    async with create_pai(agents={"a": agent}) as app:
        thread = app.thread("a", thread_id="t")
        head: Any = None

        def retitle() -> None:
            if source is not None:
                head.title, head.title_source = "old", source

        store: Any = app._core.store
        run = await thread.send("hello")
        head = next(iter(store._threads.values())).head
        if not late:
            retitle()
        await run.result()
        if late:
            with anyio.fail_after(10):
                await going.wait()
            retitle()
        go_on.set()
        await idle(app)
        title = (await thread.state()).thread.title
    assert title == ("new" if replaced else "old")
    assert going.is_set() == (replaced or late)


async def test_a_failure_is_tried_again_and_given_up(store: str) -> None:
    """A-TITLE-4, R-38: each attempt is reported; the run, its handle and the thread are as they were."""
    told, attempts = Told(4), []

    def generator(given: ThreadTitleGeneratorInput[Any]) -> str:
        attempts.append(given.run_id)
        raise RuntimeError(f"secret {len(attempts)}")

    agent = define_agent(
        name="a", model=echo(), thread_titles=ThreadTitleConfig(generator=generator)
    )
    async with create_pai(agents={"a": agent}, store=store, on_runtime_error=told) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("hello")
        result = await run.result()
        cursor = (await thread.state()).cursor
        with anyio.fail_after(10):
            await told.all.wait()
        await idle(app)
        state = await thread.state()
        assert (state.cursor, state.thread.title) == (cursor, None)
        assert (await run.result()).message == result.message
        assert result.status == "completed"
        assert (await (await thread.send("again")).result()).status == "completed"
    assert [str(error) for error in told.errors[:4]] == [f"secret {n}" for n in range(1, 5)]
    assert set(attempts[:4]) == {run.id}


async def test_what_a_generator_makes_of_nothing(store: str) -> None:
    """A-TITLE-4: ``None`` leaves the title as it is; the next run asks again."""
    answers = iter([None, "  ", "at last"])
    agent = define_agent(
        name="a",
        model=echo(),
        thread_titles=ThreadTitleConfig(generator=lambda given: next(answers)),
    )
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        for _ in range(2):
            await say(thread)
            await idle(app)
            assert (await thread.state()).thread.title is None
        await say(thread)
        await titled(thread, "at last")


class Shouts:
    """Changes titles, and breaks on one."""

    @hookimpl
    def transform_aside(self, item: AsideItem, run: RunContext[Any]) -> ReplaceValue | None:
        assert run.thread_id == "t"
        if item.kind != "title":
            return None
        if item.value == "bad":
            raise RuntimeError("no")
        return ReplaceValue(str(item.value).upper())


async def test_titles_pass_transform_aside(store: str) -> None:
    """A-LIFE-1: before the first write; a title that a hook fails on is never written."""
    told, answers = Told(), iter(["bad", "good"])
    agent = define_agent(
        name="a",
        model=echo(),
        thread_titles=ThreadTitleConfig(generator=lambda given: next(answers)),
        lifecycle=Shouts(),
    )
    async with create_pai(agents={"a": agent}, store=store, on_runtime_error=told) as app:
        thread = app.thread("a", thread_id="t")
        await say(thread)
        await titled(thread, "GOOD")
    (error,) = told.errors
    assert isinstance(error, PluginError)
    assert error.phase == "transform_aside"


async def test_a_title_delays_no_run(store: str) -> None:
    """R-38: runs come and go while one is made."""
    asked = anyio.Event()

    async def generator(given: ThreadTitleGeneratorInput[Any]) -> str:
        asked.set()
        await anyio.sleep_forever()
        return "never"

    agent = define_agent(
        name="a", model=echo(), thread_titles=ThreadTitleConfig(generator=generator)
    )
    async with create_pai(agents={"a": agent}, store=store) as app:
        thread = app.thread("a", thread_id="t")
        with anyio.fail_after(10):
            await say(thread)
            await asked.wait()
            for _ in range(3):
                await say(thread)
    # Closing does not wait for it either.


async def test_a_restart_goes_on_with_it(tmp_path: Path) -> None:
    """R-38, A-MODEL-7: elsewhere the context is built again, with the stored identity."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    asked = anyio.Event()
    contexts: list[object] = []

    def agent(generator: Any = None, model: Any = None) -> Any:
        async def pick(given: AgentBehaviorInput[Any]) -> Any:
            contexts.append((given.runtime_context, given.identity))
            return model or echo()

        return define_agent(
            name="a",
            model=pick,
            runtime_context=lambda given: f"context of {given.identity}",
            thread_titles=ThreadTitleConfig(generator=generator),
        )

    async def hangs(given: ThreadTitleGeneratorInput[Any]) -> str:
        asked.set()
        await given.signal.aborted()
        await anyio.sleep_forever()
        return "never"

    async with create_pai(agents={"a": agent(hangs)}, store=url) as app:
        await say(app.thread("a", thread_id="t", identity="ada"))
        with anyio.fail_after(10):
            await asked.wait()
    contexts.clear()
    model = ScriptedModel(["A new day"])
    # Given back, so that nobody waits for the lease.
    async with create_pai(agents={"a": agent(model=model)}, store=url, lease=3600) as app:
        await titled(app.thread("a", thread_id="t", identity="ada"), "A new day")
    assert contexts == [("context of ada", "ada")]
    assert model.requests[0].messages[0].text == "user: hello\n\nassistant: answer 1"
