"""pai-prompt-cache on the wire of a real mock model server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pai_prompt_cache import prompt_cache

from pai import ModelDriver, create_pai, define_agent, tool
from pai.models import OpenAIChat, OpenAIResponses

from ..aimock import Aimock

pytestmark = pytest.mark.anyio

DRIVERS: dict[str, type[OpenAIChat | OpenAIResponses]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
}


@pytest.fixture(params=DRIVERS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Detour(httpx2.AsyncHTTPTransport):
    """Takes requests to another server, and keeps what was sent: its journal shows it translated."""

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._there = httpx2.URL(origin)
        self.sent: list[dict[str, Any]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append(json.loads(await request.aread()))
        there = self._there
        request.url = request.url.copy_with(scheme=there.scheme, host=there.host, port=there.port)
        return await super().handle_async_request(request)


OPENAI = "https://api.openai.com/v1"


@asynccontextmanager
async def wire(
    kind: str, aimock: Aimock, base_url: str = OPENAI
) -> AsyncIterator[tuple[ModelDriver, list[dict[str, Any]]]]:
    """A driver that believes it talks to *base_url*, and the bodies that it sends."""
    detour = Detour(aimock.origin)
    async with (
        httpx2.AsyncClient(transport=detour) as http,
        AsyncOpenAI(base_url=base_url, api_key="sk-test", http_client=http) as client,
    ):
        yield DRIVERS[kind]("gpt-4.1", client=client), detour.sent


@tool(inline=True)
def add(ctx: Any, a: int, b: int) -> int:
    """Add."""
    return a + b


async def talk(model: ModelDriver, **options: Any) -> None:
    """A run with a tool call, then another run on the same thread."""
    agent = define_agent(name="a", model=model, tools={"add": add}, **options)
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        thread = app.thread("main", identity={"user_id": "alice"}, thread_id="t")
        for text in ("sum", "thanks"):
            result = await (await thread.send(text)).result()
            assert result.status == "completed"


def load(aimock: Aimock) -> None:
    call = {"name": "add", "arguments": '{"a": 2, "b": 3}'}
    aimock.load(
        [
            {"match": {"userMessage": "thanks"}, "response": {"content": "Welcome."}},
            {"match": {"hasToolResult": True}, "response": {"content": "5"}},
            {"match": {"userMessage": "sum"}, "response": {"toolCalls": [call]}},
        ]
    )


async def test_openai_is_told_retention_and_key(aimock: Aimock, kind: str) -> None:
    """O-12"""
    load(aimock)
    async with wire(kind, aimock) as (model, sent):
        await talk(model, lifecycle=prompt_cache("long", key=("agent", "identity.user_id")))
    assert len(sent) == 3
    assert {body["prompt_cache_retention"] for body in sent} == {"24h"}
    [key] = {body["prompt_cache_key"] for body in sent}
    assert len(key) == 32
    assert "alice" not in repr(sent)


async def test_without_the_plugin_nothing_is_sent(aimock: Aimock, kind: str) -> None:
    """O-12, O-26"""
    load(aimock)
    async with wire(kind, aimock) as (model, sent):
        await talk(model)
    assert len(sent) == 3
    assert "prompt_cache" not in repr(sent)


async def test_a_foreign_server_is_told_nothing(aimock: Aimock, kind: str) -> None:
    """O-12"""
    load(aimock)
    async with wire(kind, aimock, aimock.url) as (model, sent):
        await talk(model, lifecycle=prompt_cache("long"))
    assert len(sent) == 3
    assert "prompt_cache" not in repr(sent)
