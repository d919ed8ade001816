"""Lazy tools: discovered by name, kept by the history (O-6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pai import (
    AgentToolConfig,
    LazyTools,
    RunOptions,
    RunPatch,
    StepPatch,
    ToolCallPart,
    ToolName,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..definition.refusals import refused_agent
from ..played import Played, play, play_on

DISCOVER = "__lazy__tool__discovery__"


@tool
def plain(ctx: Any) -> str:
    """Do what is always there."""
    return "plain"


@tool(lazy=True)
def ship(ctx: Any, order: int) -> str:
    """
    Ship an order. It leaves the house at once.

    It can't be called back.
    """
    return f"shipped {order}"


@tool(lazy=True)
def refund(ctx: Any) -> str:
    """Refund."""
    return "refunded"


def asks(*names: str) -> Call:
    return Call(DISCOVER, {"toolNames": list(names)})


def agent(*turns: Any, tools: Any = None, **fields: Any) -> Any:
    tools = tools or {"plain": plain, "ship": ship, "refund": refund}
    return define_agent(name="a", model=ScriptedModel([*turns, "done"]), tools=tools, **fields)


def offered(definition: Any) -> list[list[str]]:
    """The tools of each request, the discovering one as `?`."""
    return [
        [spec.name.replace(DISCOVER, "?") for spec in request.tools]
        for request in definition.model.requests
    ]


def calls(played: Played) -> list[ToolCallPart]:
    return [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]


@pytest.mark.anyio
async def test_a_tool_is_offered_once_it_is_discovered() -> None:
    """O-6: one call after another, and the tool that discovers goes when all is found."""
    definition = agent(
        [asks("ship")], [Call("ship", {"order": 3})], [asks("refund")], [Call("refund")]
    )
    played = await play(definition)
    assert offered(definition) == [
        ["plain", "?"], ["plain", "ship", "?"], ["plain", "ship", "?"],
        ["plain", "ship", "refund"], ["plain", "ship", "refund"],
    ]  # fmt: skip
    first, shipped, _, refunded = calls(played)
    assert (first.outcome, shipped.output, refunded.output) == (
        "completed",
        "shipped 3",
        "refunded",
    )
    assert first.output == {
        "tools": [
            {
                "name": "ship",
                "description": ship.description,
                "inputSchema": ship.input.json_schema,
            }
        ]
    }


@pytest.mark.anyio
async def test_discovery_holds_for_later_runs_and_after_a_restart(tmp_path: Path) -> None:
    """O-6: the history says so."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    first, second = agent([asks("ship")]), agent("and", [Call("ship", {"order": 1})])
    async with create_pai(agents={"a": first}, store=url) as app:
        await play_on(app.thread("a", thread_id="t"), "go", [])
    async with create_pai(agents={"a": second}, store=url) as app:
        await play_on(app.thread("a", thread_id="t"), "go", [])
        played = await play_on(app.thread("a", thread_id="t"), "go", [])
        await play_on(app.thread("a", thread_id="other"), "go", [])
    assert calls(played)[-1].output == "shipped 1"
    assert offered(second)[:2] == [["plain", "ship", "?"]] * 2
    # Another thread knows nothing of it.
    assert offered(second)[-1] == ["plain", "?"]


@pytest.mark.anyio
async def test_a_second_discovery() -> None:
    """O-6: the same again is fine, also when nothing is left to discover."""
    definition = agent([asks("ship", "refund")], [asks("ship")], [Call("ship", {"order": 2})])
    played = await play(definition)
    first, second, shipped = calls(played)
    outputs: list[Any] = [first.output, second.output]
    assert [len(output["tools"]) for output in outputs] == [2, 1]
    assert shipped.output == "shipped 2"
    assert offered(definition)[1:] == [["plain", "ship", "refund"]] * 3


@pytest.mark.anyio
async def test_what_can_not_be_discovered() -> None:
    """O-6: names are told; a lazy tool obeys `enabled`."""
    on = [True]
    tools = {
        "plain": plain,
        "ship": ship,
        "refund": AgentToolConfig(refund, enabled=lambda given: on[0]),
    }
    definition = agent(
        [asks("ship", "plain", "nobody", "refund")], [asks("refund")], [Call("refund")], tools=tools
    )

    class Off:
        @hookimpl
        def prepare_model_step(self) -> None:
            on[0] = False

    played = await play(definition, plugins=[Off()])
    first, second, call = calls(played)
    assert first.output["errors"] == [  # type: ignore[index, call-overload]  # an object
        f"There is no tool named {name!r} to discover." for name in ("plain", "nobody", "refund")
    ]
    assert second.output == {
        "tools": [],
        "errors": ["There is no tool named 'refund' to discover."],
    }
    assert call.error == "The tool 'refund' is not available now."
    assert offered(definition) == [["plain", "?"], *[["plain", "ship"]] * 3]


@pytest.mark.anyio
async def test_a_call_ahead_of_discovery_is_told_what_to_do() -> None:
    """O-6"""
    played = await play(agent([Call("ship", {"order": 1})]))
    (part,) = calls(played)
    assert (part.outcome, part.error) == (
        "failed",
        f"Discover 'ship' first: call {DISCOVER} with it.",
    )


@pytest.mark.anyio
@pytest.mark.parametrize("given", [{}, {"toolNames": "ship"}, {"toolNames": [1]}, "{", []])
async def test_a_call_that_names_no_tools(given: Any) -> None:
    played = await play(agent([Call(DISCOVER, given)]))
    (part,) = calls(played)
    assert part.outcome == "failed"
    assert played.result.text == "done"


@pytest.mark.anyio
async def test_without_lazy_tools_nobody_discovers() -> None:
    definition = agent([asks("plain")], tools={"plain": plain})
    played = await play(definition)
    assert calls(played)[0].error == f"There is no tool named {DISCOVER!r}. Tools: plain."
    assert definition.model.requests[0].tools is definition.specs


@pytest.mark.anyio
@pytest.mark.parametrize("by_options", [False, True])
@pytest.mark.parametrize(
    ("describe", "lines"),
    [
        ("none", ["- ship", "- refund"]),
        ("first-sentence", ["- ship: Ship an order.", "- refund: Refund."]),
        ("full", [
            "- ship: Ship an order. It leaves the house at once. It can't be called back.",
            "- refund: Refund.",
        ]),
    ],
)  # fmt: skip
async def test_how_lazy_tools_are_told_of(
    describe: Any, lines: list[str], by_options: bool
) -> None:
    """O-6"""
    wish = LazyTools(describe)
    definition = agent(lazy_tools=LazyTools() if by_options else wish)
    await play(definition, options=RunOptions(lazy_tools=wish) if by_options else None)
    (request,) = definition.model.requests
    assert request.tools[-1].description.splitlines()[1:] == lines


@pytest.mark.anyio
async def test_the_same_tools_are_the_same_tuple() -> None:
    """So that a driver keeps their encoded form."""
    definition = agent([asks("ship")], [Call("plain")])
    await play(definition)
    first, second, third = definition.model.requests
    assert second.tools is third.tools
    assert first.tools is not second.tools


class Patch:
    def __init__(self, run: RunPatch | None = None, step: StepPatch | None = None) -> None:
        self.run, self.step = run, step

    @hookimpl
    def prepare_run(self) -> RunPatch | None:
        return self.run

    @hookimpl
    def prepare_model_step(self) -> StepPatch | None:
        return self.step


@pytest.mark.anyio
@pytest.mark.parametrize("step", [False, True])
async def test_a_patch_chooses_among_lazy_tools_too(step: bool) -> None:
    """A-TOOL-7"""
    only = ["ship"]
    plugin = Patch(step=StepPatch(tools=only)) if step else Patch(RunPatch(tools=only))
    definition = agent([asks("ship")])
    await play(definition, plugins=[plugin])
    assert offered(definition) == [["?"], ["ship"]]
    none = agent([asks("ship")])
    await play(none, plugins=[Patch(step=StepPatch(tools=["plain"]))])
    assert offered(none)[0] == ["plain"]


@pytest.mark.anyio
async def test_a_lazy_tool_can_be_chosen_when_it_is_there() -> None:
    """O-21"""
    definition = agent([asks("ship")], tool_choice=ToolName("ship"))
    await play(definition)
    assert [request.tool_choice for request in definition.model.requests] == [None, None]


def test_the_name_is_taken() -> None:
    """A-DEF-2"""
    assert list(refused_agent(tools={DISCOVER: plain})) == [f"tools.{DISCOVER}"]
    assert list(refused_agent(lazy_tools=LazyTools("some"))) == ["lazy_tools.describe"]  # type: ignore[arg-type]  # what is tested
    assert list(refused_agent(lazy_tools="full")) == ["lazy_tools"]
