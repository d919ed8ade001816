"""pai-fallback against a real mock model server that fails in every way a provider does."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI
from pai_fallback import Target, fallback

from pai import ModelDriver, SystemMessage, TextPart, create_pai, define_agent
from pai.models import OpenAIChat, OpenAIResponses

from ..aimock import Aimock

pytestmark = pytest.mark.anyio

LONG = "This answer is never seen to its end, since something breaks before."

FAULTS: dict[str, dict[str, Any]] = {
    # The server always sends a Retry-After; a client takes it away again.
    "429": {"response": {"error": {"message": "Slow down."}, "status": 429}},
    "429 with Retry-After": {
        "response": {"error": {"message": "Slow down."}, "status": 429, "retryAfter": 30}
    },
    "500": {"response": {"error": {"message": "Oops."}, "status": 500}},
    "503": {"response": {"error": {"message": "Overloaded."}, "status": 503}},
    # Some way apart, so that the first chunks are read before the socket is destroyed.
    "cut": {
        "response": {"content": LONG},
        "chunkSize": 5,
        "truncateAfterChunks": 12,
        "latency": 20,
    },
    "cut at once": {"response": {"content": LONG}, "chaos": {"disconnectRate": 1.0}},
    "stall at first": {"response": {"content": LONG}, "latency": 20_000},
    "stall between": {
        "response": {"content": LONG},
        "chunkSize": 5,
        "recordedTimings": {
            "ttftMs": 0,
            "interChunkDelaysMs": [*[0] * 8, 20_000],
            "totalDurationMs": 20_000,
        },
    },
    "malformed": {"response": {"content": LONG}, "chaos": {"malformedRate": 1.0}},
}


DRIVERS: dict[str, type[OpenAIChat | OpenAIResponses]] = {
    "chat": OpenAIChat,
    "responses": OpenAIResponses,
}


def driver(kind: str, model: str, url: str) -> ModelDriver:
    return DRIVERS[kind](model, base_url=url, api_key="sk-test")


@asynccontextmanager
async def first_driver(kind: str, fault: str, url: str) -> AsyncIterator[ModelDriver]:
    if fault != "429":
        yield driver(kind, "gpt-first", url)
        return

    async def drop(response: httpx2.Response) -> None:
        assert "retry-after" in response.headers
        del response.headers["retry-after"]

    async with (
        httpx2.AsyncClient(event_hooks={"response": [drop]}) as http,
        AsyncOpenAI(base_url=url, api_key="sk-test", http_client=http) as client,
    ):
        yield DRIVERS[kind]("gpt-first", client=client)


def asked(aimock: Aimock) -> Counter[str]:
    """How often each model was asked."""
    return Counter(entry["body"]["model"] for entry in aimock.journal())


@pytest.fixture(params=["chat", "responses"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_switches_and_no_model_is_asked_twice(
    aimock: Aimock, kind: str, fault: str
) -> None:
    """A-LIFE-5, O-17, R-37"""
    aimock.load(
        [
            {"match": {"model": "gpt-first"}, **FAULTS[fault]},
            {"match": {"model": "gpt-second"}, "response": {"content": "From the second."}},
        ]
    )
    plugin = fallback(
        driver(kind, "gpt-second", aimock.url),
        first=0.4 if fault == "stall at first" else 5,
        between=0.4 if fault == "stall between" else 5,
    )
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(first_driver(kind, fault, aimock.url))
        agent = define_agent(name="a", model=first, lifecycle=plugin)
        app = await stack.enter_async_context(create_pai(agents={"main": agent}, plugins=()))
        thread = app.thread("main", thread_id="t")
        run = await thread.send("Tell me.")
        result = await run.result()
        events = [event async for event in run.events()]
        state = await thread.state()
    assert (result.status, result.text) == ("completed", "From the second.")
    assert asked(aimock) == {"gpt-first": 1, "gpt-second": 1}
    told: Any
    [told] = [event.value for event in events if event.type == "plugin"]
    assert told["from"] == "openai:gpt-first"
    if fault.startswith("429"):
        assert (told["code"], told["status"]) == ("rate_limited", 429)
        assert told["retryAfter"] == (30.0 if "Retry-After" in fault else None)
    elif fault.startswith("stall"):
        assert told["code"] == "model_timeout"
    if fault in {"cut", "stall between"}:
        assert told["reset"]
    # What was shown of the first answer is void, live and in history.
    types = [event.type for event in events]
    assert types.count("step-reset") == told["reset"]
    if told["reset"]:
        types = types[types.index("step-reset") :]
    assert types.count("text-start") == 1
    texts = [
        "".join([part.text for part in message.parts if isinstance(part, TextPart)])
        for message in state.messages
    ]
    assert texts == ["Tell me.", "From the second."]


async def test_a_chain_that_fails_asks_each_once_and_says_the_last_error(
    aimock: Aimock, kind: str
) -> None:
    """O-17"""
    aimock.load([{"match": {"userMessage": "Tell"}, **FAULTS["503"]}])
    first, *rest = [driver(kind, f"gpt-{n}", aimock.url) for n in range(3)]
    agent = define_agent(name="a", model=first, lifecycle=fallback(*rest))
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        result = await (await app.thread("main").send("Tell me.")).result()
    assert result.status == "failed"
    assert asked(aimock) == {"gpt-0": 1, "gpt-1": 1, "gpt-2": 1}


async def test_a_target_gets_its_own_instructions(aimock: Aimock) -> None:
    """A-INSTR-3"""
    aimock.load(
        [
            {"match": {"model": "gpt-first"}, **FAULTS["500"]},
            {"match": {"model": "gpt-second"}, "response": {"content": "Yes."}},
        ]
    )
    target = Target(
        driver("chat", "gpt-second", aimock.url), instructions=SystemMessage("For the second.")
    )
    agent = define_agent(
        name="a",
        model=driver("responses", "gpt-first", aimock.url),
        instructions="For the first.",
        lifecycle=fallback(target),
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        result = await (await app.thread("main").send("Tell me.")).result()
    assert result.text == "Yes."
    second = aimock.journal()[-1]["body"]
    assert [m["content"] for m in second["messages"]] == ["For the second.", "Tell me."]
