"""Tool input that does not fit is converted, mended by a function, or told to the model (O-14)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    NOT_REPAIRED,
    ReplaceInput,
    RunOptions,
    ToolCallPart,
    ToolContext,
    ToolRepair,
    define_agent,
    define_tool,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..definition.refusals import refused_agent
from ..played import Played, play

got: list[Any] = []


@tool
def add(ctx: ToolContext[Any], a: int, b: int = 1, note: str = "") -> int:
    """Add."""
    got.append((a, b, note))
    return a + b


@attrs.frozen
class Search:
    text: str
    limit: int | None = None


def search(ctx: ToolContext[Any], given: Search) -> str:
    got.append(given)
    return given.text


find = define_tool(name="find", description="Find.", input=Search, output=str, execute=search)


async def called(
    name: str, input: Any, options: Any = None, plugins: Any = (), **fields: Any
) -> tuple[ToolCallPart, Played]:
    got.clear()
    model = ScriptedModel([[Call(name, input, "c")], "done"])
    definition = define_agent(name="a", model=model, tools={"add": add, "find": find}, **fields)
    played = await play(definition, options=options, plugins=plugins)
    (part,) = [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]
    told = model.requests[1].messages[-1].parts[0]
    assert (told.input, told.outcome, told.error) == (part.input, part.outcome, part.error)
    return part, played


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("input", "stored", "arguments"),
    [
        ({"a": "2", "b": 3.0}, {"a": 2, "b": 3}, (2, 3, "")),
        ({"a": True, "note": 7}, {"a": 1, "note": "7"}, (1, 1, "7")),
        # A null for an optional field.
        ({"a": 2, "b": None}, {"a": 2}, (2, 1, "")),
        ({"a": None}, {"a": 0}, (0, 1, "")),
    ],
)
async def test_input_is_converted(input: Any, stored: Any, arguments: Any) -> None:
    """O-14: on by default; what is stored, streamed and sent is what was executed."""
    part, played = await called("add", input)
    assert (part.outcome, part.input, got) == ("completed", stored, [arguments])
    assert [event.input for event in played.of("tool-call")] == [input, stored]


@pytest.mark.anyio
async def test_input_of_a_class_is_converted() -> None:
    """O-14"""
    part, _ = await called("find", {"text": 5, "limit": "3"})
    assert (part.input, got) == ({"text": "5", "limit": 3}, [Search("5", 3)])


@pytest.mark.anyio
async def test_input_that_fits_is_left_alone() -> None:
    asked: list[Any] = []
    for repair in (True, asked.append):
        part, played = await called("add", {"a": 2}, repair_tool_input=repair)
        assert (part.input, got) == ({"a": 2}, [(2, 1, "")])
        assert len(played.of("tool-call")) == 1
    assert asked == []


ISSUES = "input.a: expected integer, got string; input.b: expected integer, got string"


@pytest.mark.anyio
@pytest.mark.parametrize("how", ["off", "off by options", "in vain", "given up"])
async def test_the_first_issues_are_told(how: str) -> None:
    """O-14: whatever was tried."""
    repair: Any = {"off": False, "given up": lambda given: NOT_REPAIRED}.get(how, True)
    options = RunOptions(repair_tool_input=False) if how == "off by options" else None
    part, _ = await called("add", {"a": "x", "b": "3"}, options, repair_tool_input=repair)
    assert (part.outcome, part.input, got) == ("failed", {"a": "x", "b": "3"}, [])
    assert part.error == f"The input does not fit the tool's schema: {ISSUES}"


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
async def test_a_function_mends_the_input(is_async: bool) -> None:
    """O-14"""
    seen: list[ToolRepair[Any]] = []

    def repair(given: ToolRepair[Any]) -> Any:
        seen.append(given)
        value: Any = given.input
        return {"a": len(value["a"])}

    async def later(given: ToolRepair[Any]) -> Any:
        return repair(given)

    part, _ = await called("add", {"a": "xyz"}, repair_tool_input=later if is_async else repair)
    assert (part.outcome, got) == ("completed", [(3, 1, "")])
    assert part.input == {"a": 3}
    (given,) = seen
    assert (given.tool, given.call_id, given.input) == ("add", "c", {"a": "xyz"})
    assert [fault.path for fault in given.faults] == ["input.a"]
    assert given.schema["required"] == ["a"]
    assert not given.signal.is_set()


@pytest.mark.anyio
@pytest.mark.parametrize("answer", [{"a": "still"}, None, {"a": object()}, "x"])
async def test_what_a_function_gives_is_checked_again(answer: Any) -> None:
    """O-14: its own issues are not told."""
    part, _ = await called("add", {"a": "x", "b": "3"}, repair_tool_input=lambda given: answer)
    assert part.error == f"The input does not fit the tool's schema: {ISSUES}"


@pytest.mark.anyio
async def test_options_turn_a_function_off_and_on_to_the_conversions() -> None:
    """The options of a call win over the agent."""
    asked: list[Any] = []
    options = RunOptions(repair_tool_input=True)
    part, _ = await called("add", {"a": "2"}, options, repair_tool_input=asked.append)
    assert (part.outcome, asked) == ("completed", [])


class Double:
    @hookimpl
    def rewrite_tool_input(self, call: Any) -> ReplaceInput:
        return ReplaceInput({"a": call.input["a"] * 2})


@pytest.mark.anyio
async def test_hooks_rewrite_what_was_mended() -> None:
    """The order of the tool input: check and repair, then hooks."""
    part, _ = await called("add", {"a": "2"}, plugins=[Double()])
    assert got == [(4, 1, "")]
    assert part.input == {"a": 4}


@pytest.mark.anyio
async def test_a_function_that_raises_fails_the_run() -> None:
    model = ScriptedModel([[Call("add", {"a": "x"})], "done"])
    definition = define_agent(
        name="a", model=model, tools={"add": add}, repair_tool_input=lambda given: 1 / 0
    )
    played = await play(definition)
    assert played.result.status == "failed"
    assert [type(error) for error in played.errors] == [ZeroDivisionError]


def test_what_can_be_no_repair() -> None:
    for repair in ("yes", None, 1, lambda: None):
        assert list(refused_agent(repair_tool_input=repair)) == ["repair_tool_input"]
