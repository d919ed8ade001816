"""`after_tool_result` and `on_output`: who has the last word on how a call ended."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from pai import (
    AgentToolConfig,
    DenyCall,
    SkipCall,
    ToolError,
    ToolFailure,
    ToolOutput,
    compose_lifecycle,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..played import Played, play

SECRET = "hunter2"


@tool
def double(ctx: Any, n: int) -> int:
    """Double."""
    if n < 0:
        raise ToolError("no negative numbers")
    return n * 2


class Judge:
    def __init__(self, answer: object, name: str = "judge") -> None:
        self.answer = answer
        self.name = name

    @hookimpl
    def before_tool_call(self, call):
        return self.answer


class After:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[Any] = []

    @hookimpl
    async def after_tool_result(self, result):
        self.seen.append((result.outcome, result.output, result.error))
        return self.answer


class Observed:
    """An `on_output` that keeps what it is handed."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    async def __call__(self, observed: Any) -> str:
        self.seen.append(observed)
        return "is ignored"


async def settle(n: int, *plugins: object, on_output: Any = None) -> tuple[Any, Played]:
    config = AgentToolConfig(double, on_output=on_output)
    definition = define_agent(
        name="a",
        model=ScriptedModel([[Call("double", {"n": n}, "c")], "done"]),
        tools={"double": config},
        lifecycle=compose_lifecycle(*plugins),
        runtime_context=lambda _: "ctx",
    )
    played = await play(definition)
    assert played.result.text == "done", played.errors
    (part,) = [part for part in played.state.messages[1].parts if part.type == "tool-call"]
    told = definition.model.requests[1].messages[-1].parts[0]
    assert (told.outcome, told.output, told.error) == (part.outcome, part.output, part.error)
    return part, played


# ------------------------------------------------------------------------ policy


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("answers", "outcome", "value"),
    [
        ([None, None], "completed", 6),
        ([SkipCall(1), None], "skipped", 1),
        ([SkipCall(1), SkipCall(2)], "skipped", 1),
        ([SkipCall(1), DenyCall("no")], "denied", "no"),
        ([DenyCall("first"), DenyCall("second")], "denied", "first"),
        ([DenyCall("no"), SkipCall(1), None], "denied", "no"),
    ],
)
async def test_the_strictest_answer_wins_among_equals_the_leftmost(
    answers: list[Any], outcome: str, value: object
) -> None:
    """R-23, R-31: all are asked."""
    asked: list[str] = []

    class Asked(Judge):
        @hookimpl
        def before_tool_call(self, call):
            asked.append("x")
            return self.answer

    part, played = await settle(3, *[Asked(answer) for answer in answers])
    assert len(asked) == len(answers)
    assert part.outcome == outcome
    assert (part.output if part.error is None else part.error) == value
    event = (played.of("tool-output") + played.of("tool-error"))[0]
    assert event.outcome == outcome


# ------------------------------------------------------------------------ after_tool_result


@pytest.mark.anyio
async def test_results_are_piped() -> None:
    """R-31"""
    first, second, third = After(ToolOutput(7)), After(ToolFailure("no")), After(ToolOutput(8))
    part, _ = await settle(3, first, second, third)
    assert first.seen == [("completed", 6, None)]
    assert second.seen == [("completed", 7, None)]
    assert third.seen == [("failed", None, "no")]
    assert (part.outcome, part.output, part.error) == ("completed", 8, None)


@pytest.mark.anyio
async def test_a_changed_output_is_checked_again() -> None:
    """A-TOOL-6"""
    after = After(None)
    part, _ = await settle(3, After(ToolOutput("six")), after)
    assert (part.outcome, part.output) == ("failed", None)
    assert part.error == "The output of 'double' does not fit its schema."
    assert after.seen[0][0] == "failed"


@pytest.mark.anyio
async def test_a_skipped_call_s_output_is_checked() -> None:
    """A-TOOL-6"""
    part, played = await settle(3, Judge(SkipCall("six")))
    assert (part.outcome, part.output) == ("failed", None)
    assert len(played.errors) == 1


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("n", "judge", "seen"),
    [
        (3, None, ("completed", 6, None)),
        (3, SkipCall(1), ("skipped", 1, None)),
        (3, DenyCall("no"), ("denied", None, "no")),
        (-1, None, ("failed", None, "no negative numbers")),
    ],
)
async def test_it_is_asked_however_the_call_ended(n: int, judge: Any, seen: Any) -> None:
    after = After(None)
    part, _ = await settle(n, Judge(judge), after)
    assert after.seen == [seen]
    assert part.outcome == seen[0]


# ------------------------------------------------------------------------ on_output (A-TOOL-5)

CASES = [
    ("an output", 3, [], 6),
    ("a skipped call's synthetic output", 3, [Judge(SkipCall(1))], 1),
    ("an output that was rewritten", 3, [After(ToolOutput(7))], 7),
    ("a failure turned into an output", -1, [After(ToolOutput(0))], 0),
    ("a denial turned into an output", 3, [Judge(DenyCall("no")), After(ToolOutput(0))], 0),
    ("a failed call", -1, [], None),
    ("a denied call", 3, [Judge(DenyCall("no"))], None),
    ("an output turned into an error", 3, [After(ToolFailure("no"))], None),
    ("an output that does not fit", 3, [After(ToolOutput("x"))], None),
    ("a skipped call's output that does not fit", 3, [Judge(SkipCall("x"))], None),
]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("n", "plugins", "output"), [case[1:] for case in CASES], ids=[c[0] for c in CASES]
)
async def test_on_output_runs_once_on_the_settled_output_alone(
    n: int, plugins: list[Any], output: object
) -> None:
    """A-TOOL-5"""
    observer = Observed()
    part, _ = await settle(n, *plugins, on_output=observer)
    if output is None:
        assert observer.seen == []
        return
    (observed,) = observer.seen
    assert observed.output == output == part.output
    assert observed.input == {"n": n}
    assert (observed.tool.name, observed.call.call_id) == ("double", "c")
    assert observed.runtime_context == "ctx"
    assert observed.thread_id
    assert not observed.signal.is_set()


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
async def test_on_output_that_raises_fails_the_run(is_async: bool) -> None:
    """A-TOOL-5: reported whole, redacted from the client; the siblings settle."""
    error = ValueError(SECRET)
    gate = anyio.Event()

    def fail(observed: Any) -> None:
        gate.set()
        raise error

    async def fail_later(observed: Any) -> None:
        fail(observed)

    @tool
    async def sibling(ctx: Any) -> str:
        """Wait."""
        await gate.wait()
        return "settled"

    config = AgentToolConfig(double, on_output=fail_later if is_async else fail)
    model = ScriptedModel([[Call("double", {"n": 1}), Call("sibling")], "done"])
    played = await play(
        define_agent(name="a", model=model, tools={"double": config, "sibling": sibling})
    )
    assert played.errors == [error]
    assert (played.result.error or {})["code"] == "internal_error"
    assert SECRET not in played.seen
    assert [part.outcome for part in played.state.messages[1].parts] == ["interrupted", "completed"]
    assert len(model.requests) == 1


@pytest.mark.anyio
async def test_on_output_is_awaited_before_the_model_sees_the_output() -> None:
    """A-TOOL-5: and before the result is written."""
    order: list[str] = []

    async def observe(observed: Any) -> None:
        await anyio.lowlevel.checkpoint()
        order.append("observed")

    class Watch:
        @hookimpl
        def tool_settled(self, result):
            order.append("settled")

        @hookimpl
        def prepare_model_step(self, step):
            order.append("step")

    await settle(3, Watch(), on_output=observe)
    assert order == ["step", "observed", "settled", "step"]
