"""Runs that are cancelled or fail in the middle: what they leave (R-14, R-17, R-29)."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from pai import ModelError, RunContext, ToolCallPart, create_pai, define_agent, hookimpl, tool
from pai.testing import Call, Fail, Hang, Reason, ScriptedModel

from ..played import Played, play


def agent(model: Any, **fields: Any) -> Any:
    return define_agent(name="a", model=model, **fields)


def outcomes(played: Played) -> list[str | None]:
    return [
        part.outcome
        for message in played.state.messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]


async def cancel_at_text(run: Any) -> None:
    async for _ in run.text():
        await run.cancel("enough")


@pytest.mark.anyio
async def test_a_cancel_in_the_stream_keeps_what_there_is() -> None:
    """R-14, R-29"""
    turn: Any = [Reason("thinking"), Call("look", {}, "c"), "partial", Hang()]
    played = await play(agent(ScriptedModel([turn])), during=cancel_at_text)
    result = played.result
    assert (result.status, result.reason, result.text) == ("cancelled", "enough", "partial")
    assert outcomes(played) == ["interrupted"]
    assert played.types.count("run-finished") == 1
    assert played.types[-3:] == ["tool-error", "step-finished", "run-finished"]
    assert played.errors == []
    assert (played.state.runs[0].status, played.state.runs[0].reason) == ("cancelled", "enough")


@pytest.mark.anyio
@pytest.mark.parametrize("ends", ["cancel", "fail"])
async def test_open_text_and_calls_are_closed(ends: str) -> None:
    """R-14: in the same transaction that ends the run."""
    from pai.protocol import ReasoningStart, TextDelta, TextStart, ToolInputDelta, ToolInputStart

    class Half:
        provider = name = "half"
        profile = ScriptedModel().profile

        async def stream(self, request: Any) -> Any:
            yield [TextStart("t"), TextDelta("t", "half"), ReasoningStart("r")]
            yield [ToolInputStart("c", "look"), ToolInputDelta("c", '{"a":')]
            if ends == "fail":
                raise ModelError("broke", provider="half")
            await anyio.sleep_forever()

    async def cancel(run: Any) -> None:
        async for event in run.events():
            if event.type == "tool-input-delta":
                await run.cancel()

    played = await play(agent(Half()), during=cancel if ends == "cancel" else None)
    assert played.result.status == ("cancelled" if ends == "cancel" else "failed")
    text, call = played.state.messages[1].parts
    assert text.text == "half"
    assert (call.outcome, call.input, call.raw) == ("interrupted", None, '{"a":')
    ended = played.types[played.types.index("tool-input-delta") + 1 :]
    assert ended == [
        "text-end", "reasoning-end", "tool-call", "tool-error", "step-finished", "run-finished",
    ]  # fmt: skip


@pytest.mark.anyio
async def test_a_cancel_in_a_tool_interrupts_the_open_calls() -> None:
    """R-14, R-17: a finished sibling keeps its result."""
    stopped: list[str] = []
    settled: list[tuple[str, str]] = []

    @tool
    async def quick(ctx: Any) -> str:
        """Finish."""
        return "finished"

    @tool
    async def endless(ctx: Any) -> None:
        """Wait."""
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(ctx.signal.reason)

    class Watch:
        @hookimpl
        def tool_settled(self, result):
            settled.append((result.tool, result.outcome))

    async def cancel(run: Any) -> None:
        async for event in run.events():
            if event.type == "tool-output":
                await run.cancel("enough")

    model = ScriptedModel([[Call("endless"), Call("quick")], "next"])
    tools = {"quick": quick, "endless": endless}
    definition = agent(model, tools=tools, lifecycle=Watch())
    async with create_pai(agents={"a": definition}, plugins=()) as app:
        thread = app.thread("a")
        run = await thread.send("go")
        await cancel(run)
        assert (await run.result()).status == "cancelled"
        assert stopped == ["enough"]
        assert settled == [("quick", "completed"), ("endless", "interrupted")]
        parts = (await thread.state()).messages[1].parts
        assert [part.outcome for part in parts] == ["interrupted", "completed"]
        # The next run is given a history that every provider accepts.
        result = await (await thread.send("again")).result()
        assert result.text == "next"
        told = model.requests[-1].messages[1].parts
        assert [part.outcome for part in told] == ["interrupted", "completed"]


@pytest.mark.anyio
async def test_a_run_settles_though_a_sync_tool_goes_on_in_its_thread() -> None:
    started, release, ended = threading.Event(), threading.Event(), threading.Event()
    seen: list[object] = []

    @tool
    def blocks(ctx: Any) -> str:
        """Block."""
        started.set()
        try:
            seen.append(ctx.signal.wait(10))
            release.wait(10)
            try:
                ctx.write_data("note", "late")
            except Exception as error:
                seen.append(type(error).__name__)
        finally:
            ended.set()
        return "late"

    async def cancel(run: Any) -> None:
        await anyio.to_thread.run_sync(started.wait)
        await run.cancel("enough")
        assert (await run.result()).status == "cancelled"
        assert not ended.is_set()
        release.set()
        await anyio.to_thread.run_sync(ended.wait)

    model = ScriptedModel([[Call("blocks")], "never"])
    definition = agent(model, tools={"blocks": blocks}, ui_data={"note": str})
    played = await play(definition, during=cancel)
    assert seen == [True, "LeaseLost"]
    assert outcomes(played) == ["interrupted"]
    assert "late" not in played.seen


@pytest.mark.anyio
async def test_a_tool_that_swallows_the_cancel_is_finished_and_the_run_is_over() -> None:
    reached = anyio.Event()

    @tool
    async def stubborn(ctx: Any) -> str:
        """Finish in any case."""
        reached.set()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            pass
        return "finished"

    async def cancel(run: Any) -> None:
        await reached.wait()
        await run.cancel()

    model = ScriptedModel([[Call("stubborn")], "never"])
    played = await play(agent(model, tools={"stubborn": stubborn}), during=cancel)
    assert played.result.status == "cancelled"
    assert outcomes(played) == ["completed"]
    assert len(model.requests) == 1


@pytest.mark.anyio
async def test_a_failure_in_the_middle_keeps_what_there_is() -> None:
    """R-14"""
    usage: list[Any] = []

    class Watch:
        @hookimpl
        def run_settled(self, result):
            usage.append(result.usage)

    error = ModelError("broke", provider="p", code="server_error", status=500)
    turns: Any = [[Call("look")], ["partial", Fail(error)]]
    played = await play(agent(ScriptedModel(turns), lifecycle=Watch()))
    assert played.errors == [error]
    result = played.result
    assert (result.status, result.text) == ("failed", "partial")
    assert (result.error or {})["code"] == "server_error"
    assert usage[0].total_tokens == 2  # of the step that was finished
    assert played.of("step-finished")[-1].reason == "error"
    assert "broke" not in played.seen


@pytest.mark.anyio
async def test_closing_the_runtime_cancels_a_run_that_nobody_can_go_on_with() -> None:
    reached = anyio.Event()
    told: list[str] = []

    class Watch:
        @hookimpl
        async def prepare_run(self, run: RunContext[Any]):
            reached.set()
            await run.signal.aborted()

        @hookimpl
        async def run_settled(self, result):
            # The runtime closes meanwhile: it is told all the same.
            await anyio.lowlevel.checkpoint()
            told.append(result.status)

    with anyio.fail_after(10):
        async with create_pai(
            agents={"a": agent(ScriptedModel(), lifecycle=Watch())}, plugins=()
        ) as app:
            await app.thread("a").send("go")
            await reached.wait()
    assert told == ["cancelled"]


@pytest.mark.anyio
async def test_observers_are_told_though_the_runtime_closes_at_once() -> None:
    """R-32"""
    told: list[str] = []

    class Watch:
        @hookimpl
        async def step_finished(self, outcome):
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            told.append(outcome.reason)

        @hookimpl
        async def run_settled(self, result):
            for _ in range(5):
                await anyio.lowlevel.checkpoint()
            told.append(result.status)

    await play(agent(ScriptedModel(["hi"]), lifecycle=Watch()))
    assert told == ["stop", "completed"]


@pytest.mark.anyio
async def test_a_cancel_after_the_end_changes_nothing() -> None:
    """R-8: it is idempotent; the end that is written holds."""
    reached, release = anyio.Event(), anyio.Event()
    told: list[str] = []

    class Watch:
        @hookimpl
        async def step_finished(self, outcome):
            reached.set()
            await release.wait()

        @hookimpl
        def run_settled(self, result):
            told.append(result.status)

    async def cancel(run: Any) -> None:
        await reached.wait()
        await run.cancel("too late")
        release.set()

    played = await play(agent(ScriptedModel(["hi"]), lifecycle=Watch()), during=cancel)
    assert played.result.status == "completed"
    assert (told, played.errors) == (["completed"], [])
