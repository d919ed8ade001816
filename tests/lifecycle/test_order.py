"""Three plugins with every phase: the order in which they are called."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from pai import Respond, compose_lifecycle, create_pai, define_agent, hookimpl, tool
from pai.lifecycle import HOOK_NAMES
from pai.testing import Call, ScriptedModel

from ..played import play

PHASES = [name for name in HOOK_NAMES if not name.startswith(("register_", "thread_"))]


class Everything:
    """Records every phase, and changes nothing."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log
        self.last = ""

    def note(self, phase: str) -> None:
        self.log.append(f"{phase} {self.name}")

    @hookimpl
    def accept_message(self, message):
        self.note("accept_message")

    @hookimpl
    async def prepare_run(self, run):
        self.note("prepare_run")

    @hookimpl
    def prepare_model_step(self, step):
        self.note("prepare_model_step")

    @hookimpl
    async def wrap_model_call(self, step, call_model) -> AsyncIterator[Any]:
        self.note("wrap_model_call")
        async for part in call_model(step.request):
            yield part
        self.note("wrap_model_call_end")

    @hookimpl
    async def transform_step_stream(self, step, stream) -> AsyncIterator[Any]:
        async for part in stream:
            yield part
        self.note("transform_step_stream")

    @hookimpl
    async def rewrite_tool_input(self, call):
        self.note("rewrite_tool_input")

    @hookimpl
    def before_tool_call(self, call):
        self.note("before_tool_call")

    @hookimpl
    async def after_tool_result(self, result):
        self.note("after_tool_result")

    @hookimpl
    def transform_aside(self, item, run):
        self.note("transform_aside")

    @hookimpl
    async def run_started(self, run):
        self.note("run_started")

    @hookimpl
    def step_finished(self, step, outcome):
        self.note("step_finished")

    @hookimpl
    async def tool_settled(self, result):
        self.note("tool_settled")

    @hookimpl
    def run_settled(self, run, result):
        self.note("run_settled")


@tool
def look(ctx: Any) -> str:
    """Look."""
    ctx.progress("half")
    return "seen"


def agent(*plugins: object) -> Any:
    model = ScriptedModel([[Call("look")], "done"])
    return define_agent(
        name="a", model=model, tools={"look": look}, lifecycle=compose_lifecycle(*plugins)
    )


def rounds(*phases: str, names: str = "abc") -> list[str]:
    return [f"{phase} {name}" for phase in phases for name in names]


STEP = [
    *rounds("prepare_model_step", "wrap_model_call"),
    # An onion: the outermost, which is the leftmost, ends last.
    *rounds("wrap_model_call_end", names="cba"),
    # Chained: the leftmost is nearest the model.
    *rounds("transform_step_stream"),
]
CALL = rounds("rewrite_tool_input", "before_tool_call")
RUN = [
    *rounds("run_started", "prepare_run"),
    *STEP,
    *CALL,
    *rounds("step_finished", "transform_aside", "after_tool_result", "tool_settled"),
    *STEP,
    *rounds("step_finished", "run_settled"),
]


@pytest.mark.anyio
async def test_every_phase_on_send() -> None:
    """A-LIFE-1, A-LIFE-2, R-31"""
    log: list[str] = []
    played = await play(agent(*(Everything(name, log) for name in "abc")))
    assert played.result.text == "done"
    assert log == rounds("accept_message") + RUN
    assert {entry.split()[0] for entry in log} - {"wrap_model_call_end"} == set(PHASES)


@pytest.mark.anyio
async def test_a_trigger_fires_alike_but_brings_no_message() -> None:
    """R-30"""
    log: list[str] = []
    await play(agent(*(Everything(name, log) for name in "abc")), None)
    assert log == RUN


@pytest.mark.anyio
async def test_every_phase_on_respond() -> None:
    """A-LIFE-3, R-26, R-31: later prepare_runs are not asked; the stream takes the way of all."""
    log: list[str] = []

    class Answers(Everything):
        @hookimpl
        async def prepare_run(self, run):
            self.note("prepare_run")
            return Respond("no", outcome="blocked", reason="quota_exceeded")

    definition = agent(Everything("a", log), Answers("b", log), Everything("c", log))
    played = await play(definition)
    assert log == [
        *rounds("accept_message", "run_started"),
        *rounds("prepare_run", names="ab"),
        *rounds("transform_step_stream", "step_finished", "run_settled"),
    ]
    result = played.result
    assert (result.status, result.outcome, result.reason) == (
        "blocked",
        "blocked",
        "quota_exceeded",
    )
    assert (result.text, result.stop_reason) == ("no", "respond")
    assert definition.model.requests == []
    assert played.state.runs[0].status == "blocked"
    assert played.types == [
        "run-queued", "run-started", "step-started", "text-start", "text-delta", "text-end",
        "step-finished", "run-finished",
    ]  # fmt: skip


@pytest.mark.anyio
async def test_every_phase_when_accept_message_answers() -> None:
    log: list[str] = []

    class Answers(Everything):
        @hookimpl
        def accept_message(self, message):
            self.note("accept_message")
            return Respond("out of office")

    played = await play(agent(Everything("a", log), Answers("b", log), Everything("c", log)))
    # those further right still see the message, which is stored all the same.
    assert log == [
        *rounds("accept_message", "transform_aside"),
        *rounds("run_started", "transform_step_stream", "step_finished", "run_settled"),
    ]
    assert [message.role for message in played.state.messages] == ["user", "assistant"]
    assert played.result.text == "out of office"


@pytest.mark.anyio
async def test_a_respond_of_a_step_ends_the_phase_and_the_run() -> None:
    log: list[str] = []

    class Answers(Everything):
        @hookimpl
        def prepare_model_step(self, step):
            self.note("prepare_model_step")
            return Respond("enough") if step.index else None

    played = await play(agent(Everything("a", log), Answers("b", log), Everything("c", log)))
    after_tools = log[len(log) - log[::-1].index("tool_settled c") :]
    assert after_tools == [
        *rounds("prepare_model_step", names="ab"),
        *rounds("transform_step_stream", "step_finished", "run_settled"),
    ]
    assert played.result.text == "enough"
    assert [message.role for message in played.state.messages] == ["user"] + ["assistant"] * 2


@pytest.mark.anyio
async def test_runtime_plugins_stand_left_of_the_agent_s_own() -> None:
    log: list[str] = []
    await play(agent(Everything("b", log)), plugins=[Everything("a", log)])
    assert [entry for entry in log if entry.startswith("prepare_run")] == rounds(
        "prepare_run", names="ab"
    )


@pytest.mark.anyio
async def test_state_is_a_plugin_s_own_for_one_episode() -> None:
    """R-34"""
    seen: list[tuple[str, object]] = []

    class Keeps:
        def __init__(self, name: str) -> None:
            self.name = name

        @hookimpl
        def prepare_run(self, run, state):
            seen.append((self.name, state.get("run")))
            state["run"] = run.id

        @hookimpl
        async def wrap_model_call(self, state, step, call_model):
            assert state["run"] == step.run.id
            async for part in call_model(step.request):
                yield part

        @hookimpl
        def after_tool_result(self, state, result):
            assert state["run"] == result.run.id

        @hookimpl
        def transform_aside(self, state):
            assert "run" in state

        @hookimpl
        def run_settled(self, state, result, run):
            assert state["run"] == run.id
            seen.append((self.name, "settled"))

    definition = agent(Keeps("a"), Keeps("a"))
    errors: list[BaseException] = []
    async with create_pai(
        agents={"a": definition}, plugins=(), on_runtime_error=errors.append
    ) as app:
        thread = app.thread("a")
        for _ in range(2):
            definition.model.requests.clear()
            result = await (await thread.send("go")).result()
            assert result.status == "completed"
    assert errors == []
    assert seen == [("a", None), ("a", None), ("a", "settled"), ("a", "settled")] * 2
