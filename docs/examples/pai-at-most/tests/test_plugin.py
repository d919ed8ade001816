"""The plugin through the doors that its users take."""

from __future__ import annotations

from typing import Any

import pytest
from pai_at_most import AtMost, Per
from pai_at_most._limits import is_spent, still_offered

from pai import DefinitionError, create_pai, define_agent, run_once, tool
from pai.testing import Call, ScriptedModel, check_plugin

ADD = Call("add", {"a": 2, "b": 3})


@tool
def add(ctx: Any, a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def test_limits() -> None:
    assert is_spent("a", {"a": 0}, {})
    assert not is_spent("a", {"a": 1}, {"b": 1})
    assert is_spent("a", {"a": 1}, {"a": 1})
    assert not is_spent("b", {"a": 1}, {"b": 9})
    assert still_offered(["a", "b"], {"a": 1}, {"a": 1}) == ["b"]
    assert still_offered(["a", "b"], {"a": 1}, {}) is None


def test_limits_below_0_are_refused_all_at_once() -> None:
    with pytest.raises(DefinitionError) as caught:
        AtMost({"a": -1, "b": -2})
    assert [fault.path for fault in caught.value.faults] == ["calls.a", "calls.b"]


# Asynchronous tests run on asyncio and on trio.
@pytest.mark.anyio
async def test_a_tool_that_is_spent_is_hidden_and_denied() -> None:
    model = ScriptedModel([[ADD, ADD], "It is 5."])
    agent = define_agent(name="calc", model=model, tools={"add": add}, lifecycle=AtMost({"add": 1}))
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main").send("Add.")
        assert (await run.result()).text == "It is 5."
        told = [event.value async for event in run.events() if event.type == "plugin"]
    assert told == [{"tool": "add", "limit": 1, "per": "run"}]
    calls: list[Any] = list(model.requests[1].messages[-1].parts)
    assert [call.outcome for call in calls] == ["completed", "denied"]
    assert [len(request.tools) for request in model.requests] == [1, 0]


@pytest.mark.anyio
@pytest.mark.parametrize(("per", "offered"), [("run", [1, 0, 1, 0]), ("thread", [1, 0, 0])])
async def test_what_is_counted_over(per: Per, offered: list[int]) -> None:
    model = ScriptedModel(lambda request: ADD if request.tools else "Done.")
    plugin = AtMost({"add": 1}, per)
    agent = define_agent(name="calc", model=model, tools={"add": add}, lifecycle=plugin)
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        thread = app.thread("main")
        for _ in range(2):
            run = await thread.send("Add.")
            assert (await run.result()).text == "Done."
    assert [len(request.tools) for request in model.requests] == offered


@pytest.mark.anyio
async def test_once_installed_it_is_found_with_its_options() -> None:
    model = ScriptedModel([ADD, "It is 5."])
    agent = define_agent(name="calc", model=model, tools={"add": add})
    result = await run_once(agent, "Add.", plugins={"at-most": {"calls": {"add": 0}}})
    assert result.text == "It is 5."
    assert [len(request.tools) for request in model.requests] == [0, 0]


# "What others rely on" is explained in pai's documentation, on the page plugins/testing.
@pytest.mark.anyio
@pytest.mark.parametrize("per", ["run", "thread"])
async def test_the_plugin_keeps_what_others_rely_on(per: Per) -> None:
    await check_plugin(lambda: AtMost({"add": 1}, per))
