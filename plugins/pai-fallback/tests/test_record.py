"""Where what happened is told: metadata of the run, spans."""

from __future__ import annotations

import logging
from typing import Any

import attrs
import pytest
from pai_fallback import fallback

from pai import (
    ContextOverflow,
    MetadataSchemas,
    RateLimited,
    RunResult,
    compose_lifecycle,
    define_agent,
    hookimpl,
    run_once,
)
from pai.schema import JsonValue
from pai.testing import Fail, ScriptedModel

pytestmark = pytest.mark.anyio

LIMITED = Fail(RateLimited("slow down", provider="scripted", status=429, retry_after=3.0))
OVERFLOW = Fail(ContextOverflow("too long", provider="scripted"))


async def play(*plugins: object, **options: Any) -> RunResult:
    lifecycle = compose_lifecycle(*plugins)
    model = ScriptedModel([LIMITED])
    return await run_once(define_agent(name="a", model=model, lifecycle=lifecycle, **options), "go")


@attrs.define
class Private:
    """What the agent keeps."""

    fallback: list[dict[str, JsonValue]] = attrs.field(factory=list)
    narrow: list[int] = attrs.field(factory=list)


@attrs.define
class Public:
    """What clients see."""

    models: list[dict[str, JsonValue]] = attrs.field(factory=list)


SCHEMAS = MetadataSchemas(Private, Public)


class Settled:
    """Keeps what the run's metadata were in the end."""

    @hookimpl
    def run_settled(self, run):
        self.metadata = run.metadata


@pytest.mark.parametrize("record", ["fallback", "private.fallback", "public.models"])
async def test_what_happened_is_in_the_runs_metadata(record: str) -> None:
    """A-META-5"""
    settled = Settled()
    plugin = fallback(ScriptedModel([OVERFLOW]), ScriptedModel(["Yes."]), record=record)
    result = await play(plugin, settled, run_metadata=SCHEMAS)
    assert result.text == "Yes."
    listed = (
        settled.metadata.public["models"]
        if record == "public.models"
        else settled.metadata.private["fallback"]
    )
    names = {"step": 0, "from": "scripted:script", "to": "scripted:script", "reset": False}
    assert listed == [
        {**names, "code": "rate_limited", "status": 429, "retryAfter": 3.0},
        {**names, "code": "context_overflow", "status": None, "retryAfter": None},
    ]


async def test_nothing_is_recorded_unless_asked() -> None:
    settled = Settled()
    await play(fallback(ScriptedModel(["Yes."])), settled, run_metadata=SCHEMAS)
    assert settled.metadata.private["fallback"] == settled.metadata.public["models"] == []


@pytest.mark.parametrize("record", ["nowhere", "narrow"])
async def test_an_answer_is_never_lost_for_its_record(
    record: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "pai.fallback"):
        result = await play(fallback(ScriptedModel(["Yes."]), record=record), run_metadata=SCHEMAS)
    assert result.text == "Yes."
    assert "not recorded" in caplog.text


async def test_a_span_that_is_open_is_marked() -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.trace")
    trace = pytest.importorskip("opentelemetry.trace")
    tracer = sdk.TracerProvider().get_tracer("test")

    class Traced:
        @hookimpl
        async def wrap_model_call(self, step, call_model):
            self.span = tracer.start_span("step")
            stream = call_model(step.request)
            while True:
                with trace.use_span(self.span, end_on_exit=False):
                    try:
                        part = await anext(stream)
                    except StopAsyncIteration:
                        return
                yield part

    traced = Traced()
    await play(traced, fallback(ScriptedModel(["Yes."])))
    [event] = traced.span.events
    assert event.name == "pai.fallback"
    assert event.attributes["pai.fallback.code"] == "rate_limited"
