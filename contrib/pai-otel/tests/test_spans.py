"""The spans of a run, through the runtime's own door."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from opentelemetry.trace import SpanKind, StatusCode

from pai import (
    DenyCall,
    FatalToolError,
    ModelError,
    ModelSettings,
    Reasoning,
    Respond,
    RunResult,
    StepReset,
    ToolError,
    Usage,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    tool,
)
from pai.definition import ModelSelection
from pai.testing import Call, Cut, Fail, Finish, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def add(ctx: Any, a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def refuse(ctx: Any) -> str:
    """Fail."""
    raise ToolError("no")


@tool
def crash(ctx: Any) -> str:
    """Fail without saying so."""
    raise ValueError("a secret")


@tool
def fatal(ctx: Any) -> str:
    """End the run."""
    raise FatalToolError("enough")


TOOLS = {"add": add, "refuse": refuse, "crash": crash, "fatal": fatal}


async def play(turns: Any, *plugins: object, **options: Any) -> RunResult:
    model = turns if hasattr(turns, "stream") else ScriptedModel(turns)
    agent = define_agent(
        name="calc",
        version="1.2",
        model=model,
        tools=TOOLS,
        lifecycle=compose_lifecycle(*plugins),
        **options,
    )
    return await run_once(agent, "go", on_runtime_error=lambda error: None)


def parent_of(span: Any) -> int | None:
    return None if span.parent is None else span.parent.span_id


# ------------------------------------------------------------------------ the tree


async def test_a_run_its_model_calls_and_its_tool_calls_are_spans_of_one_trace(recorder) -> None:
    plugin = recorder.plugin()
    result = await play([Call("add", {"a": 2, "b": 3}, "c1"), "5"], plugin)
    assert not plugin._runs._open
    assert not plugin._runs._gone
    run = recorder.one("invoke_agent")
    assert (run.name, run.kind, parent_of(run)) == ("invoke_agent calc", SpanKind.INTERNAL, None)
    assert dict(run.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "calc",
        "gen_ai.agent.version": "1.2",
        "gen_ai.conversation.id": run.attributes["gen_ai.conversation.id"],
        "gen_ai.usage.input_tokens": 2,
        "gen_ai.usage.output_tokens": 2,
        "pai.run.id": result.run_id,
        "pai.run.operation": "send",
        "pai.run.attempt": 1,
        "pai.run.episode": 1,
        "pai.run.status": "completed",
        "pai.run.stop_reason": "stop",
    }
    first, second = recorder.named("chat")
    assert (first.name, first.kind) == ("chat script", SpanKind.CLIENT)
    attributes = dict(first.attributes)
    assert 0 <= attributes.pop("gen_ai.response.time_to_first_chunk") < 5
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script",
        "gen_ai.request.stream": True,
        "gen_ai.conversation.id": run.attributes["gen_ai.conversation.id"],
        "gen_ai.agent.name": "calc",
        "gen_ai.response.finish_reasons": ("tool_call",),
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 1,
        "pai.step.index": 0,
    }
    assert second.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    call = recorder.one("execute_tool")
    assert (call.name, call.kind) == ("execute_tool add", SpanKind.INTERNAL)
    assert dict(call.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.conversation.id": run.attributes["gen_ai.conversation.id"],
        "gen_ai.agent.name": "calc",
        "pai.tool.outcome": "completed",
    }
    assert {parent_of(span) for span in (first, second, call)} == {run.context.span_id}
    assert run.start_time <= first.start_time <= first.end_time <= call.start_time
    assert call.end_time <= second.start_time <= second.end_time <= run.end_time
    assert {span.status.status_code for span in recorder.spans} == {StatusCode.UNSET}
    assert recorder.open == []


async def test_settings_and_usage_are_told_where_they_are_set(recorder) -> None:
    settings = ModelSettings(
        max_output_tokens=9,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        stop_sequences=["END"],
        seed=7,
        reasoning=Reasoning("low"),
    )
    usage = Usage(10, 5, 15, reasoning_tokens=3, cached_input_tokens=4, cache_write_tokens=2)
    model = ScriptedModel([["5", Finish("length", usage)]])
    agent = define_agent(
        name="calc",
        model=ModelSelection(model, model_settings=settings),
        lifecycle=recorder.plugin(),
    )
    await run_once(agent, "go")
    found = recorder.one("chat").attributes
    prefixes = ("gen_ai.request.", "gen_ai.usage.", "gen_ai.response.f")
    assert {key: found[key] for key in found if key.startswith(prefixes)} == {
        "gen_ai.request.model": "script",
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": 9,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.top_p": 0.9,
        "gen_ai.request.top_k": 4,
        "gen_ai.request.presence_penalty": 0.1,
        "gen_ai.request.frequency_penalty": 0.2,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.request.seed": 7,
        "gen_ai.request.reasoning.level": "low",
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 10,
        "gen_ai.usage.output_tokens": 5,
        "gen_ai.usage.cache_read.input_tokens": 4,
        "gen_ai.usage.cache_write.input_tokens": 2,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }


async def test_calls_side_by_side_have_a_span_each(recorder) -> None:
    calls = [Call("add", {"a": n, "b": 0}, f"c{n}") for n in range(3)]
    await play([[*calls, Call("crash", {}, "c3")], "done"], recorder.plugin())
    spans = recorder.named("execute_tool")
    outcomes = {
        s.attributes["gen_ai.tool.call.id"]: s.attributes["pai.tool.outcome"] for s in spans
    }
    assert outcomes == {"c0": "completed", "c1": "completed", "c2": "completed", "c3": "failed"}
    run = recorder.one("invoke_agent")
    assert {parent_of(span) for span in spans} == {run.context.span_id}
    assert recorder.open == []


class Again:
    """Asks the model again when it has failed, after taking back what was shown."""

    @hookimpl
    async def wrap_model_call(self, step, call_model) -> AsyncIterator[Any]:
        try:
            async for part in call_model(step.request):
                yield part
        except ModelError:
            yield StepReset("again")
            async for part in call_model(step.request):
                yield part


@pytest.mark.parametrize("is_left", [True, False])
async def test_each_try_is_a_call_of_its_own(recorder, is_left: bool) -> None:
    """Wherever the plugin stands: the plugins of the agent are outside of it."""
    telemetry = recorder.plugin()
    plugins = (telemetry, Again()) if is_left else (Again(), telemetry)
    result = await play([["4", Cut()], "5"], *plugins)
    assert result.text == "5"
    first, second = recorder.named("chat")
    assert first.attributes["error.type"] == "incomplete_stream"
    assert first.attributes["gen_ai.response.finish_reasons"] == ("error",)
    assert first.status.status_code is StatusCode.ERROR
    assert second.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert first.attributes["pai.step.index"] == second.attributes["pai.step.index"] == 0
    assert recorder.open == []


async def test_an_answer_without_a_model_has_no_model_call(recorder) -> None:
    class Closed:
        @hookimpl
        def prepare_run(self, run):
            return Respond("Closed.", outcome="blocked", reason="hours")

    await play([], recorder.plugin(), Closed())
    run = recorder.one("")
    assert run.attributes["pai.run.status"] == "blocked"
    assert "error.type" not in run.attributes


# ------------------------------------------------------------------------ what fails


@pytest.mark.parametrize(
    ("item", "kind", "code"),
    [
        (Fail(ModelError("no", provider="p", code="teapot")), "teapot", "teapot"),
        (Cut(), "incomplete_stream", "incomplete_stream"),
        (Fail(KeyError("a secret")), "KeyError", "internal_error"),
    ],
)
async def test_a_model_that_fails(recorder, item: Any, kind: str, code: str) -> None:
    """R-40: codes and types are told, and no text."""
    result = await play([["4", item]], recorder.plugin())
    assert result.status == "failed"
    chat, run = recorder.one("chat"), recorder.one("invoke_agent")
    assert (chat.attributes["error.type"], run.attributes["error.type"]) == (kind, code)
    for span in (chat, run):
        assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
        assert span.events == ()
    assert run.attributes["pai.run.status"] == "failed"
    assert "secret" not in recorder.everything()
    assert recorder.open == []


async def test_a_stream_that_ends_without_saying_so_has_failed(recorder) -> None:
    class Silent(ScriptedModel):
        async def stream(self, request):
            async for part in super().stream(request):
                if part.type != "step-finish":
                    yield part

    await play(Silent(["5"]), recorder.plugin())
    assert recorder.one("chat").attributes["error.type"] == "incomplete_stream"
    assert recorder.open == []


@pytest.mark.parametrize(
    ("call", "outcome"),
    [
        (Call("refuse"), "failed"),
        (Call("crash"), "failed"),
        (Call("add", {"a": "x"}), "failed"),
        (Call("nothing"), "failed"),
        (Call("add", "no json"), "failed"),
    ],
)
async def test_a_call_that_fails(recorder, call: Call, outcome: str) -> None:
    await play([call, "done"], recorder.plugin())
    span = recorder.one("execute_tool")
    assert span.name == f"execute_tool {call.name}"
    assert span.attributes["error.type"] == span.attributes["pai.tool.outcome"] == outcome
    assert (span.status.status_code, span.status.description) == (StatusCode.ERROR, None)
    assert recorder.one("invoke_agent").status.status_code is StatusCode.UNSET
    assert "secret" not in recorder.everything()
    assert recorder.open == []


async def test_a_call_that_is_denied_or_cut_off_did_not_run(recorder) -> None:
    class Guard:
        @hookimpl
        def before_tool_call(self, call):
            return DenyCall("no")

    call = Call("add", {"a": 1, "b": 1})
    await play([call, [call, Finish("length")], "done"], recorder.plugin(), Guard())
    spans = recorder.named("execute_tool")
    assert [span.attributes["pai.tool.outcome"] for span in spans] == ["denied", "truncated"]
    assert recorder.points("gen_ai.execute_tool.duration") == []
    assert recorder.open == []


async def test_a_tool_that_ends_the_run(recorder) -> None:
    calls = [Call("fatal"), Call("add", {"a": 1, "b": 1})]
    assert (await play([calls], recorder.plugin())).status == "failed"
    assert recorder.one("invoke_agent").attributes["error.type"] == "fatal_tool_error"
    assert len(recorder.named("execute_tool")) == 2
    assert recorder.open == []


@pytest.mark.parametrize(
    "phase", ["prepare_run", "prepare_model_step", "before_tool_call", "after_tool_result"]
)
async def test_another_plugin_that_fails_leaves_no_span_open(recorder, phase: str) -> None:
    def fail():
        raise ValueError("a secret")

    broken = type("Broken", (), {phase: staticmethod(hookimpl(fail))})()
    await play([Call("add", {"a": 1, "b": 1}), "2"], recorder.plugin(), broken)
    assert recorder.one("invoke_agent").attributes["error.type"] == "plugin_error"
    assert "secret" not in recorder.everything()
    assert recorder.open == []


# ------------------------------------------------------------------------ what is cancelled


async def test_a_run_that_is_cancelled_while_the_model_writes(recorder) -> None:
    agent = define_agent(
        name="calc", model=ScriptedModel([["The answer", Hang()]]), lifecycle=recorder.plugin()
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main").send("go")
        async for event in run.events():
            if event.type == "text-delta":
                await run.cancel("a secret")
    chat, whole = recorder.one("chat"), recorder.one("invoke_agent")
    assert chat.attributes["error.type"] == whole.attributes["error.type"] == "cancelled"
    assert whole.attributes["pai.run.status"] == "cancelled"
    assert "gen_ai.response.time_to_first_chunk" in chat.attributes
    assert "secret" not in recorder.everything()
    assert recorder.open == []


async def test_a_run_that_is_cancelled_while_tools_run(recorder) -> None:
    started = anyio.Event()

    @tool
    async def wait(ctx: Any) -> str:
        """Wait for ever."""
        started.set()
        await anyio.sleep_forever()
        return ""

    agent = define_agent(
        name="calc",
        model=ScriptedModel([[Call("wait"), Call("add", {"a": 1, "b": 1})]]),
        tools={"wait": wait, "add": add},
        lifecycle=recorder.plugin(),
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main").send("go")
        await started.wait()
        await run.cancel("enough")
        await run.result()
    assert recorder.named("execute_tool wait")[0].attributes["error.type"] == "interrupted"
    assert recorder.one("invoke_agent").attributes["error.type"] == "cancelled"
    assert recorder.open == []


async def test_a_runtime_that_closes_ends_the_spans_of_its_runs(recorder) -> None:
    agent = define_agent(
        name="calc", model=ScriptedModel([["The answer", Hang()]]), lifecycle=recorder.plugin()
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main").send("go")
        async for event in run.events():
            if event.type == "text-delta":
                break
    assert recorder.one("invoke_agent").attributes["error.type"] == "cancelled"
    assert recorder.open == []


async def test_a_layer_outside_may_stop_reading(recorder) -> None:
    """After the last part the call was whole; before it, it was stopped."""

    class Impatient:
        def __init__(self, last: str) -> None:
            self.last = last

        @hookimpl
        async def wrap_model_call(self, step, call_model):
            from contextlib import aclosing

            async with aclosing(call_model(step.request)) as stream:
                async for part in stream:
                    yield part
                    if part.type == self.last:
                        return

    await play(["5"], recorder.plugin(), Impatient("step-finish"))
    await play(["5"], recorder.plugin(), Impatient("text-end"))
    whole, stopped = recorder.named("chat")
    assert whole.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert "error.type" not in whole.attributes
    assert stopped.attributes["error.type"] == "cancelled"
    assert recorder.open == []
