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
    Approve,
    ClientTool,
    Deny,
    Event,
    ModelDriver,
    Pai,
    Provide,
    ThreadState,
    ToolCallPart,
    ToolContext,
    ToolError,
    create_pai,
    define_agent,
    tool,
)
from pai.models import OpenAIChat, OpenAIResponses

from ..aimock import Aimock

SCRIPTS = Path(__file__).parent / "tanstack-tools"
EVERY = sorted(path.stem for path in SCRIPTS.glob("*.json"))
ASKING = [name for name in EVERY if "approval" in name]


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


@tool(needs_approval=True)
def delete_file(ctx: ToolContext[object], path: str) -> str:
    """Delete a file."""
    return f"deleted {path}"


@tool(inline=True)
def fetch_data(ctx: ToolContext[object], source: str) -> list[int]:
    """Fetch data."""
    return [1, 2, 3]


@tool(lazy=True)
def search_inventory(ctx: ToolContext[object], query: str) -> list[str]:
    """Search the inventory."""
    return [f"Fender {query.title()}"]


OBJECT: dict[str, Any] = {"type": "object"}
CLIENT_TOOLS = (
    ClientTool("show_notification", "Show a notification.", OBJECT),
    ClientTool("display_chart", "Display a chart.", OBJECT),
    ClientTool("read_client_context", "Read what the client knows.", OBJECT),
)
TOOLS: dict[str, Any] = {
    "delete_file": delete_file,
    "fetch_data": fetch_data,
    "search_inventory": search_inventory,
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


async def played(app: Pai, name: str, *, yes: bool) -> tuple[list[Event], ThreadState]:
    """Send what the script waits for, and answer whatever the run waits for."""
    thread = app.thread("main", thread_id="t")
    run = await thread.send(f"[{name}] run test", client_tools=CLIENT_TOOLS)
    result = await run.result()
    while result.status == "suspended":
        # The last one first: answers come in any order, and one by one.
        for call in reversed(result.pending):
            if call.kind == "client":
                await run.resume([Provide(call.call_id, {"shown": call.input})])
            else:
                await run.resume([Approve(call.call_id) if yes else Deny(call.call_id)])
        result = await run.result()
    return [event async for event in run.events()], await thread.state()


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["chat", "responses"])
@pytest.mark.parametrize(
    ("name", "yes"), [*[(name, True) for name in EVERY], *[(name, False) for name in ASKING]]
)
async def test_a_script_is_played_to_its_end(
    aimock: Aimock, name: str, yes: bool, kind: str
) -> None:
    """R-19, R-21: with approvals and tools of the client, given one by one."""
    aimock.load(SCRIPTS / f"{name}.json")
    agent = define_agent(
        name="conformance",
        model=driver(kind, aimock.url),
        tools=TOOLS,
        runtime_context=lambda _: {"secret_word": "swordfish"},
    )
    async with create_pai(agents={"main": agent}) as app:
        events, state = await played(app, name, yes=yes)

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
    outcomes = [(part.tool, part.outcome) for part in parts if isinstance(part, ToolCallPart)]
    other = {"failing_tool": "failed", "delete_file": "completed" if yes else "denied"}
    assert outcomes == [
        (call["name"], other.get(call["name"], "completed"))
        for turn in script
        for call in turn.get("toolCalls", ())
    ]
    assert state.pending == ()
    assert [view.status for view in state.runs] == ["completed"]


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
