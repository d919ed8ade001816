"""Connections: shared, given back, let go of early, and bound to their event loop; the driver kit."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import warnings
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import anyio
import anyio.to_thread
import attrs
import pytest
import trio

from pai.errors import ModelError
from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai.client import shared_client
from pai.models._openai.endpoint import resolve_endpoint
from pai.ports import ModelRequest
from pai.protocol import (
    StepFinish,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
)
from pai.testing._driver_kit import Situation, check_model_driver, check_stream

from .chat_cases import CALLED, CHAT, STOP, call, chunk, text
from .edge_server import EdgeServer, Reply, refusal, sse, stream
from .responses_cases import RESPONSES, ended, function, message, reasoning
from .told import listen, request, told

BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])

ARGUMENTS = '{"a": 2, "b": 3}'
REFUSALS = {
    Situation.RATE_LIMITED: refusal(429, {"error": {"message": "slow down"}}, retry_after="7"),
    Situation.REFUSED_KEY: refusal(401, {"error": {"message": "no"}}),
}
ON_CHAT = {
    Situation.TEXT: stream(*CHAT["text"].events),
    Situation.REASONING: stream(*CHAT["reasoning_content"].events),
    Situation.CALL: stream(call(ARGUMENTS, call_id="1", name="add"), *CALLED),
    Situation.TWO_CALLS: stream(
        call(ARGUMENTS, call_id="1", name="add"),
        call(ARGUMENTS, index=1, call_id="2", name="add"),
        *CALLED,
    ),
    Situation.UNFINISHED: stream(text("a")),
    Situation.CUT: stream(text("a"), end="cut"),
    Situation.HANGS: stream(text("a"), end="hang"),
    **REFUSALS,
}
ON_RESPONSES = {
    Situation.TEXT: stream(*RESPONSES["text"].events),
    Situation.REASONING: stream(*reasoning("hm"), *message("a", index=1), ended()),
    Situation.CALL: stream(*function("add", ARGUMENTS), ended()),
    Situation.TWO_CALLS: stream(
        *function("add", ARGUMENTS),
        *function("add", ARGUMENTS, index=1, call_id="call_2", item_id="fc_2"),
        ended(),
    ),
    Situation.UNFINISHED: stream(*message("a")),
    Situation.CUT: stream(*message("a")[:3], end="cut"),
    Situation.HANGS: stream(*message("a")[:3], end="hang"),
    **REFUSALS,
}


@pytest.mark.anyio
@BOTH
async def test_driver_kit(cls, edge: EdgeServer) -> None:
    """What a model driver guarantees, on both event loops."""
    plays = ON_CHAT if cls is OpenAIChat else ON_RESPONSES

    def make(situation: Situation) -> Any:
        return cls(edge.play(plays[situation], situation.name), base_url=edge.url)

    def bodies() -> Sequence[bytes]:
        return [json.dumps(each.headers).encode() + each.body for each in edge.requests]

    async def released() -> None:
        await anyio.to_thread.run_sync(edge.left)

    await check_model_driver(make, bodies=bodies, released=released)


@pytest.mark.anyio
@pytest.mark.parametrize("situation", Situation)
async def test_driver_kit_finds_faults(situation: Situation, edge: EdgeServer) -> None:
    """A driver that says the wrong thing fails each check."""
    wrong = stream(chunk({"content": ""}), chunk({}, "length"), "[DONE]")
    driver = OpenAIChat(edge.play(wrong), base_url=edge.url)
    with pytest.raises(AssertionError, match=situation.name):
        await check_model_driver(lambda _: driver, situations=[situation])


class Leaky:
    """Sends metadata to the provider."""

    def __init__(self, inner: OpenAIChat) -> None:
        self.inner = inner
        self.provider, self.name, self.profile = inner.provider, inner.name, inner.profile

    async def stream(self, asked: ModelRequest) -> AsyncGenerator[list[StreamPart], None]:
        options: Any = {"openai": {"metadata": dict(asked.metadata)}}
        async with aclosing(
            self.inner.stream(attrs.evolve(asked, provider_options=options))
        ) as parts:
            async for part in parts:
                yield part


class Stubborn(Leaky):
    """Tries again by itself."""

    async def stream(self, asked: ModelRequest) -> AsyncGenerator[list[StreamPart], None]:
        for last in (False, True):
            try:
                async with aclosing(self.inner.stream(asked)) as parts:
                    async for part in parts:
                        yield part
            except ModelError:
                if last:
                    raise


class Forgetful(Leaky):
    """Keeps what it encoded, and encodes it again."""

    async def stream(self, asked: ModelRequest) -> AsyncGenerator[list[StreamPart], None]:
        kept = [dict(each.wire) for each in asked.messages]
        for each in asked.messages:
            each.wire.clear()
        async with aclosing(self.inner.stream(asked)) as parts:
            async for part in parts:
                yield part
        for each, wire in zip(asked.messages, kept, strict=True):
            each.wire.update(wire)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("cls", "situation", "fault"),
    [
        (Leaky, Situation.TEXT, "O-9"),
        (Stubborn, Situation.RATE_LIMITED, "O-17"),
        (Forgetful, Situation.TEXT, "encoded once"),
    ],
)
async def test_driver_kit_looks_at_the_wire(cls, situation, fault: str, edge: EdgeServer) -> None:
    def make(situation: Situation) -> Any:
        edge.play(ON_CHAT[situation], situation.name)
        return cls(OpenAIChat(situation.name, base_url=edge.url))

    def bodies() -> list[bytes]:
        return [each.body for each in edge.requests]

    with pytest.raises(AssertionError, match=fault):
        await check_model_driver(make, situations=[situation], bodies=bodies)


@pytest.mark.anyio
async def test_connections_are_reused(edge: EdgeServer) -> None:
    """By all drivers of an endpoint; also where the body ends after the last event."""
    before = edge.connections
    for model in ("x", "y"):
        for cls, case in ((OpenAIChat, CHAT["text"]), (OpenAIResponses, RESPONSES["text"])):
            driver = cls(edge.play(stream(*case.events), model), base_url=edge.url)
            assert told(await listen(driver)) == case.told
    assert edge.connections == before + 1


@pytest.mark.anyio
async def test_a_body_that_never_ends(edge: EdgeServer) -> None:
    """After its last event the answer is whole, whether or not the connection closes."""
    driver = OpenAIChat(edge.play(stream(*CHAT["text"].events, end="hang")), base_url=edge.url)
    with anyio.fail_after(5):
        assert told(await listen(driver)) == CHAT["text"].told
    await anyio.to_thread.run_sync(edge.left)


@pytest.mark.anyio
async def test_many_at_once(edge: EdgeServer) -> None:
    driver = OpenAIChat(edge.play(stream(*CHAT["text"].events)), base_url=edge.url)
    found = []

    async def one() -> None:
        found.append(told(await listen(driver)))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert found == [CHAT["text"].told] * 20


def test_one_driver_on_several_loops(edge: EdgeServer) -> None:
    """A program that runs one loop after another has nothing left of the former ones."""
    driver = OpenAIChat(edge.play(stream(*CHAT["text"].events)), base_url=edge.url)
    clients = []

    async def once() -> None:
        assert told(await listen(driver)) == CHAT["text"].told
        clients.append(await shared_client(resolve_endpoint(edge.url, None)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for run in (asyncio.run, trio.run, asyncio.run):
            if run is trio.run:
                trio.run(once)
            else:
                asyncio.run(once())
        gc.collect()
    assert len({id(client) for client in clients}) == 3
    assert all(client.is_closed() for client in clients)


@pytest.mark.anyio
async def test_left_by_an_error(edge: EdgeServer) -> None:
    """The reader's own error passes through as it is, and the connection goes."""
    driver = OpenAIChat(edge.play(stream(text("a"), end="hang")), base_url=edge.url)

    async def read() -> None:
        items = driver.stream(request(driver))
        try:
            async for _ in items:
                raise KeyError("mine")
        finally:
            await items.aclose()

    with pytest.raises(KeyError, match="mine"):
        await read()
    await anyio.to_thread.run_sync(edge.left)


@pytest.mark.anyio
async def test_parts_come_as_they_are_sent(edge: EdgeServer) -> None:
    """The first delta is there while the provider still writes."""
    driver = OpenAIChat(edge.play(stream(text("a"), end="hang")), base_url=edge.url)
    seen: list[StreamPart] = []
    with anyio.fail_after(5):
        items = driver.stream(request(driver))
        seen += await anext(items)
        await items.aclose()
    assert [type(part) for part in seen][-1] is TextDelta


def test_malformed_streams_are_found() -> None:
    end = StepFinish("stop")
    check_stream([TextStart("t0"), TextDelta("t0", "a"), TextEnd("t0"), end])
    broken: list[tuple[list[Any], str]] = [
        ([], "no step-finish"),
        ([end, end], "after the step's finish"),
        ([TextStart("t0"), end], "never closed"),
        ([TextDelta("t0", "a"), end], "not open"),
        ([TextStart("t0"), TextEnd("t0"), TextStart("t0"), TextEnd("t0"), end], "twice"),
        ([ToolInputStart("c", "f"), end], "never closed"),
        ([ToolCall("c", "f"), end], "not open"),
    ]
    for parts, message_ in broken:
        with pytest.raises(AssertionError, match=message_):
            check_stream(parts)


def test_imports_are_lazy() -> None:
    """Neither a driver nor its check imports the client library; warming up does."""
    code = """
import sys, threading
from pai.models import OpenAIChat, OpenAIResponses, resolve_model
driver = resolve_model("openai:gpt-5.2")
driver.profile, driver.check(), resolve_model("demo")
heavy = {"openai", "httpx2", "httpx", "pydantic", "stevedore", "trio"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
thread = threading.Thread(target=driver.warm); thread.start(); thread.join()
assert "openai" in sys.modules
"""
    environment = {"OPENAI_API_KEY": "k", "PYTHONPATH": ":".join(sys.path)}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


def test_one_chunk_of_many_events(edge: EdgeServer) -> None:
    reply = Reply((sse(*CHAT["text"].events[:2]), sse(text("b"), *STOP)))
    driver = OpenAIChat(edge.play(reply), base_url=edge.url)
    assert told(asyncio.run(listen(driver))) == CHAT["text"].told
