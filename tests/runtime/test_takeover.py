"""Another worker goes on where one died (R-3b, R-10, R-12, R-13)."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    DenyCall,
    Message,
    MetadataPatch,
    MetadataSchemas,
    Pai,
    ReplaceInput,
    RunPatch,
    ToolContext,
    budget,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
    until_finish_reason,
)
from pai.loop import _log
from pai.loop._kept_patch import patch_to_json
from pai.ports import Store
from pai.protocol import (
    CallRecord,
    Claimed,
    Commit,
    Data,
    Event,
    RunStarted,
    StepFinished,
    StepStarted,
    TextDelta,
    TextPart,
    TextStart,
    ThreadKey,
    ToolCall,
    ToolCallPart,
    Usage,
    fold,
)
from pai.runtime import _engines
from pai.stores import open_store
from pai.testing import Call, Fail, ScriptedModel

from ..processes import command
from .dying_worker import agent as marking

pytestmark = pytest.mark.anyio
INTERRUPTED = "The call was interrupted before it finished."


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for what a dead worker left all the time, and read its log back in small pieces."""
    monkeypatch.setattr(_engines, "POLL", 0.02)
    monkeypatch.setattr(_log, "FIRST_LOOK", 2)
    monkeypatch.setattr(_log, "FAR_LOOK", 3)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'pai.db'}"


async def ended(app: Pai) -> tuple[Any, list[Event]]:
    """The thread when its run has settled, and its events; both tell the same (R-25)."""
    thread = app.thread("a", thread_id="t")
    run = await thread.run("r")
    with anyio.fail_after(20):
        events = [event async for event in run.events()]
    state = await thread.state()
    assert fold(None, events) == state
    for cut in range(1, len(events)):
        assert fold(fold(None, events[:cut]), events[cut:]) == state
    return state, events


def said(state: Any) -> list[list[Any]]:
    """The parts of each message of the assistant."""
    return [list(message.parts) for message in state.messages if message.role == "assistant"]


# ---------------------------------------------------------------------------- killed for real


async def killed(url: str, marks: Path, script: str) -> None:
    """Let a process of its own work on the thread, and kill it where it hangs."""

    def play() -> None:
        with subprocess.Popen(
            command("tests.runtime.dying_worker", url, marks, script),
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdout is not None
            line = worker.stdout.readline()
            worker.send_signal(signal.SIGKILL)
            worker.wait(10)
        assert line == "ready\n"

    await anyio.to_thread.run_sync(play)


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_calls_that_a_killed_worker_left(url: str, tmp_path: Path) -> None:
    """R-12: what ended stays, what may be done twice is done again, the rest was interrupted."""
    marks = tmp_path / "marks"
    await killed(url, marks, "calls")
    assert sorted(marks.read_text().split()) == ["a", "o", "q"]
    agent = marking(marks, ["done"], dies=False)
    async with create_pai(agents={"a": agent}, store=url) as app:
        state, events = await ended(app)
    assert sorted(marks.read_text().split()) == ["a", "a", "o", "q"]
    calls, last = said(state)
    assert calls[0] == TextPart("I call")
    found = {part.call_id: part for part in calls if isinstance(part, ToolCallPart)}
    assert list(found) == ["q", "o", "a"]
    assert (found["q"].outcome, found["q"].output) == ("completed", "r:q")
    assert (found["a"].outcome, found["a"].output) == ("completed", "r:a")
    assert (found["o"].outcome, found["o"].error) == ("interrupted", INTERRUPTED)
    # what watchers were shown is kept.
    assert [part.value for part in calls if part.type == "data-note"] == ["seen"]
    assert last == [TextPart("done")]
    assert [event.index for event in events if isinstance(event, StepStarted)] == [0, 1]
    started = [event for event in events if isinstance(event, RunStarted)]
    assert [event.attempt for event in started] == [1, 2]
    assert started[0].started_at == started[1].started_at == state.runs[0].started_at
    assert state.runs[0].status == "completed"
    # What the step of the dead worker used counts.
    assert state.runs[0].usage == Usage(2, 2, 4)
    model: Any = agent.model
    (request,) = model.requests
    assert [message.role for message in request.messages] == ["user", "assistant"]
    outcomes = [p.outcome for p in request.messages[1].parts if isinstance(p, ToolCallPart)]
    assert outcomes == ["completed", "interrupted", "completed"]


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_a_step_that_a_killed_worker_was_in_is_made_again(url: str, tmp_path: Path) -> None:
    """R-13: watchers get a reset; the step before it stays."""
    marks = tmp_path / "marks"
    await killed(url, marks, "text")
    agent = marking(marks, ["two"], dies=False)
    async with create_pai(agents={"a": agent}, store=url) as app:
        state, events = await ended(app)
    assert marks.read_text().split() == ["q"]
    assert [[part.type for part in parts] for parts in said(state)] == [
        ["text", "tool-call"], ["text"],
    ]  # fmt: skip
    assert said(state)[1] == [TextPart("two")]
    assert [event.index for event in events if isinstance(event, StepStarted)] == [0, 1, 1]
    assert "step-reset" in [event.type for event in events]


# ---------------------------------------------------------------------------- by the store's door


@attrs.define
class Left:
    """A run that a worker holds which does nothing more."""

    store: Store
    key: ThreadKey
    claimed: Claimed

    async def commit(self, change: Commit) -> None:
        await self.store.commit(self.key, "r", self.claimed.fence, change)

    async def step(
        self, *calls: CallRecord, text: str = "I call", usage: Usage | None = None
    ) -> None:
        """Commit a step with calls; an empty outcome is an open call."""
        parts: list[Any] = [TextPart(text)]
        at = self.claimed.run.created_at
        events: list[Event] = [StepStarted(0, "m", at), TextStart("t"), TextDelta("t", text)]
        for call in calls:
            parts.append(ToolCallPart(call.call_id, call.tool, call.input))
            events.append(ToolCall(call.call_id, call.tool, call.input))
        events.append(StepFinished(0, "tool-calls", usage))
        message = Message("m", "assistant", tuple(parts), "r", at)
        open_calls = [attrs.evolve(call, input=None) for call in calls]
        await self.commit(Commit(events, message, tuple(open_calls)))

    async def again(self) -> None:
        """Another worker takes it, and dies too."""
        claimed = await self.store.claim(self.key, "dead", 0.0, [RunStarted("t")])
        assert claimed is not None
        self.claimed = claimed


@pytest.fixture
async def left(url: str) -> AsyncIterator[Left]:
    agent = define_agent(name="a", model=ScriptedModel([]))
    async with create_pai(agents={"a": agent}, store=url, work=False) as app:
        await app.thread("a", thread_id="t").send("go", run_id="r")
    store = open_store(url)
    await store.open()
    (key,) = await store.waiting()
    claimed = await store.claim(key, "dead", 0.0, [RunStarted("t")])
    assert claimed is not None
    yield Left(store, key, claimed)
    await store.close()


def opened(call_id: str, name: str, status: Any = "requested", input: Any = None) -> CallRecord:
    return CallRecord(call_id, "m", name, status, input={} if input is None else input)


@attrs.frozen
class Labelled:
    label: str = ""


class Twice:
    """Says how often each tool ran."""

    def __init__(self) -> None:
        self.ran: list[Any] = []

    def app(
        self,
        url: str,
        *plugins: object,
        script: Any = ("done",),
        on_error: Any = None,
        **fields: Any,
    ) -> Pai:
        ran = self.ran

        @tool
        async def add(ctx: ToolContext[Any], a: int, b: int = 1) -> int:
            """Add."""
            ran.append((a, b))
            return a + b

        @tool(idempotent=True)
        async def send(ctx: ToolContext[Any]) -> str:
            """Send."""
            ran.append(ctx.idempotency_key)
            return "sent"

        agent = define_agent(
            name="a",
            model=ScriptedModel(script),
            tools={"add": add, "send": send},
            ui_data={"note": str},
            lifecycle=compose_lifecycle(*plugins),
            **fields,
        )
        return create_pai(agents={"a": agent}, store=url, on_runtime_error=on_error)


class Policy:
    """Denies one input, and would rewrite all."""

    @hookimpl
    def rewrite_tool_input(self, call: Any) -> ReplaceInput:
        return ReplaceInput({"a": 100})

    @hookimpl
    def before_tool_call(self, call: Any) -> DenyCall | None:
        return DenyCall("not this one") if call.raw_input == {"a": 3} else None


async def test_calls_that_had_not_begun_are_checked_and_run(left: Left, url: str) -> None:
    """R-12, R-23: each once, with what is stored, and none that is refused."""
    await left.step(
        opened("fits", "add", input={"a": 1}),
        opened("broken", "add", input={"a": "x"}),
        opened("denied", "add", input={"a": 3}),
        opened("unknown", "gone"),
    )
    twice = Twice()
    async with twice.app(url, Policy()) as app:
        state, _ = await ended(app)
    parts = {part.call_id: part for part in said(state)[0] if isinstance(part, ToolCallPart)}
    assert list(parts) == ["fits", "broken", "denied", "unknown"]
    assert {call_id: part.outcome for call_id, part in parts.items()} == {
        "fits": "completed", "broken": "failed", "denied": "denied", "unknown": "failed",
    }  # fmt: skip
    assert parts["fits"].output == 2
    assert twice.ran == [(1, 1)]


async def test_a_tool_that_is_not_offered_any_more_does_not_run(left: Left, url: str) -> None:
    """A-TOOL-3."""

    class Without:
        @hookimpl
        def prepare_run(self) -> RunPatch:
            return RunPatch(tools=["send"])

    await left.step(opened("c", "add", input={"a": 1}))
    twice = Twice()
    async with twice.app(url, Without()) as app:
        state, _ = await ended(app)
    assert said(state)[0][1].outcome == "failed"
    assert twice.ran == []


async def test_a_started_call_runs_again_only_if_it_may(left: Left, url: str) -> None:
    """R-12: with the key it had."""
    await left.step(opened("a", "add", "started", {"a": 1}), opened("s", "send", "started"))
    twice = Twice()
    async with twice.app(url) as app:
        state, events = await ended(app)
    assert [part.outcome for part in said(state)[0][1:]] == ["interrupted", "completed"]
    assert twice.ran == ["r:s"]
    assert [event.type for event in events].count("tool-error") == 1


async def test_steps_are_counted_on(left: Left, url: str) -> None:
    await left.step(opened("s", "send", "started"))
    twice = Twice()
    async with twice.app(url, script=[[Call("send", {}, "s")]], max_steps=2) as app:
        state, events = await ended(app)
    assert [event.index for event in events if isinstance(event, StepStarted)] == [0, 1]
    assert state.runs[0].stop_reason == "max_steps"
    # A call of the new step does not take the id of an old one.
    assert len(set(twice.ran)) == 2


async def test_data_that_no_commit_took_along_is_kept(left: Left, url: str) -> None:
    """R-25, R-29."""
    await left.step(opened("s", "send", "started"))
    data: list[Event] = [Data("note", "1"), Data("note", "2", "x"), Data("note", "3", "x")]
    await left.store.append(left.key, "r", left.claimed.fence, data)
    async with Twice().app(url) as app:
        state, _ = await ended(app)
    assert [part.value for part in said(state)[0][2:]] == ["1", "3"]


async def test_what_was_decided_for_messages_holds_for_the_next_worker(
    left: Left, url: str
) -> None:
    """A-DEF-8, A-META-5: also for the message that it begins with."""
    patch = RunPatch(message_metadata=MetadataPatch(public={"label": "kept"}))
    await left.commit(Commit(patch={"episode": 1, "patch": patch_to_json(patch)}))

    class Silent:
        @hookimpl
        def prepare_run(self) -> None:
            raise AssertionError("it was asked already")

    schemas = MetadataSchemas(private=Labelled, public=Labelled)
    async with Twice().app(url, Silent(), message_metadata=schemas) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.run("r")).result()
        # The first message is older than its schema: the log has it as it was, and the state as it
        # is read today (A-META-10).
        answer = (await thread.state()).messages[1]
    assert answer.metadata == {"label": "kept"}


async def test_a_run_that_is_cancelled_while_it_is_taken_over_keeps_all(
    left: Left, url: str
) -> None:
    """R-10, R-25, R-29: what was streamed, and what was used."""
    await left.step(opened("s", "send", "started"), usage=Usage(1, 2, 3))
    await left.store.append(left.key, "r", left.claimed.fence, [Data("note", "1")])
    await left.store.cancel(left.key, "r", "user")
    async with Twice().app(url) as app:
        state, _ = await ended(app)
    assert state.runs[0].status == "cancelled"
    assert state.runs[0].usage == Usage(1, 2, 3)
    assert [part.outcome for part in said(state)[0] if part.type == "tool-call"] == ["interrupted"]
    assert [part.value for part in said(state)[0] if part.type == "data-note"] == ["1"]


async def test_a_failure_after_a_takeover_leaves_no_call_open(left: Left, url: str) -> None:
    """R-14."""

    class Broken:
        @hookimpl
        def prepare_run(self) -> None:
            raise RuntimeError("no")

    await left.step(opened("s", "send", "started"))
    async with Twice().app(url, Broken()) as app:
        state, _ = await ended(app)
    assert state.runs[0].status == "failed"
    assert said(state)[0][1].outcome == "interrupted"


class Told:
    """Looks at how calls ended."""

    @hookimpl
    def tool_settled(self, result: Any) -> None:
        assert result.outcome


@pytest.mark.parametrize("takeovers", [2, 3])
async def test_a_run_that_kills_its_workers_is_given_up(
    left: Left, url: str, takeovers: int
) -> None:
    """R-3b."""
    await left.step(opened("s", "send", "started"))
    for _ in range(takeovers):
        await left.again()
    twice, errors = Twice(), []
    app = twice.app(url, Told(), on_error=errors.append)
    async with app:
        state, _ = await ended(app)
    assert errors == []
    (run,) = state.runs
    if takeovers == 2:
        assert (run.status, twice.ran) == ("completed", ["r:s"])
        return
    assert run.status == "failed"
    assert run.error["code"] == "worker_lost"
    assert said(state)[0][1].outcome == "interrupted"
    assert twice.ran == []


async def test_a_run_that_gets_on_is_not_given_up(left: Left, url: str) -> None:
    """R-3b: takeovers with a commit between them do not add up."""
    for _ in range(3):
        await left.again()
    await left.step(opened("s", "send", "started"))
    async with Twice().app(url, script=[[Fail()]]) as app:
        state, _ = await ended(app)
    assert state.runs[0].error["code"] != "worker_lost"


async def test_a_reason_to_stop_holds_after_a_takeover(left: Left, url: str) -> None:
    """O-2: it is asked for of the step that the dead worker has committed."""
    await left.step(opened("s", "send", "started"), usage=Usage(5, 5, 10))
    when = until_finish_reason("tool-calls") & budget(tokens=10)
    async with Twice().app(url, script=[], stop_when=when) as app:
        state, _ = await ended(app)
    assert state.runs[0].stop_reason == "finish_reason+token_budget"
    assert said(state)[0][1].outcome == "completed"
