"""A conversation that has become too long for the model, with a real client and a real server."""

from __future__ import annotations

from typing import Any

import pytest
from pai_compaction import compaction, summarise

from pai import create_pai, define_agent, tool
from pai.models import OpenAIChat
from pai.protocol import PluginEvent

from ..aimock import Aimock

pytestmark = pytest.mark.anyio

LONG = "word " * 400
TOO_LONG = {
    "message": "This model's maximum context length is 500 tokens.",
    "type": "invalid_request_error",
    "code": "context_length_exceeded",
    "param": "messages",
}


@tool
def weather(ctx: Any, city: str) -> str:
    """Tell the weather."""
    return f"{city}: {LONG}"


def said(entry: dict[str, Any]) -> list[tuple[str, str]]:
    """Who said what in a request."""
    return [
        (message["role"], message.get("content") or message["tool_calls"][0]["id"])
        for message in entry["body"]["messages"]
    ]


async def test_a_refused_request_is_made_shorter_and_answered(aimock: Aimock):
    call = {"id": "call_1", "name": "weather", "arguments": {"city": "Rome"}}
    aimock.load(
        [
            # It holds the words of the others.
            {"match": {"userMessage": "Write its summary"}, "response": {"content": "Rome: warm."}},
            {
                "match": {"userMessage": "first", "hasToolResult": False},
                "response": {"toolCalls": [call]},
            },
            {
                "match": {"userMessage": "first", "hasToolResult": True},
                "response": {"content": "It is warm."},
            },
            {
                "match": {"userMessage": "second", "sequenceIndex": 0},
                "response": {"error": TOO_LONG, "status": 400},
            },
            {"match": {"userMessage": "second"}, "response": {"content": "You are welcome."}},
        ]
    )
    model = OpenAIChat("small", base_url=aimock.url, api_key="sk-test")
    agent = define_agent(name="a", model=model, instructions="Be kind.", tools={"weather": weather})
    plugin = compaction(strategies=[summarise(keep=1)])
    async with create_pai(agents={"main": agent}, plugins=[plugin]) as app:
        thread = app.thread("main", thread_id="t")
        first = await (await thread.send("first")).result()
        assert first.text == "It is warm."
        run = await thread.send("second")
        second = await run.result()
        events = [event async for event in run.events()]
        state = await thread.state()

    assert second.text == "You are welcome."
    *_, refused, summary, answered = aimock.journal()
    assert refused["response"]["status"] == 400
    assert [role for role, _ in said(refused)] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "user",
    ]
    assert LONG in dict(said(refused))["tool"]

    assert "tools" not in summary["body"]
    [(_, instructions), (_, asked)] = said(summary)
    assert "summary" in instructions
    assert "Assistant called weather" in asked
    assert "It is warm." in asked

    assert answered["response"]["status"] == 200
    [(_, system), (role, short), last] = said(answered)
    assert system == "Be kind."
    assert role == "user"
    assert "Rome: warm." in short
    assert last == ("user", "second")
    assert answered["body"]["tools"] == refused["body"]["tools"]

    [told] = [each.value for each in events if isinstance(each, PluginEvent)]
    assert isinstance(told, dict)
    before, after = told["before"], told["after"]
    assert isinstance(before, int)
    assert isinstance(after, int)
    assert after < before
    assert (told["strategy"], told["reason"]) == (["summarise"], "overflow")
    # The thread has all that was said.
    assert [message.role for message in state.messages] == [
        "user",
        "assistant",
        "assistant",
        "user",
        "assistant",
    ]
    assert LONG in str(state.messages[1].parts)
