"""Model calls that failed before they said anything are made again, in one place (O-17)."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given, strategies as st

from pai import (
    IncompleteStream,
    ModelError,
    ModelRequest,
    ModelTimeout,
    RateLimited,
    Retry,
    RunOptions,
    StreamPart,
    define_agent,
    hookimpl,
)
from pai.loop._retry import wait_before
from pai.testing import Call, Fail, Finish, ScriptedModel

from ..played import Played, play
from .agents import add


def limited(after: float | None = 0.0) -> Fail:
    return Fail(RateLimited("slow", provider="p", status=429, retry_after=after))


def failed(status: int | None, code: str | None = None) -> Fail:
    return Fail(ModelError("no", provider="p", status=status, code=code, retry_after=0.0))


def timed_out() -> Fail:
    return Fail(ModelTimeout("late", provider="p", retry_after=0.0))


async def tried(*turns: Any, options: Any = None, **fields: Any) -> tuple[int, Played]:
    """How often the model was asked, and what came of it."""
    model = ScriptedModel(list(turns))
    definition = define_agent(name="a", model=model, tools={"add": add}, **fields)
    played = await play(definition, options=options)
    return len(model.requests), played


@pytest.mark.anyio
@pytest.mark.parametrize(
    "failure",
    [
        limited(), timed_out(), failed(408), failed(409), failed(429), failed(500), failed(529),
        failed(None, "connection_error"), failed(None, "server_error"),
        Fail(RateLimited("slow", provider="p", retry_after=0.0)),
    ],
)  # fmt: skip
async def test_what_may_pass_is_asked_again(failure: Fail) -> None:
    """O-17: on by default, and a client sees nothing of it."""
    asked, played = await tried(failure, failure, "there")
    assert (asked, played.result.text) == (3, "there")
    assert played.errors == []
    assert played.types.count("step-started") == 1
    assert "step-reset" not in played.types


@pytest.mark.anyio
@pytest.mark.parametrize(
    "failure",
    [
        failed(400), failed(401), failed(404), failed(422), failed(None, "refused"),
        Fail(IncompleteStream("cut", provider="p", retry_after=0.0)),
        Fail(ValueError("a fault of ours")),
        limited(60.1),
    ],
)  # fmt: skip
async def test_what_will_not_pass_is_not_asked_again(failure: Fail) -> None:
    """O-17"""
    asked, played = await tried(failure, "there")
    assert (asked, played.result.status) == (1, "failed")
    assert played.errors == [failure.error]


@pytest.mark.anyio
async def test_the_last_error_is_told() -> None:
    """O-17: each model call has its own attempts."""
    last = failed(503)
    asked, played = await tried(
        [Call("add")], limited(), failed(500), last, retry=Retry(max_retries=2)
    )
    assert asked == 4
    assert played.errors == [last.error]
    asked, played = await tried(
        limited(), limited(), [Call("add")], limited(), limited(), "done", retry=Retry(2)
    )
    assert (asked, played.result.text) == (6, "done")


@pytest.mark.anyio
async def test_who_decides_how_often() -> None:
    """O-17: ``None`` is off; the options of a call win over the agent."""
    again = [limited(), limited(), "there"]
    assert (await tried(*again, retry=None))[0] == 1
    assert (await tried(*again, retry=Retry(0)))[0] == 1
    assert (await tried(*again, retry=Retry(1)))[0] == 2
    assert (await tried(*again, retry=None, options=RunOptions(retry=Retry(3))))[0] == 3
    assert (await tried(*again, options=RunOptions(retry=Retry(0))))[0] == 1
    wait = RunOptions(retry=Retry(2, max_wait=0.5))
    assert (await tried(limited(0.6), "there", options=wait))[0] == 1


@pytest.mark.anyio
async def test_nothing_is_asked_again_once_something_was_said() -> None:
    """O-17: not even the start of a part."""
    asked, played = await tried(["Hel", limited()], "there")
    assert asked == 1
    assert played.result.status == "failed"
    assert played.result.text == "Hel"


@pytest.mark.anyio
async def test_cancelling_ends_the_wait() -> None:
    """O-17, R-8"""
    model = ScriptedModel([limited(50), "there"])

    async def cancel(run: Any) -> None:
        with anyio.fail_after(5):
            while not model.requests:
                await anyio.lowlevel.checkpoint()
            await run.cancel("enough")

    played = await play(define_agent(name="a", model=model), during=cancel)
    assert (played.result.status, len(model.requests)) == ("cancelled", 1)


class Around:
    """A plugin around the call."""

    def __init__(self, **changes: Any) -> None:
        self.changes = changes
        self.calls = 0

    @hookimpl
    async def wrap_model_call(self, step: Any, call_model: Any) -> AsyncIterator[StreamPart]:
        self.calls += 1
        request: ModelRequest = attrs.evolve(step.request, **self.changes)
        async for part in call_model(request):
            yield part


@pytest.mark.anyio
@pytest.mark.parametrize("off", [False, True])
async def test_plugins_stand_outside_and_can_ask_for_no_retries(off: bool) -> None:
    """O-17: what an outer one asks for goes through those further inside."""
    outer, inner = Around(**({"retry": None} if off else {})), Around()
    model = ScriptedModel([limited(), "there"])
    played = await play(define_agent(name="a", model=model), plugins=[outer, inner])
    assert (outer.calls, inner.calls) == (1, 1)
    assert played.result.text == ("" if off else "there")
    assert len(model.requests) == (1 if off else 2)


class Closing:
    """A driver whose streams tell when they are closed."""

    provider, name = "p", "closing"
    profile = ScriptedModel().profile

    def __init__(self) -> None:
        self.told: list[str] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        number = self.told.count("open")
        self.told.append("open")
        try:
            if not number:
                raise RateLimited("slow", provider="p", retry_after=0.0)
            async for part in ScriptedModel(["there"]).stream(request):
                yield part
        finally:
            self.told.append("closed")


@pytest.mark.anyio
async def test_a_stream_is_closed_before_the_next_is_opened() -> None:
    driver = Closing()
    played = await play(define_agent(name="a", model=driver))
    assert played.result.text == "there"
    assert driver.told == ["open", "closed"] * 2


@pytest.mark.anyio
async def test_the_log_tells_of_it_and_not_what_was_said(caplog: pytest.LogCaptureFixture) -> None:
    """O-7, R-40"""
    with caplog.at_level(logging.INFO, "pai.request"):
        await tried(Fail(RateLimited("secret", provider="p", retry_after=0.0)), "there")
    assert "asked again in 0.00 s: provider=p code=rate_limited status=None attempt=1" in (
        caplog.text
    )
    assert "secret" not in caplog.text


@given(st.integers(0, 20), st.floats(0, 100), st.none() | st.floats(0, 200))
def test_how_long_is_waited(attempt: int, longest: float, after: float | None) -> None:
    """O-17: what the provider asks for if that is allowed; else 0.5 to 8 s, more each time."""
    retry = Retry(max_retries=15, max_wait=longest)
    error = RateLimited("slow", provider="p", status=429, retry_after=after)
    wait = wait_before(error, attempt, retry)
    if attempt >= 15 or (after is not None and after > longest):
        assert wait is None
    elif after is not None:
        assert wait == after
    else:
        assert wait is not None
        assert min(0.5 * 2**attempt, 8, longest) <= wait <= min(0.75 * 2**attempt, 8, longest)


@pytest.mark.anyio
async def test_usage_of_a_kept_attempt_is_counted_once() -> None:
    finish = Finish("stop", None)
    _, played = await tried(limited(), ["there", finish])
    assert played.result.usage is not None
    assert played.result.usage.total_tokens == 0
