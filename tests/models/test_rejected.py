"""A server refuses a call that its own model wrote: the run goes on, the model is told."""

from __future__ import annotations

from typing import Any

import pytest

from pai import ToolCallPart, define_agent, tool
from pai.errors import ModelError
from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai.rejected import written_calls

from ..played import play
from .chat_cases import CHAT, text
from .edge_server import EdgeServer, Reply, refusal, stream
from .told import ADD, listen, request, told


def rejection(generation: str | None) -> dict[str, Any]:
    return {
        "message": "Failed to call a function.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": generation,
    }


FORMS = [
    ('{"name": "add", "arguments": {"a": 1}}', [("add", '{"a":1}')]),
    ('{"name": "add", "parameters": {"a": 1}}', [("add", '{"a":1}')]),
    ('{"name": "add", "arguments": "{\\"a\\": 1}"}', [("add", '{"a": 1}')]),
    ('[{"name": "add"}, {"name": "sub", "input": []}]', [("add", "{}"), ("sub", "[]")]),
    ('{"tool_calls": [{"function": {"name": "add", "arguments": "{"}}]}', [("add", "{")]),
    ('<tool_call>{"name": "add", "arguments": {}}</tool_call>', [("add", "{}")]),
    ('<function=add>{"a": 1}</function>', [("add", '{"a": 1}')]),
    ('<function=add{"a": 1}</function>', [("add", '{"a": 1}')]),
    ('<function/add>{"a": 1}<function>', [("add", '{"a": 1}')]),
    ('<function=add>{"a": 1}', [("add", '{"a": 1}')]),
    ("add(a=1)", [("add", "add(a=1)")]),
    ("add or sub", []),
    ("address", []),
    ("", []),
    ("3", []),
]


@pytest.mark.parametrize(("generation", "calls"), FORMS)
def test_what_a_model_wrote(generation: str, calls: list[Any]) -> None:
    assert written_calls(generation, ["add", "sub"]) == calls


@pytest.mark.anyio
async def test_a_refused_request_becomes_a_call(edge: EdgeServer) -> None:
    driver = OpenAIChat(
        edge.play(refusal(400, {"error": rejection(FORMS[0][0])})), base_url=edge.url
    )
    parts = await listen(driver, request(driver, tools=(ADD,)))
    assert told(parts) == {"calls": [("add", {"a": 1})], "reason": "tool-calls"}


@pytest.mark.anyio
async def test_a_refusal_within_the_stream(edge: EdgeServer) -> None:
    """What was said before it stays, and the stream is well formed."""
    events = (text("I add"), {"error": rejection("<function=add>{")})
    driver = OpenAIChat(edge.play(stream(*events)), base_url=edge.url)
    parts = await listen(driver, request(driver, tools=(ADD,)))
    assert told(parts) == {
        "text": ["I add"],
        "calls": [("add", "raw:{")],
        "reason": "tool-calls",
    }


@pytest.mark.anyio
@pytest.mark.parametrize("within", [False, True])
async def test_a_call_nobody_can_read_fails_the_step(within: bool, edge: EdgeServer) -> None:
    """R-40: what the model wrote is in no error."""
    error = {"error": rejection("secret words")}
    reply = stream(text("a"), error) if within else refusal(400, error)
    for cls in (OpenAIChat, OpenAIResponses):
        if within and cls is OpenAIResponses:
            continue
        driver = cls(edge.play(reply), base_url=edge.url)
        with pytest.raises(ModelError) as caught:
            await listen(driver, request(driver, tools=(ADD,)))
        assert caught.value.code == "tool_use_failed"
        assert "secret" not in str(caught.value)


@pytest.mark.anyio
async def test_the_run_goes_on(edge: EdgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model reads what is wrong with its call, and answers."""

    @tool
    def add(ctx: Any, a: int, b: int) -> int:
        """Add."""
        return a + b

    replies = [refusal(400, {"error": rejection(FORMS[0][0])}), stream(*CHAT["text"].events)]

    class InTurn(dict[str, Reply]):
        def __getitem__(self, key: str) -> Reply:
            return replies[len(edge.requests) - 1]

    monkeypatch.setattr(edge, "replies", InTurn())
    agent = define_agent(name="a", model=OpenAIChat("m", base_url=edge.url), tools={"add": add})
    played = await play(agent)
    assert played.errors == []
    assert played.result.text == "ab"
    (part,) = [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]
    assert (part.outcome, part.error) == (
        "failed",
        "The input does not fit the tool's schema: input.b: required",
    )
    sent = edge.requests[1].json["messages"]
    assert sent[1]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a":1}'}
    assert "required" in sent[2]["content"]
