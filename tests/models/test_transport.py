"""What goes with a request beside its body: headers, time limit, wrappers of the transport."""

from __future__ import annotations

import logging
import traceback
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import attrs
import httpx2
import pytest
from openai import AsyncOpenAI

from pai import (
    DefinitionError,
    InvalidInput,
    ModelError,
    ModelTimeout,
    RequestOptions,
    RunResult,
    StepPatch,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai import client as clients
from pai.protocol import Transport, encode_events
from pai.testing import Hang, ScriptedModel

from .chat_cases import CHAT
from .edge_server import EdgeServer, Reply, refusal, stream
from .responses_cases import RESPONSES
from .told import listen, request

pytestmark = pytest.mark.anyio
BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])
MARK = "marker-9f2c1"


def answer(cls: Any) -> Reply:
    return stream(*(CHAT if cls is OpenAIChat else RESPONSES)["text"].events)


@attrs.define
class Seen:
    """All that can be seen of a run: by clients, in the store, in the log, in errors."""

    result: RunResult
    everything: str
    errors: list[BaseException]


def stored_in(folder: Path) -> bytes:
    return b"".join([each.read_bytes() for each in folder.glob("pai.db*")])


async def run(
    agent: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path, plugins: Any = ()
) -> Seen:
    caplog.set_level(logging.DEBUG)
    errors: list[BaseException] = []
    file = tmp_path / "pai.db"
    app = create_pai(
        agents={"a": agent},
        store=f"sqlite:///{file}",
        on_runtime_error=errors.append,
        plugins=plugins,
    )
    with anyio.fail_after(20):
        async with app:
            thread = app.thread("a")
            handle = await thread.send("hi")
            events = [event async for event in handle.events()]
            result = await handle.result()
            state = await thread.state()
    told = [record.getMessage() + str(record.__dict__) for record in caplog.records]
    faults = ["".join(traceback.format_exception(error)) + repr(error) for error in errors]
    stored = stored_in(tmp_path)
    seen = [encode_events(events), repr(state), repr(result), *told, *faults, repr(stored)]
    return Seen(result, "\n".join(map(str, seen)), errors)


# ---------------------------------------------------------------------------- request


@BOTH
async def test_headers_reach_the_wire_and_nothing_else(cls, edge, caplog, tmp_path) -> None:
    """O-15: also where hooks look at the request, and where everything is logged."""
    looks: list[str] = []

    class Looks:
        @hookimpl
        def prepare_model_step(self, step):
            looks.append(f"{step.request!r} {step.request.transport!r}")

    given: list[Any] = []

    async def headers(input: Any) -> RequestOptions:
        given.append(input)
        return RequestOptions({"X-Caller": MARK, "Authorization": f"Bearer {MARK}"})

    agent = define_agent(
        name="a",
        model=cls(edge.play(answer(cls)), base_url=edge.url, api_key="other"),
        request=headers,
        runtime_context=lambda _: 5,
        lifecycle=Looks(),
    )
    seen = await run(agent, caplog, tmp_path)
    assert seen.result.status == "completed"
    (asked,) = edge.requests
    assert asked.headers["x-caller"] == MARK
    assert asked.headers["authorization"] == f"Bearer {MARK}"
    assert MARK not in seen.everything
    assert MARK.encode() not in asked.body
    assert looks
    assert MARK not in looks[0]
    assert [each.runtime_context for each in given] == [5]


ECHOES = [
    refusal(400, {"error": {"message": f"bad header {MARK} given", "code": "bad"}}),
    refusal(500, {"error": f"{MARK}"}),
    stream({"error": {"message": f"you sent {MARK}"}}),
    stream({"type": "error", "error": {"message": f"you sent {MARK}", "code": "bad"}}),
    Reply((f'{{"error": "{MARK}"}}'.encode(),)),
    Reply(end="silent"),
]


@BOTH
@pytest.mark.parametrize("reply", ECHOES)
async def test_headers_are_in_no_error(cls, reply, edge, caplog, tmp_path) -> None:
    """O-15: also where the provider sends them back."""
    agent = define_agent(
        name="a",
        model=cls(edge.play(reply), base_url=edge.url),
        request=lambda _: RequestOptions({"X-Caller": MARK}),
    )
    seen = await run(agent, caplog, tmp_path)
    assert seen.result.status == "failed"
    assert edge.requests[0].headers["x-caller"] == MARK
    assert seen.errors
    assert all(isinstance(error, ModelError) for error in seen.errors)
    assert MARK not in seen.everything


@BOTH
async def test_a_time_limit(cls, edge: EdgeServer) -> None:
    """O-15: seconds for each piece of the answer; the driver's error says so."""
    driver = cls(edge.play(Reply(answer(cls).pieces[:1], end="hang")), base_url=edge.url)
    asked = request(driver, transport=Transport(timeout=0.1))
    with anyio.fail_after(10), pytest.raises(ModelTimeout):
        await listen(driver, asked)
    await anyio.to_thread.run_sync(edge.left)


@BOTH
async def test_headers_with_a_ready_client(cls, edge: EdgeServer) -> None:
    async with AsyncOpenAI(base_url=edge.url, api_key="k") as client:
        driver = cls(edge.play(answer(cls)), client=client)
        await listen(driver, request(driver, transport=Transport({"X-Caller": "me"})))
    assert edge.requests[0].headers["x-caller"] == "me"


async def test_asked_once_a_run_and_again_after_a_takeover(tmp_path) -> None:
    """O-15: nothing of it is stored."""
    asked: list[str] = []

    def agent(turns: Any) -> Any:
        def options(input: Any) -> RequestOptions:
            asked.append(input.thread_id)
            return RequestOptions({"X-Caller": f"{len(asked)}"})

        return define_agent(name="a", model=ScriptedModel(turns), request=options)

    url = f"sqlite:///{tmp_path / 'pai.db'}"
    first = agent([["one", Hang()]])
    with anyio.fail_after(20):
        async with create_pai(agents={"a": first}, store=url) as app:
            run = await app.thread("a", thread_id="t").send("hi", run_id="r")
            async for event in run.events():
                if event.type == "text-delta":
                    break
        again = agent(["two"])
        async with create_pai(agents={"a": again}, store=url) as app:
            result = await (await app.thread("a", thread_id="t").run("r")).result()
    assert result.text == "two"
    assert asked == ["t", "t"]
    assert first.model.requests[0].transport.headers == {"X-Caller": "1"}
    assert again.model.requests[0].transport.headers == {"X-Caller": "2"}


def giving(options: Any, _: Any) -> Any:
    return options


async def test_what_a_request_function_may_give(caplog, tmp_path) -> None:
    given: Any
    for given, status in ((None, "completed"), ({"headers": {}}, "failed")):
        agent = define_agent(
            name="a", model=ScriptedModel(lambda request: "x"), request=partial(giving, given)
        )
        seen = await run(agent, caplog, tmp_path)
        assert seen.result.status == status
    assert "expected RequestOptions" in str(seen.errors[0])


@pytest.mark.parametrize(
    ("fields", "paths"),
    [
        ({"headers": {"a b": "x", "X-A": f"{MARK}\n", "X-B": 5}}, ["headers", "headers.X-A", "headers.X-B"]),
        ({"headers": {"Content-Length": "1"}}, ["headers.Content-Length"]),
        ({"headers": [MARK], "timeout": 0}, ["headers", "timeout"]),
        ({"timeout": float("nan")}, ["timeout"]),
        ({"timeout": True}, ["timeout"]),
    ],
)  # fmt: skip
def test_what_can_be_no_request_options(fields: Any, paths: list[str]) -> None:
    """O-15: all faults at once, none with a value."""
    with pytest.raises(InvalidInput) as caught:
        RequestOptions(**fields)
    assert [fault.path for fault in caught.value.faults] == paths
    assert MARK not in str(caught.value)


def test_headers_are_not_shown() -> None:
    assert MARK not in repr(RequestOptions({"X-Caller": MARK}))


# ---------------------------------------------------------------------------- wrap_transport


class Stamp(httpx2.AsyncBaseTransport):
    """Writes its name behind those that are there."""

    def __init__(self, inner: httpx2.AsyncBaseTransport, name: str, made: list[str]) -> None:
        self.inner, self.name, self.made = inner, name, made
        made.append(f"made {name}")

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.headers["x-way"] = request.headers.get("x-way", "") + self.name
        return await self.inner.handle_async_request(request)

    async def aclose(self) -> None:
        self.made.append(f"closed {self.name}")
        await self.inner.aclose()


@BOTH
async def test_wrappers_are_nested(cls, edge, caplog, tmp_path) -> None:
    """O-24: the agent's outermost, then those of hooks from the left; made once."""
    made: list[str] = []

    class Wraps:
        def __init__(self, name: str) -> None:
            self.name = name

        def wrap(self, inner: Any) -> Any:
            return Stamp(inner, self.name, made)

        @hookimpl
        def prepare_model_step(self, step):
            return StepPatch(wrap_transport=self.wrap)

    agent = define_agent(
        name="a",
        model=cls(edge.play(answer(cls)), base_url=edge.url),
        wrap_transport=lambda inner: Stamp(inner, "a", made),
        lifecycle=Wraps("c"),
    )
    for _ in range(2):
        seen = await run(agent, caplog, tmp_path, plugins=[left := Wraps("b")])
        assert seen.result.status == "completed"
    assert [each.headers["x-way"] for each in edge.requests] == ["abc", "abc"]
    # A plugin object made anew is another wrapper.
    assert made == ["made c", "made b", "made a"] * 2
    made.clear()
    for _ in range(2):
        await run(agent, caplog, tmp_path, plugins=[left])
    assert made == []
    connections = edge.connections
    driver = cls("m", base_url=edge.url)
    await listen(driver)
    assert edge.connections == connections, "the pool is shared with plain requests"
    assert "x-way" not in edge.requests[-1].headers


async def test_a_wrapper_without_a_hash(edge: EdgeServer) -> None:
    made: list[str] = []

    @attrs.define
    class Wrapper:
        name: str

        def __call__(self, inner: Any) -> Any:
            return Stamp(inner, self.name, made)

    driver = OpenAIChat(edge.play(answer(OpenAIChat)), base_url=edge.url)
    wrapper, twin = Wrapper("a"), Wrapper("a")
    for each in (wrapper, wrapper, twin):
        await listen(driver, request(driver, transport=Transport(wrappers=(each,))))
    assert made == ["made a", "made a"]


async def test_wrapped_clients_do_not_pile_up(edge, monkeypatch: pytest.MonkeyPatch) -> None:
    """O-24: a function made anew for each step."""
    monkeypatch.setattr(clients, "_MOST_WRAPPED", 2)
    made: list[str] = []
    driver = OpenAIChat(edge.play(answer(OpenAIChat)), base_url=edge.url)

    def wrapper(name: str) -> Any:
        return lambda inner: Stamp(inner, name, made)

    a, b, c = map(wrapper, "abc")
    for each in (a, b, a, c, a):
        await listen(driver, request(driver, transport=Transport(wrappers=(each,))))
    assert made == ["made a", "made b", "made c", "closed b"]


async def test_a_wrapper_that_answers_itself() -> None:
    """A double of a provider, with no server at all."""

    class Double(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            return httpx2.Response(
                200,
                headers={"content-type": "text/event-stream"},
                content=b"".join(answer(OpenAIChat).pieces),
            )

    driver = OpenAIChat("m", base_url="http://127.0.0.1:1/v1")
    asked = request(driver, transport=Transport(wrappers=(lambda inner: Double(),)))
    assert await listen(driver, asked)


async def test_what_is_no_transport(edge: EdgeServer) -> None:
    driver = OpenAIChat("m", base_url=edge.url)
    asked = request(driver, transport=Transport(wrappers=(lambda inner: None,)))
    with pytest.raises(DefinitionError, match="gave a NoneType"):
        await listen(driver, asked)


@BOTH
async def test_a_ready_client_is_not_wrapped(cls, edge: EdgeServer) -> None:
    """O-24: never ignored, and told when the runtime is built where that can be seen."""
    async with AsyncOpenAI(base_url=edge.url, api_key="k") as client:
        driver = cls(edge.play(answer(cls)), client=client)
        asked = request(driver, transport=Transport(wrappers=(lambda inner: inner,)))
        with pytest.raises(DefinitionError, match=r"wrap_transport.*ready client"):
            await listen(driver, asked)
        agent = define_agent(name="a", model=driver, wrap_transport=lambda inner: inner)
        with pytest.raises(DefinitionError, match=r"agents.x.wrap_transport: can't reach"):
            create_pai(agents={"x": agent})
    assert edge.requests == []


async def test_a_reader_that_leaves_early(edge: EdgeServer) -> None:
    """The connection below the wrappers is let go of as well."""
    reply = Reply(answer(OpenAIChat).pieces[:2], end="hang")
    driver = OpenAIChat(edge.play(reply), base_url=edge.url)
    asked = request(driver, transport=Transport(wrappers=(lambda inner: Stamp(inner, "a", []),)))
    stream: AsyncIterator[Any] = driver.stream(asked)
    async with aclosing(stream) as items:  # type: ignore[type-var]  # a generator
        await anext(items)
    await anyio.to_thread.run_sync(edge.left)
