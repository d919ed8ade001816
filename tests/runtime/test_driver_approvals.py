"""A driver that asks for leave before its provider runs a call (O-3)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    AgentToolConfig,
    Approve,
    Cancel,
    Deny,
    Pai,
    ToolCallPart,
    ToolContext,
    ToolOutput,
    ToolResultContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.models import OpenAIResponses
from pai.protocol import event_from_json, event_to_json, fold
from pai.testing import Call, ScriptedModel

from ..models.edge_server import EdgeServer, edge_server, stream
from ..models.responses_cases import ended, hosted, message

pytestmark = pytest.mark.anyio

ASKS = Call("lookup", {"q": "pai"}, "a1", approval={"server": "wiki"})


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


def app_of(model: Any, store: str, **options: Any) -> Pai:
    agent = define_agent(name="a", model=model, **options)
    return create_pai(agents={"a": agent}, store=store, plugins=())


@pytest.mark.parametrize(
    ("answer", "outcome", "told"),
    [
        (Approve("a1"), "completed", {"type": "approve"}),
        (Approve("a1", input={"q": "x"}), "completed", {"type": "approve", "input": {"q": "x"}}),
        (Deny("a1", reason="no"), "denied", {"type": "deny", "reason": "no"}),
        (Cancel("a1"), "cancelled", {"type": "cancel"}),
    ],
)
async def test_the_run_waits_and_the_driver_gets_the_decision(
    answer: Any, outcome: str, told: dict[str, Any], store: str
) -> None:
    """O-3: payload and edits are kept; the model is asked again, whatever was decided."""
    model = ScriptedModel([["I ask.", ASKS], "Found."])
    with anyio.fail_after(20):
        async with app_of(model, store) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go")
            first = await run.result()
            (pending,) = first.pending
            assert first.status == "suspended"
            assert (pending.kind, pending.tool, pending.payload) == (
                "approval", "lookup", {"server": "wiki"},
            )  # fmt: skip
            waiting = (await thread.state()).messages[1].parts[-1]
            assert isinstance(waiting, ToolCallPart)
            assert (waiting.outcome, waiting.provider_executed) == (None, True)
            await run.resume([answer])
            assert (await run.result()).text == "Found."
            events = [event async for event in run.events(after=0)]
            state = await thread.state()
    assert fold(None, events) == state
    assert [event_from_json(event_to_json(event)) for event in events] == events
    part = state.messages[1].parts[-1]
    assert isinstance(part, ToolCallPart)
    assert part.outcome == outcome
    assert part.input == told.get("input", {"q": "pai"})
    decision: Any = model.requests[1].approvals["a1"]
    assert {**decision, "actor": None} == {**told, "actor": None}


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        (Approve("a1"), "completed"),
        (Approve("a1", input={"q": "no number, as ours wants"}), "completed"),
        (Deny("a1"), "denied"),
    ],
)
async def test_only_the_answer_decides(answer: Any, outcome: str, store: str) -> None:
    """No tool of ours runs for it, though it has the name, and no hook makes a denied call good."""
    ran: list[object] = []

    @tool
    def lookup(ctx: ToolContext[None], q: int) -> str:
        """Look up."""
        ran.append("lookup")
        return "ours"

    class Mends:
        @hookimpl
        def after_tool_result(self, result: ToolResultContext[Any]) -> Any:
            ran.append("hook")
            return ToolOutput("good")

    own = Call("lookup", {"q": 1}, "c1")
    model = ScriptedModel([[ASKS, own], "end"])
    config = AgentToolConfig(lookup, on_output=lambda seen: ran.append(seen.output))
    with anyio.fail_after(20):
        async with app_of(model, store, tools={"lookup": config}, lifecycle=Mends()) as app:
            run = await app.thread("a").send("go")
            await run.result()
            assert ran == ["lookup", "hook", "good"]  # our own call, which waits for nothing
            await run.resume([answer])
            assert (await run.result()).text == "end"
    assert ran == ["lookup", "hook", "good"]
    parts = model.requests[1].messages[-1].parts
    assert [getattr(part, "outcome", None) for part in parts] == [outcome, "completed"]


async def test_an_output_comes_behind_the_decision() -> None:
    """The step that asked is not the last one: the model is heard before the output is asked for."""

    @attrs.frozen
    class Report:
        title: str

    @tool
    def count(ctx: ToolContext[None]) -> int:
        """Count."""
        return 1

    model = ScriptedModel([[ASKS], "Found.", '{"title": "T"}'])
    options = {"tools": {"count": count}, "outputs": {"report": Report}}
    with anyio.fail_after(20):
        async with app_of(model, "memory:", **options) as app:
            run = await app.thread("a").send("go", options={"output": "report"})
            await run.result()
            await run.resume([Approve("a1")])
            assert (await run.result()).output == Report("T")
    assert [request.output is not None for request in model.requests] == [False, False, True]


@pytest.fixture
def edge() -> Any:
    with edge_server() as server:
        yield server


ITEM = {
    "id": "ap_1", "type": "mcp_approval_request", "name": "lookup", "server_label": "wiki",
    "arguments": '{"q":"pai"}',
}  # fmt: skip
DONE = {
    "id": "mcp_1", "type": "mcp_call", "name": "lookup", "server_label": "wiki",
    "arguments": '{"q":"pai"}', "output": "found", "approval_request_id": "ap_1",
}  # fmt: skip


@pytest.mark.parametrize(
    ("answer", "response"),
    [
        (Approve("ap_1"), {"approve": True}),
        (Deny("ap_1", reason="no"), {"approve": False, "reason": "The call was denied. no"}),
        (
            Approve("ap_1", input={"q": "x"}),
            {
                "approve": False,
                "reason": 'Approved with another input, call it with that: {"q":"x"}',
            },
        ),
    ],
)
async def test_an_mcp_server_of_the_responses_api(
    answer: Any, response: dict[str, Any], edge: EdgeServer, store: str
) -> None:
    """O-3: the request for leave goes back with its answer, and the call follows."""
    model = OpenAIResponses(
        edge.play(stream(*hosted(0, **ITEM), ended())), base_url=edge.url, api_key="k"
    )
    with anyio.fail_after(20):
        async with app_of(model, store) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go")
            (pending,) = (await run.result()).pending
            assert (pending.call_id, pending.input) == ("ap_1", {"q": "pai"})
            assert pending.payload == {"server": "wiki"}
            edge.play(stream(*hosted(0, **DONE), *message("Yes.", index=1), ended()))
            await run.resume([answer])
            result = await run.result()
            assert (result.status, result.text) == ("completed", "Yes.")
            # And in the next turn, with all that came of it.
            edge.play(stream(*message("Bye."), ended()))
            last = await (await thread.send("more")).result()
            assert last.text == "Bye."
    second, third = (json.loads(request.body)["input"] for request in edge.requests[1:])
    told = {"type": "mcp_approval_response", "approval_request_id": "ap_1", **response}
    assert second == [{"role": "user", "content": "go"}, ITEM, told]
    assert third[: len(second) + 1] == [*second, DONE]


async def test_what_nobody_answered_does_not_go_back(edge: EdgeServer) -> None:
    """A request without its answer would be refused."""
    model = OpenAIResponses(
        edge.play(stream(*hosted(0, **ITEM), ended())), base_url=edge.url, api_key="k"
    )
    with anyio.fail_after(20):
        async with app_of(model, "memory:") as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go")
            await run.result()
            await run.cancel("enough")
            edge.play(stream(*message("Yes."), ended()))
            assert (await (await thread.send("more")).result()).text == "Yes."
    assert "mcp_approval" not in edge.requests[-1].body.decode()
