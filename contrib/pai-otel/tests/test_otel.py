"""The plugin's doors, its metrics, and that it changes and breaks nothing."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from pai_otel import Options, Telemetry, otel
from pai_otel.plugin import register_lifecycle

from pai import compose_lifecycle, create_pai, define_agent, hookimpl, run_once, tool
from pai.schema import compile_schema
from pai.testing import Call, Cut, Finish, Reason, ScriptedModel

pytestmark = pytest.mark.anyio


@tool
def add(ctx: Any, a: int, b: int) -> int:
    """Add."""
    return a + b


def calc(turns: Any, *plugins: object, **options: Any) -> Any:
    lifecycle = compose_lifecycle(*plugins) if plugins else None
    return define_agent(
        name="calc", model=ScriptedModel(turns, **options), tools={"add": add}, lifecycle=lifecycle
    )


SUM = [Call("add", {"a": 2, "b": 3}, "c1"), "5"]


# ------------------------------------------------------------------------ metrics


async def test_what_is_measured(recorder) -> None:
    await run_once(calc(SUM, recorder.plugin()), "go")
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "script",
    }
    tokens = recorder.points("gen_ai.client.token.usage")
    assert [(dict(point.attributes), point.sum, point.count) for point in tokens] == [
        ({**chat, "gen_ai.token.type": "input"}, 2, 2),
        ({**chat, "gen_ai.token.type": "output"}, 2, 2),
    ]
    for metric in (
        "gen_ai.client.operation.duration",
        "gen_ai.client.operation.time_to_first_chunk",
    ):
        [point] = recorder.points(metric)
        assert (dict(point.attributes), point.count) == (chat, 2)
        assert point.explicit_bounds[:3] == (0.01, 0.02, 0.04)
    [run] = recorder.points("gen_ai.invoke_agent.duration")
    assert dict(run.attributes) == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "calc",
    }
    span = recorder.one("invoke_agent")
    assert run.sum == pytest.approx((span.end_time - span.start_time) / 1e9)
    [call] = recorder.points("gen_ai.execute_tool.duration")
    assert (call.attributes["gen_ai.tool.name"], call.count) == ("add", 1)


async def test_failures_are_measured_by_their_kind(recorder) -> None:
    agent = calc([["4", Cut()]], recorder.plugin())
    await run_once(agent, "go", on_runtime_error=lambda error: None)
    for metric in ("gen_ai.client.operation.duration", "gen_ai.invoke_agent.duration"):
        [point] = recorder.points(metric)
        assert point.attributes["error.type"] == "incomplete_stream"
    assert recorder.points("gen_ai.client.token.usage") == []


async def test_a_name_that_a_model_made_up_is_in_no_metric(recorder) -> None:
    await run_once(calc([Call("made_up"), "sorry"], recorder.plugin()), "go")
    assert recorder.one("execute_tool").name == "execute_tool made_up"
    assert recorder.points("gen_ai.execute_tool.duration") == []


# ------------------------------------------------------------------------ changing nothing


TURNS = [
    ["Let me", Reason("think"), Call("add", {"a": 2, "b": 3}, "c1"), Call("nothing", {}, "c2")],
    ["It is 5.", Finish("length")],
]


@pytest.mark.parametrize("content", [False, True])
async def test_events_are_those_of_a_run_without_it(recorder, content: bool) -> None:
    async def events(*plugins: object) -> list[Any]:
        agent = calc(TURNS, *plugins, chunk=2)
        async with create_pai(agents={"main": agent}, plugins=()) as app:
            run = await app.thread("main", thread_id="t").send("go", run_id="r")
            return [event async for event in run.events()]

    def plain(found: list[Any]) -> list[Any]:
        kept = {"type", "id", "text", "call_id", "tool", "input", "output", "error", "reason"}
        return [
            {name: getattr(event, name) for name in sorted(kept) if hasattr(event, name)}
            if not event.type.startswith(("step-started", "message"))
            else event.type
            for event in found
        ]

    assert plain(await events(recorder.plugin(content=content))) == plain(await events())


async def test_parts_pass_as_they_are(recorder) -> None:
    made, came = [], []

    class Model(ScriptedModel):
        async def stream(self, request):
            async for part in super().stream(request):
                made.append(part)
                # One by one, and several at once.
                yield [part] if len(made) % 2 else part

    class Outside:
        @hookimpl
        async def wrap_model_call(self, step, call_model):
            async for part in call_model(step.request):
                came.append(part)
                yield part

    agent = define_agent(
        name="a",
        model=Model(["Hello", "again"], chunk=1),
        lifecycle=compose_lifecycle(Outside(), recorder.plugin()),
    )
    await run_once(agent, "go")
    assert list(map(id, came)) == list(map(id, made))
    assert len(came) > 5


@pytest.mark.parametrize("at", ["start", "end"])
@pytest.mark.parametrize("name", ["invoke_agent", "chat", "execute_tool"])
async def test_a_processor_that_fails_fails_no_run(at: str, name: str) -> None:
    class Broken(SpanProcessor):
        def on_start(self, span: Any, parent_context: Any = None) -> None:
            if at == "start" and span.name.startswith(name):
                raise ValueError("a secret")

        def on_end(self, span: Any) -> None:
            if at == "end" and span.name.startswith(name):
                raise ValueError("a secret")

    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(Broken())
    for content in (False, True):
        agent = calc(SUM, otel(tracer_provider=provider, content=content))
        result = await run_once(agent, "go", on_runtime_error=lambda error: None)
        assert (result.status, result.text) == ("completed", "5")


async def test_without_an_sdk_nothing_is_recorded_and_nothing_fails() -> None:
    for content in (False, True):
        result = await run_once(calc(SUM, otel(content=content)), "go")
        assert result.text == "5"


# ------------------------------------------------------------------------ doors


async def test_as_telemetry_of_a_runtime(recorder) -> None:
    """A-DEF-5."""
    telemetry = recorder.plugin()
    agents = {"one": calc(["1"]), "two": calc(["2"], telemetry)}
    async with create_pai(agents=agents, plugins=(), telemetry=telemetry) as app:
        for key in agents:
            await (await app.thread(key).send("go")).result()
    assert len(recorder.named("invoke_agent")) == len(recorder.named("chat")) == 2


async def test_as_an_installed_plugin(recorder) -> None:
    """Found by its name; given as telemetry too, it is there once."""
    async with create_pai(
        agents={"main": calc(SUM)},
        plugins={"otel": {"content": True}},
        telemetry=recorder.plugin(),
    ) as app:
        assert [(report.name, report.error) for report in app.plugins] == [("otel", None)]
        await (await app.thread("main").send("go")).result()
    assert len(recorder.named("invoke_agent")) == 1
    assert "gen_ai.input.messages" not in recorder.named("chat")[0].attributes


def test_the_options_of_a_file_make_the_plugin() -> None:
    for options in (None, compile_schema(Options).parse({"content": True})):
        assert isinstance(register_lifecycle(options), Telemetry)


async def test_two_of_them_do_not_mix(recorder) -> None:
    """R-34: each has its own state."""
    other = type(recorder)()
    await run_once(calc([*SUM], recorder.plugin(), other.plugin(content=True)), "go")
    for found in (recorder, other):
        assert len(found.spans) == 4
        assert found.open == []
        assert len({span.context.trace_id for span in found.spans}) == 1


async def test_spans_of_many_runs_at_once_do_not_mix(recorder) -> None:
    import anyio

    agent = calc(lambda request: "ok", recorder.plugin())
    async with create_pai(agents={"main": agent}, plugins=()) as app:

        async def one(number: int) -> None:
            await (await app.thread("main", thread_id=f"t{number}").send("go")).result()

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(one, number)
    runs = {span.context.span_id: span for span in recorder.named("invoke_agent")}
    assert len(runs) == 20
    for chat in recorder.named("chat"):
        run = runs.pop(chat.parent.span_id)
        conversation = "gen_ai.conversation.id"
        assert run.attributes[conversation] == chat.attributes[conversation]
    assert runs == {}
    assert recorder.open == []
