"""What ends a run: strategies, functions, and what they are joined to (O-2)."""

from __future__ import annotations

from typing import Any

import pytest

from pai import (
    DefinitionError,
    LoopState,
    Price,
    RunOptions,
    RunPatch,
    Usage,
    budget,
    create_pai,
    hookimpl,
    step_limit,
    until_finish_reason,
)
from pai.testing import Call, Finish

from ..played import play, play_on
from .agents import endless

MISTAKEN: Any = ("stop", "tired")
STEP = [Call("add"), Finish("tool-calls", Usage(900_000, 100_000, 1_000_000, 0, 400_000))]


async def stopped(*turns: Any, stop_when: Any, calls: int = 1) -> tuple[int, str | None]:
    """Steps that were made, and why no further one was."""
    definition: Any = endless(*turns, calls=calls, stop_when=stop_when, max_steps=6)
    played = await play(definition)
    assert played.errors == []
    assert played.result.status == "completed"
    (run,) = played.state.runs
    (end,) = played.of("run-finished")
    # One reason, wherever it is read.
    assert played.result.stop_reason == run.stop_reason == end.stop_reason
    return len(definition.model.requests), played.result.stop_reason


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("when", "steps", "reason"),
    [
        (step_limit(1), 1, "step_limit"),
        (step_limit(3), 3, "step_limit"),
        (until_finish_reason("tool-calls"), 1, "finish_reason"),
        (until_finish_reason("length", "content-filter"), 6, "max_steps"),
        (budget(tokens=3_000_000), 3, "token_budget"),
        (budget(tokens=2_999_999), 3, "token_budget"),
        (budget(tool_calls=2), 2, "tool_call_budget"),
        # 0.5 fresh at 2, 0.4 cached at 1, 0.1 written at 10: 2.4 a step.
        (budget(cost=4.8, price=Price(2, 10, 1)), 2, "cost_budget"),
        (budget(cost=4.9, price=Price(2, 10, 1)), 3, "cost_budget"),
        (budget(cost=5.6, price=Price(2, 10)), 2, "cost_budget"),
        (lambda state: state.steps == 2, 2, "stop_when"),
        (lambda state: "enough" if state.usage.total_tokens > 1 else False, 1, "enough"),
        (lambda state: "", 6, "max_steps"),
        (step_limit(4) | budget(tool_calls=2), 2, "tool_call_budget"),
        (step_limit(2) | budget(tool_calls=4), 2, "step_limit"),
        (step_limit(2) & budget(tool_calls=4), 4, "step_limit+tool_call_budget"),
        (step_limit(9) & budget(tool_calls=1), 6, "max_steps"),
        (step_limit(5) | (lambda state: state.steps == 2), 2, "stop_when"),
        ((lambda state: state.steps == 2) | step_limit(5), 2, "stop_when"),
        ((lambda state: state.steps > 1) & step_limit(1), 2, "stop_when+step_limit"),
        (step_limit(1) & (lambda state: state.steps > 1), 2, "step_limit+stop_when"),
    ],
)
async def test_what_stops_a_run(when: Any, steps: int, reason: str) -> None:
    """O-2: the run says why."""
    assert await stopped(*[STEP] * 9, stop_when=when) == (steps, reason)


@pytest.mark.anyio
async def test_an_async_function_stops_a_run() -> None:
    """O-2"""

    async def when(state: LoopState[Any]) -> bool:
        return state.steps == 2

    assert await stopped(stop_when=when | step_limit(5)) == (2, "stop_when")
    assert await stopped(stop_when=when) == (2, "stop_when")


@pytest.mark.anyio
async def test_what_a_function_is_shown() -> None:
    """O-2"""
    seen: list[LoopState[Any]] = []

    def when(state: LoopState[Any]) -> bool:
        seen.append(state)
        return state.steps == 2

    assert await stopped([Call("add"), Call("add"), Call("look")], stop_when=when) == (
        2,
        "stop_when",
    )
    assert [(state.tool_calls, state.last_tool_calls) for state in seen] == [(3, 3), (4, 1)]
    assert [state.finish_reason for state in seen] == ["tool-calls", "tool-calls"]
    assert [len(state.messages) for state in seen] == [2, 3]
    # What it is shown has the results of the step's calls.
    assert [part.outcome for part in seen[0].messages[-1].parts] == ["completed"] * 3
    assert not seen[0].signal.is_set()


@pytest.mark.anyio
async def test_a_run_that_ends_by_itself_is_not_asked() -> None:
    """O-2"""
    asked: list[object] = []
    definition = endless([Call("add")], "done", stop_when=asked.append)
    played = await play(definition)
    assert (played.result.stop_reason, played.result.text) == ("stop", "done")
    assert len(asked) == 1


@pytest.mark.anyio
async def test_a_function_that_raises_fails_the_run() -> None:
    """A-RUN-3"""
    played = await play(endless(stop_when=lambda state: 1 / 0))
    assert played.result.status == "failed"
    assert [type(error) for error in played.errors] == [ZeroDivisionError]


@pytest.mark.anyio
@pytest.mark.parametrize("stop", [step_limit(1), None])
async def test_a_stopped_run_can_be_gone_on_with(stop: Any) -> None:
    """O-2: what is left is a history that every provider takes."""
    definition: Any = endless(
        [Call("add"), Call("look")], stop_when=stop, max_steps=2 if stop else 1
    )
    app = create_pai(agents={"a": definition})
    async with app:
        thread = app.thread("a")
        first = await play_on(thread, "go", [])
        assert first.result.stop_reason == ("step_limit" if stop else "max_steps")
        (call, other) = first.state.messages[-1].parts
        assert (call.outcome, other.outcome) == ("completed", "completed")
        await play_on(thread, "on", [])
    roles = [message.role for message in definition.model.requests[1].messages]
    assert roles == ["user", "assistant", "user"]
    told = definition.model.requests[1].messages[1].parts
    assert [part.outcome for part in told] == ["completed", "completed"]


class Hook:
    def __init__(self, patch: RunPatch) -> None:
        self.patch = patch

    @hookimpl
    def prepare_run(self) -> RunPatch:
        return self.patch


@pytest.mark.anyio
@pytest.mark.parametrize("field", ["max_steps", "stop_when"])
async def test_the_options_win_over_the_agent_and_hooks_over_them(field: str) -> None:
    def value(steps: int) -> Any:
        return steps if field == "max_steps" else step_limit(steps)

    async def steps(options: Any, *plugins: Any) -> int:
        definition: Any = endless(**{field: value(4)})
        await play(definition, options=options, plugins=plugins)
        return len(definition.model.requests)

    options = RunOptions(**{field: value(3)})
    hook = Hook(RunPatch(**{field: value(2)}))
    assert await steps(None) == 4
    assert await steps(options) == 3
    assert await steps(options.to_json()) == 3
    assert await steps(options, hook) == 2
    assert await steps(None, hook) == 2


@pytest.mark.parametrize(
    ("make", "paths"),
    [
        (lambda: step_limit(0), ["steps"]),
        (until_finish_reason, ["reasons"]),
        (lambda: until_finish_reason(*MISTAKEN), ["reasons[1]"]),
        (budget, [""]),
        (lambda: budget(tokens=0, tool_calls=True), ["tokens", "tool_calls"]),
        (lambda: budget(cost=1), ["price"]),
        (lambda: budget(cost=0, price=Price(1, 1)), ["cost"]),
        (lambda: budget(cost=float("inf"), price=Price(1, -1)), ["cost", "price.output"]),
        (lambda: budget(tokens=1, price=MISTAKEN), ["price"]),
    ],
)
def test_what_can_be_no_strategy(make: Any, paths: list[str]) -> None:
    with pytest.raises(DefinitionError) as caught:
        make()
    assert [fault.path for fault in caught.value.faults] == paths
