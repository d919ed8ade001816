"""Tool calls: what is run, how it ends, and what the model is told."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    AgentToolConfig,
    DefinitionError,
    FatalToolError,
    InvalidInput,
    ToolCallPart,
    ToolError,
    ToolRetry,
    define_agent,
    define_tool,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..played import Played, play

SECRET = "hunter2"


@tool
def add(ctx: Any, a: int, b: int = 1) -> int:
    """Add."""
    return a + b


def agent(tools: dict[str, Any], *turns: Any, **fields: Any) -> Any:
    return define_agent(name="a", model=ScriptedModel([*turns, "done"]), tools=tools, **fields)


def calls(played: Played) -> list[ToolCallPart]:
    return [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]


async def one(tools: dict[str, Any], call: Call, **fields: Any) -> tuple[ToolCallPart, Played]:
    """Play a run with this one call, and see that the model is told what is stored."""
    definition = agent(tools, [call], **fields)
    played = await play(definition)
    assert played.result.text == "done", played.errors
    (part,) = calls(played)
    told = definition.model.requests[1].messages[-1].parts[0]
    assert (told.outcome, told.output, told.error) == (part.outcome, part.output, part.error)
    return part, played


@tool
def now(ctx: Any) -> str:
    """Tell the time."""
    return "noon"


# ------------------------------------------------------------------------ how it ends


def raising(error: BaseException, is_async: bool = False) -> Any:
    def fail(ctx: Any) -> str:
        """Fail."""
        raise error

    async def fail_later(ctx: Any) -> str:
        """Fail."""
        raise error

    return tool(fail_later if is_async else fail)


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ToolError("No such city."), "No such city."),
        (ToolRetry("Unknown city."), "Unknown city. Call the tool again with other input."),
        (ValueError(SECRET), "ValueError: the tool 'bad' failed."),
        (SystemExit(SECRET), "SystemExit: the tool 'bad' failed."),
    ],
)
async def test_what_the_model_is_told_of_an_exception(
    error: BaseException, text: str, is_async: bool
) -> None:
    """R-18: the text of an unexpected exception goes to `on_runtime_error` alone."""
    part, played = await one({"bad": raising(error, is_async)}, Call("bad"))
    assert (part.outcome, part.error) == ("failed", text)
    expected = isinstance(error, (ToolError, ToolRetry))
    assert played.errors == ([] if expected else [error])
    assert SECRET not in played.seen


@pytest.mark.anyio
async def test_a_fatal_error_ends_the_run_when_the_siblings_have_settled() -> None:
    """R-17, R-18"""
    gate = anyio.Event()

    @tool
    async def slow(ctx: Any) -> str:
        """Wait."""
        await gate.wait()
        return "slow"

    @tool
    async def fatal(ctx: Any) -> str:
        """End the run."""
        gate.set()
        raise FatalToolError(SECRET)

    definition = agent({"slow": slow, "fatal": fatal}, [Call("slow"), Call("fatal")])
    played = await play(definition)
    assert played.result.status == "failed"
    assert (played.result.error or {})["code"] == "fatal_tool_error"
    assert [part.outcome for part in calls(played)] == ["completed", "failed"]
    assert len(definition.model.requests) == 1
    assert [type(error) for error in played.errors] == [FatalToolError]
    assert SECRET not in played.seen
    assert played.types[-1] == "run-finished"


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_cancelled_tool_is_not_a_cancelled_run() -> None:
    """R-17"""

    @tool
    async def stray(ctx: Any) -> str:
        """Wait for a task that was cancelled."""
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task
        return "never"

    definition = agent({"stray": stray, "now": now}, [Call("stray"), Call("now")], [Call("stray")])
    played = await play(definition)
    assert played.result.text == "done"
    assert [part.outcome for part in calls(played)] == ["cancelled", "completed", "cancelled"]
    assert {type(error) for error in played.errors} == {asyncio.CancelledError}


# ------------------------------------------------------------------------ output


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "output"),
    [
        (None, None), (True, True), (1.5, 1.5), ("x", "x"), ({"a": [1]}, {"a": [1]}), ([], []),
    ],
)  # fmt: skip
async def test_outputs_without_a_schema(value: object, output: object) -> None:
    @tool
    def give(ctx: Any) -> Any:
        """Give."""
        return value

    part, _ = await one({"give": give}, Call("give"))
    assert (part.outcome, part.output) == ("completed", output)


@pytest.mark.anyio
@pytest.mark.parametrize("value", [object(), {1: 2}, float("nan"), (1, 2), {"a": {1}}, b"x"])
async def test_an_output_that_is_no_json_fails_the_call(value: object) -> None:
    """A-TOOL-6"""

    @tool
    def give(ctx: Any) -> Any:
        """Give."""
        return value

    part, played = await one({"give": give}, Call("give"))
    assert (part.outcome, part.error) == ("failed", "The output of 'give' does not fit its schema.")
    assert [type(error) for error in played.errors] == [InvalidInput]


@attrs.frozen
class Sum:
    total: int


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("value", "output"), [(Sum(3), {"total": 3}), ({"total": 3}, {"total": 3}), ("three", None)]
)
async def test_an_output_fits_its_schema(value: object, output: object) -> None:
    """A-TOOL-6"""

    @attrs.frozen
    class Nothing:
        pass

    give: Any = define_tool(
        name="give",
        description="d",
        input=Nothing,
        output=Sum,
        execute=lambda ctx, _: value,
    )
    part, _ = await one({"give": give}, Call("give"))
    assert (part.outcome == "completed") == (output is not None)
    assert part.output == output


@pytest.mark.anyio
@pytest.mark.parametrize("annotation", [Any, list[int], dict[str, int]])
async def test_a_tool_may_keep_what_it_gave(annotation: Any) -> None:
    kept: Any = {"n": 1} if annotation == dict[str, int] else [1]

    def give(ctx: Any):
        """Give what is kept."""
        return kept

    give.__annotations__["return"] = annotation
    definition = agent({"give": tool(give)}, [Call("give")])

    async def change(run: Any) -> None:
        await run.result()
        kept.clear()

    played = await play(definition, during=change)
    assert calls(played)[0].output in ({"n": 1}, [1])


# ------------------------------------------------------------------------ side by side


@pytest.mark.anyio
async def test_calls_start_in_order_settle_as_they_finish_and_reach_the_model_in_order() -> None:
    """R-17, O-22"""
    started: list[str] = []
    gates = {name: anyio.Event() for name in "abcd"}

    @tool
    async def wait(ctx: Any, name: str, then: str) -> str:
        """Wait."""
        started.append(name)
        if len(started) == 4:
            gates["d"].set()
        await gates[name].wait()
        if then:
            gates[then].set()
        if name == "b":
            raise ValueError(SECRET)
        return name

    turn = [
        Call("wait", {"name": name, "then": then}, name)
        for name, then in (("a", ""), ("b", "a"), ("c", "b"), ("d", "c"))
    ]
    definition = agent({"wait": wait}, turn)
    played = await play(definition)
    assert started == ["a", "b", "c", "d"]
    ended = [
        event.call_id for event in played.events if event.type in ("tool-output", "tool-error")
    ]
    assert ended == ["d", "c", "b", "a"]
    told = definition.model.requests[1].messages[-1].parts
    assert [part.call_id for part in told] == ["a", "b", "c", "d"]
    assert [part.outcome for part in told] == ["completed", "failed", "completed", "completed"]


current: ContextVar[str] = ContextVar("current", default="unset")


@pytest.mark.anyio
async def test_where_tools_run() -> None:
    """Sync in worker threads, with the context variables; inline and async on the loop."""
    seen: dict[str, tuple[bool, str]] = {}
    loop = threading.get_ident()

    def note(name: str) -> str:
        seen[name] = (threading.get_ident() == loop, current.get())
        return name

    @tool
    def in_thread(ctx: Any) -> str:
        """Note."""
        return note("thread")

    @tool(inline=True)
    def inline(ctx: Any) -> str:
        """Note."""
        return note("inline")

    @tool
    async def on_loop(ctx: Any) -> str:
        """Note."""
        return note("async")

    class Sets:
        @hookimpl
        def prepare_run(self, run):
            current.set("set")

    turn = [Call("in_thread"), Call("inline"), Call("on_loop")]
    tools = {"in_thread": in_thread, "inline": inline, "on_loop": on_loop}
    await play(agent(tools, turn, lifecycle=Sets()))
    assert seen == {"thread": (False, "set"), "inline": (True, "set"), "async": (True, "set")}


@pytest.mark.anyio
async def test_a_call_id_of_an_earlier_step_is_made_fresh() -> None:
    """Some servers count from 0 again in each answer; a call is known by its id in the run."""
    definition = agent(
        {"add": add}, [Call("add", {"a": 1}, "call_0")], [Call("add", {"a": 5}, "call_0")]
    )
    played = await play(definition)
    first, second = calls(played)
    assert (first.call_id, first.output, second.output) == ("call_0", 2, 6)
    assert second.call_id != "call_0"
    starts = [event.call_id for event in played.of("tool-input-start")]
    assert starts == [event.call_id for event in played.of("tool-input-delta")]
    assert starts == [event.call_id for event in played.of("tool-output")]


@pytest.mark.anyio
async def test_one_call_id_twice_in_a_step_is_a_malformed_stream() -> None:
    played = await play(agent({"now": now}, [Call("now", {}, "x"), Call("now", {}, "x")]))
    assert (played.result.error or {})["code"] == "malformed_stream"
    assert [part.outcome for part in calls(played)] == ["interrupted"]


@pytest.mark.anyio
async def test_the_last_step_s_calls_are_executed_and_stored() -> None:
    """A-DEF-2: then the run completes with "max_steps"."""
    definition = agent({"add": add}, [Call("add", {"a": 1})], max_steps=1)
    played = await play(definition)
    assert (played.result.status, played.result.stop_reason) == ("completed", "max_steps")
    assert [part.output for part in calls(played)] == [2]
    assert len(definition.model.requests) == 1


# ------------------------------------------------------------------------ the tool's context


@attrs.frozen
class Account:
    name: str


@tool(context=Account)
def who(ctx: Any) -> str:
    """Tell who it is."""
    return str(ctx.context.name)


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
async def test_map_context_makes_the_tool_s_context(is_async: bool) -> None:
    """A-TOOL-4"""

    def narrow(behavior: Any) -> Account:
        return Account(behavior.runtime_context["user"])

    async def narrow_later(behavior: Any) -> Account:
        return narrow(behavior)

    config = AgentToolConfig(who, map_context=narrow_later if is_async else narrow)
    part, _ = await one({"who": config}, Call("who"), runtime_context=lambda _: {"user": "ann"})
    assert part.output == "ann"


@pytest.mark.anyio
async def test_a_context_of_another_class_fails_the_first_step() -> None:
    """A-TOOL-4: though the tool is not called."""
    definition = agent({"who": who}, "hi", runtime_context=lambda _: {"user": "ann"})
    played = await play(definition)
    assert played.result.status == "failed"
    (told,) = played.errors
    assert isinstance(told, DefinitionError)
    assert "tools.who: wants a Account as its context" in str(told)
    assert definition.model.requests == []


@pytest.mark.anyio
async def test_a_mapped_context_of_another_class_ends_the_run() -> None:
    config = AgentToolConfig(who, map_context=lambda _: "ann")
    played = await play(agent({"who": config}, [Call("who")]))
    assert played.result.status == "failed"


@pytest.mark.anyio
async def test_what_a_tool_is_handed() -> None:
    seen: list[Any] = []

    @tool
    async def look(ctx: Any) -> None:
        """Look."""
        seen.append(ctx)

    definition = agent({"look": look}, [Call("look", {}, "c1")], runtime_context=lambda _: "ctx")
    played = await play(definition, identity={"user": "u"}, client_data={"x": 1})
    (ctx,) = seen
    run_id = played.result.run_id
    assert (ctx.context, ctx.identity, ctx.client_data) == ("ctx", {"user": "u"}, {"x": 1})
    assert (ctx.run_id, ctx.call_id, ctx.idempotency_key) == (run_id, "c1", f"{run_id}:c1")
    assert ctx.thread_id == played.state.thread.id
    assert not ctx.signal.is_set()
