"""What loggers are told: names, ids, sizes and types, never content, a header or a key (O-7, O-9)."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest

from pai import (
    DenyCall,
    RequestOptions,
    RunContext,
    StepContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.models import OpenAIChat
from pai.testing import Call, Fail, Hang, ScriptedModel

from ..models.chat_cases import CALLED, STOP, call, text
from ..models.edge_server import sse

pytestmark = pytest.mark.anyio
MARK = "marker-77aa1"


@tool
def look(ctx, at: str) -> str:
    """Look."""
    if at == "wall":
        raise ValueError(MARK)
    return f"seen {MARK}"


class Plugin:
    """Sees what the call brought along, refuses a call, and fails where nobody is hurt."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    @hookimpl
    def prepare_model_step(self, step: StepContext[Any]) -> None:
        self.seen.append(dict(step.request.metadata))

    @hookimpl
    def before_tool_call(self, call):
        return DenyCall(MARK) if call.input["at"] == "door" else None

    @hookimpl
    def run_started(self, run: RunContext[Any]) -> None:
        raise KeyError(MARK)


def text_of(caplog: pytest.LogCaptureFixture) -> str:
    return "\n".join(
        f"{record.name} {record.levelname} {record.getMessage()} {record.__dict__}"
        for record in caplog.records
        if record.name.startswith("pai")
    )


def lines(caplog: pytest.LogCaptureFixture, name: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == name]


async def play(agent: Any, store: str, **options: Any) -> Any:
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}, store=store) as app:
            run = await app.thread("a", thread_id="t").send(
                f"go {MARK}", run_id="r", metadata={"trace": MARK}, **options
            )
            return await run.result()


@pytest.mark.parametrize("durable", [False, True])
async def test_no_content_in_any_logger(durable, caplog, tmp_path: Path) -> None:
    """With everything on, in a run in which everything happens."""
    caplog.set_level(logging.DEBUG)
    plugin = Plugin()
    model = ScriptedModel(
        [
            [f"I look {MARK}", *[Call("look", {"at": at}) for at in ("wall", "door", MARK)]],
            [Call(MARK, {})],
            f"done {MARK}",
        ]
    )
    agent = define_agent(
        name="a",
        model=model,
        instructions=MARK,
        tools={"look": look},
        lifecycle=plugin,
        client_data=dict[str, str],
    )
    store = f"sqlite:///{tmp_path / 'pai.db'}" if durable else "memory:"
    result = await play(agent, store, client_data={"x": MARK})
    assert result.status == "completed"
    # O-9: hooks and drivers see what the call brought along for observability.
    assert plugin.seen == [{"trace": MARK}] * 3
    assert [dict(asked.metadata) for asked in model.requests] == plugin.seen
    told = text_of(caplog)
    assert MARK not in told
    run = lines(caplog, "pai.run")
    assert run[0] == "begins: run_id=r thread_id=t agent=a operation=send episode=1 attempt=1"
    assert "ended: run_id=r thread_id=t status=completed stop_reason=stop code=None" in run[-1]
    assert any(line.startswith("ValueError in ") for line in run)
    outcomes = [line.split("outcome=")[1] for line in lines(caplog, "pai.tools")]
    assert sorted(outcomes) == [
        "completed output=str",
        "denied output=NoneType",
        "failed output=NoneType",
        "failed output=NoneType",
    ]
    (hook,) = lines(caplog, "pai.hooks")
    assert hook.startswith(
        "PluginError (KeyError) of plugin 'Plugin', phase run_started in run_id=r"
    )
    assert lines(caplog, "pai.store")[-1].endswith("message=True end=completed")


@pytest.mark.parametrize(
    "turns", [[Fail()], [Fail(RuntimeError(MARK))], [[f"a {MARK}", Fail(RuntimeError(MARK))]]]
)
async def test_a_run_that_fails(turns, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    result = await play(define_agent(name="a", model=ScriptedModel(turns)), "memory:")
    assert result.status == "failed"
    assert MARK not in text_of(caplog)
    assert f"code={result.error['code']}" in lines(caplog, "pai.run")[-1]


async def test_a_run_that_is_cancelled(caplog) -> None:
    """The reason is somebody's text."""
    caplog.set_level(logging.DEBUG)
    agent = define_agent(name="a", model=ScriptedModel([["a", Hang()]]))
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}) as app:
            run = await app.thread("a").send("go")
            async for _ in run.text():
                break
            await run.cancel(MARK)
            assert (await run.result()).reason == MARK
    assert MARK not in text_of(caplog)


async def test_the_loggers_of_requests(caplog) -> None:
    """Before the call and at each read, on whatever transport: no key and no header either."""
    caplog.set_level(logging.DEBUG)
    bodies = [
        sse(text("I look"), call('{"at": "sky"}', call_id="c", name="look"), *CALLED),
        sse(text(MARK), *STOP),
    ]
    sent: list[httpx2.Request] = []

    class Double(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            sent.append(request)
            headers = {"content-type": "text/event-stream", "x-reply": MARK}
            return httpx2.Response(200, headers=headers, content=bodies[len(sent) - 1])

    agent = define_agent(
        name="a",
        model=OpenAIChat("m", base_url="http://server.test/v1", api_key=f"key-{MARK}"),
        tools={"look": look},
        request=lambda _: RequestOptions({"X-Caller": MARK}),
        wrap_transport=lambda _: Double(),
    )
    result = await play(agent, "memory:")
    assert result.text == MARK
    assert all(MARK in each.headers["x-caller"] for each in sent)
    assert '"trace"' not in str([each.content for each in sent])
    assert MARK not in text_of(caplog)
    asked = lines(caplog, "pai.request")
    assert len(asked) == 2
    assert asked[0].startswith(
        "http://server.test/v1/chat/completions: model=m messages=1 tools=1 bytes="
    )
    reads = lines(caplog, "pai.provider")
    assert len(reads) == 2
    assert all(read.startswith("read: bytes=") for read in reads)


async def test_loggers_that_are_off_are_not_written_to(caplog) -> None:
    caplog.set_level(logging.WARNING, logger="pai")
    result = await play(define_agent(name="a", model=ScriptedModel(["x"])), "memory:")
    assert result.status == "completed"
    assert [record for record in caplog.records if record.name.startswith("pai")] == []
