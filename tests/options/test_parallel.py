"""How many calls run at once, in which order they start and settle, and how long they may take."""

from __future__ import annotations

import threading
from typing import Any

import anyio
import pytest

from pai import (
    FatalToolError,
    RunOptions,
    ToolCallPart,
    ToolContext,
    ToolDefinition,
    define_agent,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..definition.refusals import refused, refused_agent
from ..played import Played, play

NAMES = ["a", "b", "c", "d"]


class Bench:
    """Tools that tell when they start, and finish when they are let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.at_once = 0
        self.most = 0
        self.gates = {name: anyio.Event() for name in NAMES}

    def tool(self, name: str) -> ToolDefinition[Any]:
        @tool(name=name, description="Wait.")
        async def wait(ctx: ToolContext[Any]) -> str:
            self.started.append(name)
            self.at_once += 1
            self.most = max(self.most, self.at_once)
            await self.gates[name].wait()
            self.at_once -= 1
            return name

        return wait

    def agent(self, names: list[str] = NAMES, **fields: Any) -> Any:
        model = ScriptedModel([[Call(name, {}, name) for name in names], "done"])
        return define_agent(
            name="a", model=model, tools={name: self.tool(name) for name in NAMES}, **fields
        )

    async def release(self, *names: str) -> None:
        """Let go one after another, each when those before have settled."""
        for name in names:
            await anyio.wait_all_tasks_blocked()
            while name not in self.started:
                await anyio.lowlevel.checkpoint()
            self.gates[name].set()


def settled(played: Played) -> list[str]:
    return [event.call_id for event in played.events if event.type in ("tool-output", "tool-error")]


@pytest.mark.anyio
@pytest.mark.parametrize("limit", [None, 4, 9])
async def test_calls_start_in_call_order_and_settle_in_finish_order(limit: int | None) -> None:
    """O-22: results reach the model in call order."""
    bench = Bench()
    definition = bench.agent(max_parallel_tools=limit)
    played = await play(definition, during=lambda run: bench.release("c", "a", "d", "b"))
    assert (bench.started, bench.most) == (NAMES, 4)
    assert settled(played) == ["c", "a", "d", "b"]
    told = definition.model.requests[1].messages[-1].parts
    assert [(part.call_id, part.output) for part in told] == [(name, name) for name in NAMES]


@pytest.mark.anyio
@pytest.mark.parametrize("by_options", [False, True])
async def test_at_most_so_many_run_at_once(by_options: bool) -> None:
    """O-22"""
    bench = Bench()
    definition = bench.agent(max_parallel_tools=None if by_options else 2)
    options = RunOptions(max_parallel_tools=2) if by_options else None
    played = await play(
        definition, options=options, during=lambda run: bench.release("b", "c", "a", "d")
    )
    assert (bench.started, bench.most) == (NAMES, 2)
    assert settled(played) == ["b", "c", "a", "d"]
    assert played.result.text == "done"


@pytest.mark.anyio
@pytest.mark.parametrize("by_options", [False, True])
async def test_one_after_another(by_options: bool) -> None:
    """O-22"""
    bench = Bench()
    definition = bench.agent(tool_execution="parallel" if by_options else "sequential")
    options = RunOptions(tool_execution="sequential") if by_options else None
    played = await play(definition, options=options, during=lambda run: bench.release(*NAMES))
    assert (bench.started, bench.most) == (NAMES, 1)
    assert settled(played) == NAMES


@pytest.mark.anyio
@pytest.mark.parametrize("fields", [{"tool_execution": "sequential"}, {"max_parallel_tools": 1}])
async def test_what_has_not_begun_when_the_run_ends_never_does(fields: Any) -> None:
    """R-14: it is told as interrupted."""
    ran: list[str] = []

    @tool
    def fatal(ctx: Any) -> str:
        """End the run."""
        raise FatalToolError("over")

    @tool
    def later(ctx: Any) -> str:
        """Never run."""
        ran.append("later")
        return "later"

    definition = define_agent(
        name="a", model=ScriptedModel([[Call("fatal"), Call("later")]]),
        tools={"fatal": fatal, "later": later}, **fields,
    )  # fmt: skip
    played = await play(definition)
    assert (played.result.status, ran) == ("failed", [])
    parts = [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]
    assert [part.outcome for part in parts] == ["failed", "interrupted"]


# ------------------------------------------------------------------------ time limits


@pytest.mark.anyio
async def test_a_late_call_fails_and_its_siblings_go_on() -> None:
    """R-17"""
    bench = Bench()

    @tool(timeout=0.02)
    async def slow(ctx: ToolContext[Any]) -> str:
        """Never end."""
        try:
            await anyio.sleep_forever()
        finally:
            bench.gates["a"].set()
        return "never"

    model = ScriptedModel([[Call("slow"), Call("a", {}, "a")], "done"])
    definition = define_agent(name="a", model=model, tools={"slow": slow, "a": bench.tool("a")})
    played = await play(definition)
    late, sibling = model.requests[1].messages[-1].parts
    assert (late.outcome, late.error) == ("failed", "The tool 'slow' took longer than 0.02 s.")
    assert sibling.outcome == "completed"
    assert (played.result.text, played.errors) == ("done", [])


@pytest.mark.anyio
@pytest.mark.parametrize("ends", ["returns", "raises"])
async def test_what_a_late_call_makes_of_it_does_not_count(ends: str) -> None:
    @tool(timeout=0.01)
    async def stubborn(ctx: ToolContext[Any]) -> str:
        """Hide that it was stopped."""
        try:
            await anyio.sleep_forever()
        except BaseException:
            if ends == "raises":
                raise ValueError("hidden") from None
        return "late"

    model = ScriptedModel([[Call("stubborn")], "done"])
    await play(define_agent(name="a", model=model, tools={"stubborn": stubborn}))
    (part,) = model.requests[1].messages[-1].parts
    assert part.error == "The tool 'stubborn' took longer than 0.01 s."


@pytest.mark.anyio
async def test_a_thread_is_told_that_its_time_is_over() -> None:
    """A-CTX-2: a thread can't be stopped otherwise."""
    told: list[str | None] = []
    done = threading.Event()

    @tool(timeout=0.02)
    def blocking(ctx: ToolContext[Any]) -> str:
        """Block until it is told."""
        ctx.signal.wait(10)
        told.append(ctx.signal.reason)
        done.set()
        return "late"

    model = ScriptedModel([[Call("blocking")], "done"])
    played = await play(define_agent(name="a", model=model, tools={"blocking": blocking}))
    assert await anyio.to_thread.run_sync(done.wait, 10)
    assert told == ["timeout"]
    assert played.result.text == "done"
    assert played.result.status == "completed"


@pytest.mark.anyio
async def test_cancelling_the_run_reaches_a_call_with_a_time_limit() -> None:
    """A-CTX-2, R-8"""
    told: list[str | None] = []
    running, done = anyio.Event(), threading.Event()

    @tool(timeout=60)
    def blocking(ctx: ToolContext[Any]) -> str:
        """Block until it is told."""
        anyio.from_thread.run_sync(running.set)
        ctx.signal.wait(10)
        told.append(ctx.signal.reason)
        done.set()
        return "late"

    async def cancel(run: Any) -> None:
        await running.wait()
        await run.cancel("enough")

    model = ScriptedModel([[Call("blocking")], "done"])
    played = await play(
        define_agent(name="a", model=model, tools={"blocking": blocking}), during=cancel
    )
    assert await anyio.to_thread.run_sync(done.wait, 10)
    assert (told, played.result.status) == (["enough"], "cancelled")


@pytest.mark.anyio
async def test_a_call_in_time_is_left_alone() -> None:
    @tool(timeout=60)
    def quick(ctx: ToolContext[Any]) -> bool:
        """Be quick."""
        return ctx.signal.is_set()

    model = ScriptedModel([[Call("quick")], "done"])
    await play(define_agent(name="a", model=model, tools={"quick": quick}))
    (part,) = model.requests[1].messages[-1].parts
    assert part.output is False


# ------------------------------------------------------------------------ mistakes


@pytest.mark.parametrize("timeout", [0, -1, True, "5", float("inf"), float("nan")])
def test_what_can_be_no_time_limit(timeout: Any) -> None:
    def fn(ctx: Any) -> None:
        """Do it."""

    assert list(refused(lambda **given: tool(**given)(fn), timeout=timeout)) == ["fn.timeout"]


def test_what_can_be_no_way_to_run_calls() -> None:
    faults = refused_agent(tool_execution="serial", max_parallel_tools=True)
    assert list(faults) == ["tool_execution", "max_parallel_tools"]
    assert list(refused_agent(max_parallel_tools=0, tool_execution=None)) == [
        "tool_execution",
        "max_parallel_tools",
    ]
