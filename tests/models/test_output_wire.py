"""What both drivers send for a structured output, as a server saw it (O-11); and what they never send."""

from __future__ import annotations

import json
from typing import Any, Literal

import attrs
import httpx2
import pytest

from pai import RunResult, create_pai, define_agent, tool
from pai.models import OpenAIChat, OpenAIResponses

from ..aimock import Aimock

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])
MARK = "marker-3d1e7"


@attrs.frozen
class Report:
    title: str
    kind: Literal["a", "b"] = "a"
    score: int | None = None


STRICT = {
    "type": "object",
    "properties": {
        "title": {"type": "string"},
        "kind": {"type": ["string", "null"], "enum": ["a", "b", None]},
        "score": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    },
    "required": ["title", "kind", "score"],
    "additionalProperties": False,
}
ANSWER = '{"title": "T", "kind": null, "score": null}'
CALL: dict[str, Any] = {
    "match": {"hasToolResult": False, "toolName": "add"},
    "response": {"toolCalls": [{"id": "c1", "name": "add", "arguments": {"a": 2, "b": 3}}]},
}


@tool
def add(ctx, a: int, b: int) -> int:
    """Add."""
    return a + b


def format_of(body: Any) -> Any:
    """The format that was asked for, on either API."""
    if "response_format" in body:
        return body["response_format"]["json_schema"]
    return body.get("text", {}).get("format")


def recording(aimock: Aimock, seen: list[httpx2.Request]) -> Any:
    """
    A wrapper that keeps each request as it leaves, and sends it to the mock.

    The mock's own journal has requests in its inner form alone, which knows no format.
    """
    there = httpx2.URL(aimock.url)

    class Records(httpx2.AsyncBaseTransport):
        def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
            self.inner = inner

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            seen.append(request)
            request.url = request.url.copy_with(
                scheme=there.scheme, host=there.host, port=there.port
            )
            request.headers["host"] = f"{there.host}:{there.port}"
            return await self.inner.handle_async_request(request)

    return Records


async def play(
    model: Any, aimock: Aimock, tools: Any = None, **fields: Any
) -> tuple[RunResult, list[Any]]:
    """The result of a run, and the bodies that it sent."""
    seen: list[httpx2.Request] = []
    agent = define_agent(
        name="a",
        model=model,
        tools=tools,
        outputs={"report": Report},
        wrap_transport=recording(aimock, seen),
        **fields,
    )
    async with create_pai(agents={"a": agent}) as app:
        run = await app.thread("a").send(
            "go", options={"output": "report"}, metadata={"trace": MARK}
        )
        result = await run.result()
    assert MARK not in str([request.headers.multi_items() for request in seen])
    return result, [json.loads(request.content) for request in seen]


@BOTH
async def test_without_tools(cls, aimock: Aimock) -> None:
    aimock.load([{"match": {}, "response": {"content": ANSWER}}])
    result, (body,) = await play(cls("m", base_url=aimock.url), aimock)
    assert result.output == Report("T")
    asked = format_of(body)
    assert asked["schema"] == STRICT
    assert asked["strict"] is True
    assert "tools" not in body


@BOTH
async def test_a_compatible_server_gets_it_in_a_call_of_its_own(cls, aimock: Aimock) -> None:
    """Never beside tools: many such servers bind the whole answer to it."""
    aimock.load(
        [
            CALL,
            {"match": {"userMessage": "final answer"}, "response": {"content": ANSWER}},
            {"match": {"hasToolResult": True}, "response": {"content": "Five."}},
        ]
    )
    result, bodies = await play(
        cls("m", base_url=aimock.url), aimock, {"add": add}, tool_choice="auto"
    )
    assert result.output == Report("T")
    assert [bool(body.get("tools")) for body in bodies] == [True, True, False]
    assert [format_of(body) is not None for body in bodies] == [False, False, True]
    assert ["tool_choice" in body for body in bodies] == [True, True, False]


@BOTH
async def test_openais_own_service_gets_it_beside_tools(cls, aimock: Aimock) -> None:
    aimock.load([CALL, {"match": {"hasToolResult": True}, "response": {"content": ANSWER}}])
    model = cls("gpt-5.2", api_key="k", base_url="https://api.openai.com/v1")
    result, bodies = await play(model, aimock, {"add": add})
    assert result.output == Report("T")
    assert [bool(body.get("tools")) for body in bodies] == [True, True]
    assert [format_of(body)["schema"] for body in bodies] == [STRICT, STRICT]


@BOTH
async def test_the_call_that_repairs(cls, aimock: Aimock) -> None:
    aimock.load(
        [
            {"match": {"userMessage": "does not fit"}, "response": {"content": ANSWER}},
            {"match": {"userMessage": "go"}, "response": {"content": "Well."}},
        ]
    )
    result, (first, second) = await play(cls("m", base_url=aimock.url), aimock)
    assert result.output == Report("T")
    assert format_of(first) == format_of(second)
    said = second.get("messages") or second["input"]
    assert [each["role"] for each in said if "role" in each] == ["user", "assistant", "user"]


@BOTH
async def test_metadata_of_a_call_is_on_no_wire(cls, aimock: Aimock) -> None:
    """O-9: whichever call it is."""
    aimock.load([CALL, {"match": {}, "response": {"content": "Well."}}])
    result, bodies = await play(cls("m", base_url=aimock.url), aimock, {"add": add})
    assert result.status == "failed"
    assert len(bodies) == 4
    assert MARK not in str(bodies)
    assert MARK not in str(aimock.journal())
