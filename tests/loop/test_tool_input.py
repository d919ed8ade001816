"""Tool input: parsed, looked up, checked, rewritten, judged, in this order."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    AgentToolConfig,
    ReplaceInput,
    ToolCallPart,
    define_agent,
    define_tool,
    hookimpl,
    tool,
)
from pai.testing import Call, Finish, ScriptedModel

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


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"a": 1}', None),
        ("", "a: "),
        ("null", "a: "),
        ('{"a": "x"}', "input.a: expected"),
        ('{"a": 1, "c": 2}', "c"),
        ("[1]", "input: expected"),
        ("{broken", "is no valid JSON"),
    ],
)
async def test_input_is_parsed_and_checked(text: str, error: str | None) -> None:
    """Tool input: empty text is {}, broken JSON and a misfit are errors the model sees."""
    part, _ = await one({"add": add}, Call("add", text))
    if error is None:
        assert (part.outcome, part.output) == ("completed", 2)
    else:
        assert part.outcome == "failed"
        assert error in (part.error or "")


@tool
def now(ctx: Any) -> str:
    """Tell the time."""
    return "noon"


@pytest.mark.anyio
@pytest.mark.parametrize("text", ["", "null", "{}"])
async def test_empty_and_null_are_an_empty_object(text: str) -> None:
    part, _ = await one({"now": now}, Call("now", text))
    assert (part.outcome, part.input) == ("completed", {})


@pytest.mark.anyio
async def test_an_unknown_tool_is_an_error_the_model_sees() -> None:
    """O-23"""
    part, _ = await one({"add": add}, Call("nope"))
    assert part.error == "There is no tool named 'nope'. Tools: add."


@pytest.mark.anyio
async def test_a_disabled_tool_is_neither_offered_nor_run() -> None:
    """A-TOOL-3: `enabled` is asked at each step; a stale call does not run the tool."""
    asked: list[object] = []

    async def enabled(behavior: Any) -> bool:
        asked.append(behavior.runtime_context)
        return len(asked) == 1

    definition = agent(
        {"add": AgentToolConfig(add, enabled=enabled), "now": AgentToolConfig(now, enabled=False)},
        [Call("add", {"a": 1})],
        [Call("add", {"a": 1}), Call("now")],
        runtime_context=lambda _: "ctx",
    )
    played = await play(definition)
    offered = [[spec.name for spec in request.tools] for request in definition.model.requests]
    assert offered == [["add"], [], []]
    assert asked == ["ctx"] * 3
    assert [part.outcome for part in calls(played)] == ["completed", "failed", "failed"]
    assert {part.error for part in calls(played)[1:]} == {
        "The tool 'add' is not available now.",
        "The tool 'now' is not available now.",
    }
    assert set(definition.manifest["tools"]) == {"add", "now"}


@pytest.mark.anyio
async def test_rewriting_comes_before_policy_and_is_checked() -> None:
    """R-23: what was approved is what is executed, and what is stored."""
    seen: list[Any] = []

    class Doubles:
        @hookimpl
        def rewrite_tool_input(self, call):
            return ReplaceInput({"a": call.input["a"] * 2})

    class Judges:
        @hookimpl
        def before_tool_call(self, call):
            seen.append((dict(call.input), dict(call.raw_input)))
            call.input["a"] = 99
            call.raw_input["a"] = 99

    from pai import compose_lifecycle

    lifecycle = compose_lifecycle(Doubles(), Doubles(), Judges(), Judges())
    part, played = await one({"add": add}, Call("add", {"a": 1}), lifecycle=lifecycle)
    assert seen == [({"a": 4}, {"a": 4})] * 2
    assert (part.input, part.output) == ({"a": 4}, 5)
    assert [event.input for event in played.of("tool-call")] == [{"a": 1}, {"a": 4}]


@pytest.mark.anyio
async def test_a_rewritten_input_that_does_not_fit_fails_the_call() -> None:
    judged: list[str] = []

    class Spoils:
        @hookimpl
        def rewrite_tool_input(self, call):
            return ReplaceInput({"a": "x"})

        @hookimpl
        def before_tool_call(self, call):
            judged.append(call.call_id)

    part, _ = await one({"add": add}, Call("add", {"a": 1}), lifecycle=Spoils())
    assert part.outcome == "failed"
    assert "input.a" in (part.error or "")
    assert judged == []


@pytest.mark.anyio
async def test_hooks_are_shown_the_checked_input() -> None:
    @attrs.frozen
    class Order:
        item: str
        count: int = 1

    def execute(ctx: Any, order: Order) -> str:
        return f"{order.count} {order.item}"

    order = define_tool(name="o", description="d", input=Order, output=str, execute=execute)
    seen: list[Any] = []

    class Looks:
        @hookimpl
        def before_tool_call(self, call):
            seen.append((call.tool, call.step_index, call.input, call.raw_input))

    part, _ = await one({"order": order}, Call("order", {"item": "tea"}), lifecycle=Looks())
    assert seen == [("order", 0, Order("tea"), {"item": "tea"})]
    assert (part.input, part.output) == ({"item": "tea"}, "1 tea")


# ------------------------------------------------------------------------ cut off


@pytest.mark.anyio
@pytest.mark.parametrize("reason", ["length", "content-filter"])
async def test_calls_of_a_step_that_was_cut_off_never_run(reason: Any) -> None:
    settled: list[tuple[str, str]] = []

    class Watch:
        @hookimpl
        def tool_settled(self, result):
            settled.append((result.tool, result.outcome))

        @hookimpl
        def before_tool_call(self, call):
            raise AssertionError("is not asked")

    turn = [Call("add", {"a": 1}), Call("add", '{"a":'), Finish(reason)]
    definition = agent({"add": add}, turn, lifecycle=Watch())
    played = await play(definition)
    assert [part.outcome for part in calls(played)] == ["truncated"] * 2
    assert all("cut off" in (part.error or "") for part in calls(played))
    assert [event.outcome for event in played.of("tool-error")] == ["truncated"] * 2
    assert settled == [("add", "truncated")] * 2
    assert played.result.text == "done"


@pytest.mark.anyio
async def test_a_text_that_was_cut_off_ends_the_run() -> None:
    played = await play(agent({}, ["long", Finish("length")]))
    assert (played.result.status, played.result.stop_reason) == ("completed", "length")
