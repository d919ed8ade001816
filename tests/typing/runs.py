"""What type checkers know of a run: its hooks and its events. Checked by mypy, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import assert_type

import attrs

from pai import (
    Diagnostic,
    Event,
    MetadataPatch,
    Respond,
    RunContext,
    RunHandle,
    RunPatch,
    RunResult,
    SkipCall,
    StepContext,
    StepPatch,
    StreamPart,
    TextDelta,
    ToolCallContext,
    ToolOutput,
    ToolResultContext,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    run_once_sync,
)
from pai.schema import JsonValue


@attrs.frozen
class Ctx:
    allowed: bool


class Quota:
    """A hook knows the context of the agents it is for."""

    @hookimpl
    async def prepare_run(self, run: RunContext[Ctx]) -> RunPatch | Respond | None:
        assert_type(run.runtime_context, Ctx)
        assert_type(run.id, str)
        if not run.runtime_context.allowed:
            return Respond("No.", outcome="blocked", reason="quota_exceeded")
        return RunPatch(run_metadata=MetadataPatch(public={"rating": "up"}))

    @hookimpl(tryfirst=True)
    def prepare_model_step(self, step: StepContext[Ctx]) -> StepPatch | None:
        assert_type(step.run.runtime_context, Ctx)
        return StepPatch(tools=["a"])

    @hookimpl
    async def transform_step_stream(
        self, step: StepContext[Ctx], stream: AsyncIterator[StreamPart]
    ) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if isinstance(part, TextDelta):
                assert_type(part.text, str)
            yield part

    @hookimpl
    def before_tool_call(self, call: ToolCallContext[Ctx]) -> SkipCall | None:
        assert_type(call.call_id, str)
        return SkipCall({"a": 1})

    @hookimpl
    def after_tool_result(self, result: ToolResultContext[Ctx]) -> ToolOutput | None:
        return ToolOutput(result.output)


def kept(run: RunContext[Ctx]) -> None: ...


# The marker leaves a function as it is.
assert_type(hookimpl(kept)(None), None)  # type: ignore[arg-type]  # it still wants a run

agent = define_agent(name="a", model="demo", lifecycle=compose_lifecycle(Quota()))


def seen(event: Event) -> object:
    """The type of an event says which fields it has."""
    if event.type == "text-delta":
        assert_type(event.text, str)
    elif event.type == "tool-call":
        assert_type(event.tool, str)
    elif event.type == "step-reset":
        assert_type(event.reason, str)
    elif event.type == "run-finished":
        assert_type(event.stop_reason, str | None)
    return event


async def use(handle: RunHandle) -> None:
    async for event in handle.events():
        assert_type(event.seq, int)
        if event.type == "text-delta":
            assert_type(event.text, str)
    async for delta in handle.text():
        assert_type(delta, str)
    async for so_far in handle.partial_output():
        assert_type(so_far, JsonValue)
    async for ctx in handle.partial_output(Ctx):
        assert_type(ctx, Ctx)
    async for several in handle.partial_output(list[Ctx]):
        assert_type(several, list[Ctx])
    async for either in handle.partial_output(Ctx | None):
        assert_type(either, object)
    assert_type(await handle.result(), RunResult)


async def once() -> None:
    assert_type(await run_once(agent, "hello"), RunResult)
    assert_type(run_once_sync(agent, "hello").text, str)
    async with create_pai(agents={"main": agent}) as app:
        thread = app.thread("main")
        assert_type(await thread.send("hello"), RunHandle)
        assert_type(await thread.command("rate", {"stars": 5}), JsonValue)
        assert_type((await thread.state()).diagnostics, tuple[Diagnostic, ...])
        await thread.rename("Sums")
        await thread.update_metadata(public={"rating": "up"}, replace=True)
        await thread.delete()
