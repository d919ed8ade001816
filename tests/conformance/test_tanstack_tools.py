"""
Scripts written by others, played by a real mock model server, through both OpenAI drivers.

Each script says what the model answers, turn by turn; a run must show that text, make those calls
with those inputs in that order, send their results back, and end once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pai import (
    ModelDriver,
    ToolContext,
    ToolError,
    create_pai,
    define_agent,
    tool,
)
from pai.models import OpenAIChat, OpenAIResponses

from ..aimock import Aimock

SCRIPTS = Path(__file__).parent / "tanstack-tools"
SERVED_HERE = (
    "client-server-context",
    "custom-events",
    "null-tool-input",
    "parallel-tools",
    "server-context",
    "server-tool-single",
    "text-only",
    "tool-error",
)
"""The scripts that need no approval and no tool of the client's."""


@tool(inline=True)
def get_weather(ctx: ToolContext[object], city: str) -> dict[str, object]:
    """Tell the weather."""
    return {"city": city, "temperature": 72, "conditions": "sunny"}


@tool(inline=True)
def get_time(ctx: ToolContext[object], timezone: str) -> str:
    """Tell the time."""
    return f"12:00 {timezone}"


@tool(inline=True)
def check_status(ctx: ToolContext[object]) -> str:
    """Say how the system is."""
    return "normal"


@tool
def process_order(ctx: ToolContext[object], guitarId: int, quantity: int) -> dict[str, int]:  # noqa: N803  # the script's names
    """Process an order."""
    ctx.progress({"step": "validated"})
    return {"order": guitarId * 100 + quantity}


@tool
async def read_server_context(ctx: ToolContext[dict[str, str]]) -> str:
    """Read what the server knows."""
    return ctx.context["secret_word"]


@tool
def failing_tool(ctx: ToolContext[object], message: str) -> str:
    """Fail."""
    raise ToolError(f"failed as told: {message}")


TOOLS: dict[str, Any] = {
    "get_weather": get_weather,
    "get_time": get_time,
    "check_status": check_status,
    "process_order": process_order,
    "read_server_context": read_server_context,
    "failing_tool": failing_tool,
}


def driver(kind: str, url: str) -> ModelDriver:
    made = {"chat": OpenAIChat, "responses": OpenAIResponses}[kind]
    return made("gpt-test", base_url=url, api_key="sk-test")


def turns(name: str) -> list[Mapping[str, Any]]:
    script = json.loads((SCRIPTS / f"{name}.json").read_text("utf-8"))
    return [item["response"] for item in script["fixtures"]]


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["chat", "responses"])
@pytest.mark.parametrize("name", SERVED_HERE)
async def test_a_script_is_played_to_its_end(aimock: Aimock, name: str, kind: str) -> None:
    aimock.load(SCRIPTS / f"{name}.json")
    agent = define_agent(
        name="conformance",
        model=driver(kind, aimock.url),
        tools=TOOLS,
        runtime_context=lambda _: {"secret_word": "swordfish"},
    )
    async with create_pai(agents={"main": agent}) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send(f"[{name}] run test")
        events = [event async for event in run.events()]
        state = await thread.state()

    script = turns(name)
    steps: list[list[Any]] = []
    for event in events:
        if event.type == "step-started":
            steps.append([])
        elif steps:
            steps[-1].append(event)
    assert len(steps) == len(script)
    for turn, seen in zip(script, steps, strict=True):
        text = "".join(event.text for event in seen if event.type == "text-delta")
        assert text == turn.get("content", "")
        calls = [(event.tool, event.input) for event in seen if event.type == "tool-call"]
        wanted = [(c["name"], json.loads(c["arguments"])) for c in turn.get("toolCalls", ())]
        # A null for a tool without fields was executed as an empty object.
        assert [(tool, input_ or {}) for tool, input_ in dict_calls(calls)] == [
            (tool, input_ or {}) for tool, input_ in wanted
        ]
        settled = [e for e in seen if e.type in ("tool-output", "tool-error")]
        assert len(settled) == len(wanted)

    assert [event.type for event in events].count("run-finished") == 1
    assert events[-1].type == "run-finished"
    assert events[-1].status == "completed"
    assert [event.seq for event in events] == list(range(1, len(events) + 1))

    parts = [part for message in state.messages for part in message.parts]
    outcomes = {part.tool: part.outcome for part in parts if part.type == "tool-call"}
    assert outcomes == {
        call["name"]: "failed" if call["name"] == "failing_tool" else "completed"
        for turn in script
        for call in turn.get("toolCalls", ())
    }


def dict_calls(calls: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The calls as they stand at the end: an input that was rewritten is told a second time."""
    unique: list[tuple[str, Any]] = []
    for tool_name, input_ in calls:
        if unique and unique[-1][0] == tool_name and unique[-1][1] is None:
            unique[-1] = (tool_name, input_)
        else:
            unique.append((tool_name, input_))
    return unique


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["chat", "responses"])
async def test_results_reach_the_model_in_call_order(aimock: Aimock, kind: str) -> None:
    """O-22: whatever finishes first."""
    name = "parallel-tools"
    aimock.load(SCRIPTS / f"{name}.json")
    agent = define_agent(name="conformance", model=driver(kind, aimock.url), tools=TOOLS)
    async with create_pai(agents={"main": agent}) as app:
        run = await app.thread("main").send(f"[{name}] run test")
        result = await run.result()
    result.raise_for_status()
    last = aimock.journal()[-1]["body"]
    text = json.dumps(last)
    assert text.index("sunny") < text.index("12:00 EST")


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["chat", "responses"])
async def test_observability_metadata_is_not_on_the_wire(aimock: Aimock, kind: str) -> None:
    """O-9."""
    aimock.load(SCRIPTS / "text-only.json")
    agent = define_agent(name="conformance", model=driver(kind, aimock.url))
    async with create_pai(agents={"main": agent}) as app:
        run = await app.thread("main").send(
            "[text-only] run test", metadata={"tenant": "marker-7261"}
        )
        (await run.result()).raise_for_status()
    assert "marker-7261" not in json.dumps(aimock.journal())
