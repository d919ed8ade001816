"""Hooks that raise, hang, answer nonsense or hide a cancellation."""

from __future__ import annotations

import asyncio
from typing import Any

import anyio
import pytest

from pai import (
    PluginError,
    Respond,
    RunPatch,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.lifecycle import Lifecycle, Origin
from pai.testing import Call, ScriptedModel

from ..played import play

SECRET = "hunter2"


@tool
def look(ctx: Any) -> str:
    """Look."""
    ctx.write_data("note", "x")
    return "seen"


def agent(*plugins: object, turns: Any = None) -> Any:
    return define_agent(
        name="a",
        model=ScriptedModel(turns or [[Call("look")], "done"]),
        tools={"look": look},
        ui_data={"note": str},
        lifecycle=compose_lifecycle(*plugins),
    )


def broken(phase: str, answer: object = None, *, is_async: bool = False) -> object:
    def fail(self: Any, *args: Any) -> Any:
        if answer is None:
            raise ValueError(SECRET)
        return answer

    async def fail_later(self: Any, *args: Any) -> Any:
        return fail(self)

    hook = hookimpl(fail_later if is_async else fail)
    plugin = type("Bad", (), {"name": "bad", phase: hook})()
    return Lifecycle((plugin,), {id(plugin): Origin("bad", "pai-bad", "1.0", plugin)})


DECIDING = [
    "prepare_run",
    "prepare_model_step",
    "wrap_model_call",
    "transform_step_stream",
    "rewrite_tool_input",
    "before_tool_call",
    "after_tool_result",
    "transform_aside",
]
OBSERVING = ["run_started", "step_finished", "tool_settled", "run_settled"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("phase", "is_async"),
    [(phase, False) for phase in DECIDING]
    + [(phase, True) for phase in DECIDING if phase != "transform_aside"],
)
async def test_a_hook_that_raises_fails_the_run(phase: str, is_async: bool) -> None:
    """R-33, A-RUN-3: the error names plugin, distribution and phase; the client sees a code."""
    played = await play(agent(broken(phase, is_async=is_async)))
    assert played.result.status == "failed"
    error = played.result.error or {}
    assert error["code"] == "plugin_error"
    assert error["id"] == played.result.run_id
    assert SECRET not in played.seen
    assert played.types.count("run-finished") == 1
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert (told.plugin, told.distribution, told.phase) == ("bad", "pai-bad", phase)
    assert isinstance(told.__cause__, ValueError)


@pytest.mark.anyio
@pytest.mark.parametrize("phase", ["accept_message"])
async def test_accept_message_that_raises_writes_nothing(phase: str) -> None:
    async with create_pai(agents={"a": agent(broken(phase))}, plugins=()) as app:
        thread = app.thread("a")
        with pytest.raises(PluginError):
            await thread.send("go")
        assert (await app.threads("a")).items == ()


@pytest.mark.anyio
@pytest.mark.parametrize("phase", DECIDING)
async def test_a_wrong_answer_fails_the_run_and_is_named(phase: str) -> None:
    played = await play(agent(broken(phase, answer=42)))
    assert played.result.status == "failed"
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert f"returned int from {phase}; it may return" in str(told)
    assert "of pai-bad" in str(told)


@pytest.mark.anyio
@pytest.mark.parametrize("phase", OBSERVING)
async def test_what_an_observer_raises_is_reported_and_changes_nothing(phase: str) -> None:
    """R-32"""
    seen: list[str] = []
    after = type(
        "After", (), {"name": "after", phase: hookimpl(lambda self, *args: seen.append("x"))}
    )()
    played = await play(agent(broken(phase, is_async=True), after))
    assert played.result.status == "completed"
    assert played.result.text == "done"
    assert seen
    for told in played.errors:
        assert isinstance(told, PluginError)
        assert told.phase == phase
        assert isinstance(told.__cause__, ValueError)
    assert len(played.errors) == len(seen)


@pytest.mark.anyio
async def test_observers_are_told_whatever_the_end() -> None:
    """R-32: no error, skip or patch suppresses them."""
    seen: list[str] = []

    class Watch:
        @hookimpl
        def run_started(self, run):
            seen.append("started")

        @hookimpl
        def run_settled(self, run, result):
            seen.append(result.status)

    def context(_: object) -> object:
        raise RuntimeError(SECRET)

    definition = define_agent(
        name="a", model=ScriptedModel(), runtime_context=context, lifecycle=Watch()
    )
    played = await play(definition)
    assert seen == ["started", "failed"]
    assert SECRET not in played.seen
    seen.clear()
    await play(agent(Watch(), broken("prepare_run")))
    assert seen == ["started", "failed"]


@pytest.mark.anyio
async def test_observers_cannot_change_what_they_are_shown() -> None:
    """R-32"""

    class Meddles:
        @hookimpl
        def run_started(self, run):
            run.runtime_context = "mine"

        @hookimpl
        def step_finished(self, step):
            step.run.messages.append(step)

        @hookimpl
        def tool_settled(self, result):
            result.output = "mine"

        @hookimpl
        def run_settled(self, run):
            run.metadata = None

    definition = agent(Meddles())
    played = await play(definition)
    assert played.result.text == "done"
    assert {type(error.__cause__) for error in played.errors} == {AttributeError}
    call = definition.model.requests[1].messages[-1].parts[0]
    assert call.output == "seen"


@pytest.mark.anyio
async def test_a_patch_cannot_be_made_by_assignment() -> None:
    class Assigns:
        name = "assigns"

        @hookimpl
        def prepare_model_step(self, step):
            step.request = None

    (told,) = (await play(agent(Assigns()))).errors
    assert "StepContext.request is read-only: return a patch" in str(told.__cause__)


# ------------------------------------------------------------------------ time limits


class Slow:
    """Its hooks never answer."""

    name = "slow"
    hook_timeout = 0.01

    def __init__(self, swallow: bool = False) -> None:
        self.swallow = swallow

    async def wait(self) -> None:
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            if not self.swallow:
                raise


@pytest.mark.anyio
@pytest.mark.parametrize("swallow", [False, True])
async def test_a_hook_may_have_a_time_limit(swallow: bool) -> None:
    """R-35"""

    class Plugin(Slow):
        @hookimpl
        async def prepare_run(self, run):
            await self.wait()

    played = await play(agent(Plugin(swallow)))
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert (told.plugin, told.phase) == ("slow", "prepare_run")
    assert "did not answer within 0.01 s" in str(told)
    assert isinstance(told.__cause__, TimeoutError)


@pytest.mark.anyio
async def test_a_slow_observer_delays_a_run_no_longer_than_its_limit() -> None:
    class Plugin(Slow):
        @hookimpl
        async def run_settled(self, run):
            await self.wait()

    played = await play(agent(Plugin()))
    assert played.result.status == "completed"
    (told,) = played.errors
    assert "did not answer within" in str(told)


@pytest.mark.anyio
async def test_the_limit_leaves_quick_and_sync_hooks_and_streams_alone() -> None:
    class Plugin(Slow):
        hook_timeout = 5.0

        @hookimpl
        def prepare_run(self, run):
            return RunPatch(instructions="be brief")

        @hookimpl
        async def prepare_model_step(self, step):
            return None

        @hookimpl
        async def transform_step_stream(self, step, stream):
            async for part in stream:
                yield part

    definition = agent(Plugin())
    played = await play(definition)
    assert (played.result.text, played.errors) == ("done", [])
    assert definition.model.requests[0].instructions[0].content == "be brief"


# ------------------------------------------------------------------------ cancellation


def swallowing(phase: str, reached: anyio.Event, value: object = None) -> object:
    async def hook(self: Any, *args: Any) -> object:
        reached.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return value

    return type("Swallows", (), {"name": "swallows", phase: hookimpl(hook)})()


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("phase", "value"),
    [
        ("run_started", None),
        ("prepare_run", Respond("all is well")),
        ("prepare_run", None),
        ("prepare_model_step", Respond("all is well")),
        ("before_tool_call", None),
        ("after_tool_result", None),
        ("tool_settled", None),
        ("step_finished", None),
    ],
)
async def test_a_cancellation_cannot_be_swallowed(phase: str, value: object) -> None:
    """R-35"""
    reached = anyio.Event()

    async def cancel(run: Any) -> None:
        await reached.wait()
        await run.cancel("enough")

    played = await play(agent(swallowing(phase, reached, value)), during=cancel)
    assert (played.result.status, played.result.reason) == ("cancelled", "enough")
    assert played.types.count("run-finished") == 1
    assert played.errors == []


@pytest.mark.anyio
async def test_a_cancellation_turned_into_an_error_is_a_cancellation() -> None:
    """R-35: the error is reported all the same."""
    reached = anyio.Event()

    class Turns:
        name = "turns"

        @hookimpl
        async def prepare_run(self, run):
            reached.set()
            try:
                await anyio.sleep_forever()
            except BaseException:
                raise ValueError(SECRET) from None

    async def cancel(run: Any) -> None:
        await reached.wait()
        await run.cancel("enough")

    played = await play(agent(Turns()), during=cancel)
    assert played.result.status == "cancelled"
    assert [type(error) for error in played.errors] == [PluginError]


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("phase", ["prepare_run", "run_started", "tool_settled"])
async def test_a_hook_s_own_cancelled_task_is_an_error_of_the_hook(phase: str) -> None:
    """R-17 for hooks: nobody cancelled the run."""

    async def hook(self: Any, *args: Any) -> None:
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task

    plugin = type("Stray", (), {"name": "stray", phase: hookimpl(hook)})()
    played = await play(agent(plugin))
    assert played.result.status == ("failed" if phase == "prepare_run" else "completed")
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert "raised CancelledError" in str(told)
