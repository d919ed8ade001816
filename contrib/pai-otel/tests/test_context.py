"""Whose child a run's span is, and that no span becomes the current one (R-28)."""

from __future__ import annotations

import gc
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from pai_otel import tool_span
from pai_otel._senders import Senders

from pai import compose_lifecycle, create_pai, define_agent, hookimpl, run_once, tool
from pai.testing import Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


def current() -> int:
    return trace.get_current_span().get_span_context().span_id


class Looking:
    """Notes the current span wherever it is asked."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    @hookimpl
    def run_started(self):
        self.seen.add(current())

    @hookimpl
    def prepare_model_step(self):
        self.seen.add(current())

    @hookimpl
    async def wrap_model_call(self, step, call_model):
        async for part in call_model(step.request):
            self.seen.add(current())
            yield part
            self.seen.add(current())

    @hookimpl
    def before_tool_call(self):
        self.seen.add(current())

    @hookimpl
    def tool_settled(self):
        self.seen.add(current())

    @hookimpl(trylast=True)
    def run_settled(self):
        self.seen.add(current())


async def test_the_current_span_is_never_changed(recorder) -> None:
    """R-28: in hooks, in tools, and where a run is watched, it is what it was."""
    looking = Looking()

    @tool
    def add(ctx: Any, a: int) -> int:
        """Add."""
        looking.seen.add(current())
        return a

    agent = define_agent(
        name="a",
        model=ScriptedModel([[Call("add", {"a": 1}), Call("add", {"a": 2})], "done"], chunk=1),
        tools={"add": add},
        lifecycle=compose_lifecycle(recorder.plugin(content=True), looking),
    )
    with recorder.tracer.start_as_current_span("request") as request:
        own = request.get_span_context().span_id
        async with create_pai(agents={"main": agent}, plugins=()) as app:
            run = await app.thread("main").send("go")
            async for _ in run.events():
                assert current() == own
            assert current() == own
        assert looking.seen == {own}
    assert current() == 0
    assert recorder.open == []


async def test_a_tool_can_work_below_its_span(recorder) -> None:
    """Side by side, in worker threads and on the event loop."""
    threads = set()

    @tool
    def sync(ctx: Any) -> str:
        """Work in a thread."""
        threads.add(threading.get_ident())
        with tool_span(ctx), recorder.tracer.start_as_current_span(f"inside {ctx.call_id}"):
            return ""

    @tool
    async def loop(ctx: Any) -> str:
        """Work on the loop."""
        with tool_span(ctx) as span:
            span.set_attribute("found", 3)
            with recorder.tracer.start_as_current_span(f"inside {ctx.call_id}"):
                return ""

    @tool
    def broken(ctx: Any) -> str:
        """Fail."""
        with tool_span(ctx):
            raise ValueError("a secret")

    calls = [Call("sync", {}, "c1"), Call("loop", {}, "c2"), Call("sync", {}, "c3"), Call("broken")]
    agent = define_agent(
        name="a",
        model=ScriptedModel([calls, "done"]),
        tools={"sync": sync, "loop": loop, "broken": broken},
        lifecycle=recorder.plugin(),
    )
    await run_once(agent, "go", on_runtime_error=lambda error: None)
    assert threading.get_ident() not in threads
    spans = {
        span.attributes["gen_ai.tool.call.id"]: span for span in recorder.named("execute_tool")
    }
    for call_id in ("c1", "c2", "c3"):
        inside = recorder.one(f"inside {call_id}")
        assert inside.parent.span_id == spans[call_id].context.span_id
    assert spans["c2"].attributes["found"] == 3
    assert "secret" not in recorder.everything()
    assert recorder.open == []


async def test_without_the_plugin_a_tool_works_as_well() -> None:
    @tool
    def look(ctx: Any) -> str:
        """Look."""
        before = trace.get_current_span()
        with tool_span(ctx) as span:
            assert span is trace.INVALID_SPAN
            assert trace.get_current_span() is before
        return "ok"

    agent = define_agent(name="a", model=ScriptedModel([Call("look"), "5"]), tools={"look": look})
    assert (await run_once(agent, "go")).text == "5"


# ------------------------------------------------------------------------ parents


async def test_a_run_is_below_the_span_that_sent_it(recorder) -> None:
    """Also one that waits behind another, whose task is the other's."""
    agent = define_agent(
        name="a", model=ScriptedModel(lambda request: "ok"), lifecycle=recorder.plugin()
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        runs = []
        for name in ("first", "second"):
            with recorder.tracer.start_as_current_span(name):
                runs.append(await app.thread("main", thread_id="t").send(name))
                if name == "first":
                    with trace.use_span(trace.INVALID_SPAN):
                        runs.append(await app.thread("main", thread_id="t").send("nobody"))
                        await runs[-1].result()
        for run in runs:
            await run.result()
    first, nobody, second = recorder.named("invoke_agent")
    assert first.parent.span_id == recorder.one("first").context.span_id
    assert second.parent.span_id == recorder.one("second").context.span_id
    assert nobody.parent is None


async def test_a_run_that_no_message_started_is_below_the_span_that_is_open(recorder) -> None:
    agent = define_agent(
        name="a", model=ScriptedModel(lambda request: "ok"), lifecycle=recorder.plugin()
    )
    with recorder.tracer.start_as_current_span("job") as job:
        await run_once(agent)
    assert recorder.one("invoke_agent").parent.span_id == job.get_span_context().span_id
    with trace.use_span(job):
        # It is over: nothing that begins now belongs to it.
        await run_once(agent)
    assert recorder.named("invoke_agent")[1].parent is None


def test_a_run_that_another_process_sent_is_below_no_span_of_this_one(recorder) -> None:
    """What is open here, where the worker was started, has nothing to do with it."""
    senders = Senders()
    with recorder.tracer.start_as_current_span("start-up") as span:
        assert senders.parent("r", "send") == Context()
        assert trace.get_current_span(senders.parent("r", "trigger")) is span


def test_of_runs_that_do_not_start_here_the_latest_are_kept() -> None:
    senders = Senders()
    for number in range(1_005):
        senders.note(str(number))
    assert len(senders._contexts) == 1_000
    assert "4" not in senders._contexts
    senders.parent("1004", "send")
    assert len(senders._contexts) == 999


# ------------------------------------------------------------------------ many workers


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_a_run_that_is_left_to_others(recorder, tmp_path: Path, where: str) -> None:
    """Each attempt has a span; that of a worker which gave the run up is ended too."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    telemetry = recorder.plugin()

    @tool
    async def wait(ctx: Any) -> str:
        """Wait for ever."""
        await anyio.sleep_forever()
        return ""

    class Looking:
        @hookimpl
        def prepare_model_step(self, step):
            if step.run.attempt == 2:
                assert recorder.open == ["invoke_agent a"]

    def app_of(turn: Any) -> Any:
        agent = define_agent(
            name="a",
            model=ScriptedModel([turn]),
            tools={"wait": wait},
            lifecycle=compose_lifecycle(telemetry, Looking()),
        )
        return create_pai(agents={"main": agent}, store=url, plugins=())

    turn = [Call("wait")] if where == "tool" else ["It is", Hang()]
    async with app_of(turn) as app:
        run = await app.thread("main", thread_id="t").send("go")
        async for event in run.events():
            if event.type == ("step-finished" if where == "tool" else "text-delta"):
                break
    run_id = run.id
    del run, app
    gc.collect()
    async with app_of("It is 5.") as app:
        run = await app.thread("main", thread_id="t").run(run_id)
        await run.result()
    left, taken = recorder.named("invoke_agent")
    assert left.attributes["error.type"] == "left"
    assert "pai.run.status" not in left.attributes
    assert taken.attributes["pai.run.status"] == "completed"
    assert [span.attributes["pai.run.attempt"] for span in (left, taken)] == [1, 2]
    assert {span.attributes["pai.run.id"] for span in (left, taken)} == {run_id}
    stopped = recorder.named("execute_tool" if where == "tool" else "chat")[0]
    assert stopped.attributes["error.type"] == ("left" if where == "tool" else "cancelled")
    assert stopped.parent.span_id == left.context.span_id
    assert recorder.open == []
