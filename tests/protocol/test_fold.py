"""A snapshot and the events after it are the thread, from wherever one begins (R-25)."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given, settings, strategies as st

from pai import (
    Event,
    MetadataPatch,
    MetadataSchemas,
    ReasoningSummaryConfig,
    RunContext,
    StepContext,
    ThreadHandle,
    ThreadState,
    ThreadTitleConfig,
    ToolContext,
    ToolResultContext,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.errors import InvalidInput
from pai.protocol import (
    Batch,
    CallError,
    CallOutput,
    Data,
    DataPart,
    File,
    FilePart,
    Message,
    MessageMetadata,
    MessagePart,
    MessageView,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningPart,
    ReasoningStart,
    ReasoningSummary,
    RunFinished,
    RunQueued,
    RunStarted,
    Source,
    SourcePart,
    StepFinished,
    StepReset,
    StepStarted,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ThreadUpdated,
    ToolCall,
    ToolCallPart,
    ToolInputDelta,
    ToolInputStart,
    ToolProgress,
    Usage,
    fold,
    message_view,
)
from pai.testing import Call, Cut, Data as SaysData, Fail, Finish, Hang, Reason, ScriptedModel

THEN = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
LATER = datetime(2026, 1, 2, 3, 4, 6, tzinfo=UTC)
QUEUED = RunQueued(
    "send",
    MessageView("u", "user", (TextPart("hi"),), {}, "r", THEN),
    {"mood": "good"},
    created_at=THEN,
    thread_id="t",
    thread_metadata={"topic": "none"},
)


def numbered(*events: Event, run: str = "r", first: int = 1) -> list[Event]:
    return list(Batch(first, run, list(events)).numbered())


def begun(*events: Event) -> list[Event]:
    return numbered(
        attrs.evolve(QUEUED), RunStarted("t", started_at=LATER), StepStarted(0, "m", THEN), *events
    )


def parts_of(*events: Event) -> tuple[MessagePart, ...]:
    """What the message of a step under way shows."""
    message = fold(None, begun(*events)).messages[-1]
    return message.parts if message.id == "m" else ()


# ---------------------------------------------------------------------------- example by example


def test_the_first_event_makes_the_thread() -> None:
    state = fold(None, numbered(attrs.evolve(QUEUED)))
    assert (state.thread.id, state.thread.metadata) == ("t", {"topic": "none"})
    assert state.thread.created_at == state.thread.updated_at == THEN
    assert state.messages == (QUEUED.message,)
    (run,) = state.runs
    assert (run.id, run.status, run.metadata) == ("r", "queued", {"mood": "good"})
    assert (run.created_at, run.started_at) == (THEN, None)
    assert state.cursor == 1


def test_a_thread_is_not_made_up() -> None:
    for events in ([], numbered(TextDelta("t", "x"))):
        with pytest.raises(InvalidInput, match="event 1"):
            fold(None, events)


def test_a_run_starts_and_ends() -> None:
    events = begun(
        RunFinished(
            "failed", "failed", None, None, Usage(1, 2, 3), {"code": "x"}, {"mood": "bad"}, LATER
        )
    )
    (run,) = fold(None, events[:2]).runs
    assert (run.status, run.started_at) == ("running", LATER)
    state = fold(None, events)
    (run,) = state.runs
    assert (run.status, run.outcome, run.error) == ("failed", "failed", {"code": "x"})
    assert (run.usage, run.metadata) == (Usage(1, 2, 3), {"mood": "bad"})
    assert run.finished_at == state.thread.updated_at == LATER
    # The step had nothing, and nothing of it was kept.
    assert [message.id for message in state.messages] == ["u"]


def test_a_takeover_does_not_start_a_run_anew() -> None:
    again = [*begun(), *numbered(RunStarted("t", 2, started_at=THEN), first=4)]
    assert fold(None, again).runs[0].started_at == LATER


def test_text_and_reasoning_show_as_they_come() -> None:
    events: list[Event] = [
        ReasoningStart("r1"), ReasoningDelta("r1", "hm"), TextStart("a"), TextStart("b"),
        TextDelta("a", "He"), TextDelta("b", "other"), TextDelta("a", "llo"), TextEnd("a"),
    ]  # fmt: skip
    assert parts_of(*events[:4]) == (ReasoningPart("hm"),)
    assert parts_of(*events) == (ReasoningPart("hm"), TextPart("Hello"), TextPart("other"))


def test_the_id_of_a_text_that_ended_is_free_again() -> None:
    one: list[Event] = [TextStart("a"), TextDelta("a", "1"), TextEnd("a")]
    two: list[Event] = [TextStart("a"), TextDelta("a", "2"), TextEnd("a")]
    assert parts_of(*one, *two) == (TextPart("1"), TextPart("2"))


def test_a_call_shows_from_its_first_letter() -> None:
    events: list[Event] = [
        ToolInputStart("c", "add"), ToolInputDelta("c", '{"a"'), ToolInputDelta("c", ":1}"),
        ToolCall("c", "add", {"a": 1}), ToolCall("c", "add", {"a": 2}),
    ]  # fmt: skip
    assert parts_of(*events[:2]) == (ToolCallPart("c", "add", raw='{"a"'),)
    assert parts_of(*events[:4]) == (ToolCallPart("c", "add", {"a": 1}),)
    # What it is executed with.
    assert parts_of(*events) == (ToolCallPart("c", "add", {"a": 2}),)


def test_calls_of_the_provider_have_ended() -> None:
    done = ToolCall("c", "search", {}, provider_executed=True, output=[1])
    broken = ToolCall("d", "search", {}, provider_executed=True, error="no")
    assert parts_of(done, broken) == (
        ToolCallPart("c", "search", {}, "completed", [1], provider_executed=True),
        ToolCallPart("d", "search", {}, "failed", None, "no", provider_executed=True),
    )


@pytest.mark.parametrize("committed", [False, True])
def test_a_call_ends(committed: bool) -> None:
    step: list[Event] = [StepFinished(0, "tool-calls")] if committed else []
    parts = parts_of(
        ToolCall("c", "add", 1), ToolCall("d", "add", 2), *step,
        ToolProgress("c", 1), CallError("d", "no", "denied"), CallOutput("c", 3),
    )  # fmt: skip
    assert parts == (
        ToolCallPart("c", "add", 1, "completed", 3),
        ToolCallPart("d", "add", 2, "denied", None, "no"),
    )


@pytest.mark.parametrize("committed", [False, True])
def test_a_label_is_on_its_part(committed: bool) -> None:
    """A-REASON-1: by its place among the parts of reasoning with text, of its message alone."""
    step: list[Event] = [StepFinished(0, "stop")] if committed else []
    parts = parts_of(
        ReasoningStart("a"), ReasoningEnd("a"), TextStart("t"), TextDelta("t", "x"),
        ReasoningStart("b"), ReasoningDelta("b", "1"), ReasoningEnd("b"), ReasoningStart("b"),
        ReasoningDelta("b", "2"), *step,
        ReasoningSummary("m", 1, "old"), ReasoningSummary("m", 1, "two"),
        ReasoningSummary("other", 0, "no"), ReasoningSummary("m", 2, "no"),
    )  # fmt: skip
    assert parts == (TextPart("x"), ReasoningPart("1"), ReasoningPart("2", "two"))


@pytest.mark.parametrize("committed", [False, True])
def test_data_replaces_data_of_its_name_and_id(committed: bool) -> None:
    """A-UI-1."""
    step: list[Event] = [StepFinished(0, "stop")] if committed else []
    parts = parts_of(
        Data("a", 1, "x"), Data("a", 2), *step, Data("b", 3, "x"), Data("a", 4, "x"),
        Data("a", 5, "x", transient=True), Data("a", 6),
    )  # fmt: skip
    assert parts == (
        DataPart("a", 4, "x"), DataPart("a", 2), DataPart("b", 3, "x"), DataPart("a", 6),
    )  # fmt: skip


def test_sources_and_files_are_parts() -> None:
    assert parts_of(Source("s", "https://x", "X"), File("image/png", data="AA==")) == (
        SourcePart("s", "https://x", "X"),
        FilePart("image/png", data="AA=="),
    )


def test_what_only_a_provider_may_see_does_not_cross() -> None:
    """A-META-6: the events on a wire do not have it, so the state has not either."""
    data: Any = {"p": {"secret": 1}}
    events: list[Event] = [
        TextStart("a"), TextDelta("a", "x"), TextEnd("a", data), ReasoningStart("b"),
        ToolCall("c", "add", 1, provider_data=data), Source("s", provider_data=data),
    ]  # fmt: skip
    shown = parts_of(*events)
    assert len(shown) == 3
    assert "secret" not in repr(shown)
    parts = (TextPart("x", data), ReasoningPart("", None, data))
    assert message_view(Message("m", "assistant", parts, "r", THEN)).parts == (TextPart("x"),)


def test_a_reset_voids_what_the_step_streamed() -> None:
    streamed: list[Event] = [TextStart("a"), TextDelta("a", "old"), StepReset("retry")]
    assert parts_of(*streamed) == ()
    assert parts_of(*streamed, TextStart("a"), TextDelta("a", "new")) == (TextPart("new"),)


def test_a_step_that_is_made_again_takes_the_place_of_the_first() -> None:
    """R-13."""
    state = fold(
        None,
        begun(TextStart("a"), TextDelta("a", "old"), StepReset("takeover"), StepStarted(0, "n"),
              TextStart("a"), TextDelta("a", "new"), StepFinished(0, "stop")),
    )  # fmt: skip
    assert [(message.id, message.parts) for message in state.messages[1:]] == [
        ("n", (TextPart("new"),))
    ]


def test_a_message_takes_its_place_when_it_is_committed() -> None:
    message = MessageView("v", "user", (TextPart("ho"),), {}, "s", THEN)
    other = attrs.evolve(QUEUED, message=message)
    streaming = begun(TextStart("a"), TextDelta("a", "x"))
    state = fold(fold(None, streaming), numbered(other, run="s", first=6))
    assert [message.id for message in state.messages] == ["u", "v", "m"]
    state = fold(state, numbered(StepFinished(0, "stop"), first=7))
    assert [message.id for message in state.messages] == ["u", "v", "m"]
    assert not state.open_step


@pytest.mark.parametrize("committed", [False, True])
def test_metadata_is_replaced_whole(committed: bool) -> None:
    step: list[Event] = [StepFinished(0, "stop")] if committed else []
    state = fold(
        None,
        begun(TextStart("a"), TextDelta("a", "x"), MessageMetadata("m", {"a": 1}), *step,
              MessageMetadata("m", {"b": 2}), ThreadUpdated("T", metadata={"c": 3})),
    )  # fmt: skip
    assert state.messages[-1].metadata == {"b": 2}
    assert (state.thread.title, state.thread.metadata) == ("T", {"c": 3})


def test_events_that_the_state_holds_are_passed_over() -> None:
    events = begun(TextStart("a"), TextDelta("a", "x"))
    state = fold(None, events)
    assert fold(state, events) == state


# ---------------------------------------------------------------------------- over real runs


@attrs.frozen
class Bag:
    count: int = 0


def bags() -> Any:
    return MetadataSchemas(private=Bag, public=Bag)


@tool
async def good(ctx: ToolContext[Any], say: str = "") -> str:
    """Say it."""
    ctx.write_data("note", say, id="n")
    ctx.write_data("note", say)
    await anyio.lowlevel.checkpoint()
    ctx.progress(say)
    return say


@tool
async def bad(ctx: ToolContext[Any]) -> str:
    """Fail."""
    ctx.write_data("note", "bad", transient=True)
    raise RuntimeError("no")


class Counts:
    """Writes metadata and data before the first step and after each."""

    @hookimpl
    async def prepare_run(self, run: RunContext[Any]) -> None:
        run.write_data("note", "first", id="n")
        await self._count(run)

    @hookimpl
    async def tool_settled(self, result: ToolResultContext[Any]) -> None:
        await self._count(result.run)

    @hookimpl
    async def wrap_model_call(self, step: StepContext[Any], call_model: Any) -> AsyncIterator[Any]:
        """Take back what was thought at first."""
        async for part in call_model(step.request):
            yield part
            if part.type == "reasoning-end" and self.resets:
                self.resets -= 1
                yield StepReset("again")

    resets = 2

    async def _count(self, run: RunContext[Any]) -> None:
        count = run.metadata.public["count"]
        assert isinstance(count, int)
        patch = MetadataPatch(public={"count": count + 1})
        await run.update_metadata(run=patch, thread=patch, message=patch)


async def label(given: Any) -> str:
    for _ in range(len(given.reasoning) * 3):
        await anyio.lowlevel.checkpoint()
    return str(given.reasoning).upper()


def entitle(given: Any) -> str:
    return f"of {len(given.messages)}"


texts = st.text("ab", min_size=1, max_size=4)
items = st.one_of(
    texts,
    st.builds(Reason, texts),
    st.builds(SaysData, st.just("note"), texts),
    st.builds(Call, st.just("good"), st.builds(lambda say: {"say": say}, texts)),
    st.sampled_from([Call("bad"), Call("good", "{"), Call("good", {"say": 1}), Call("gone")]),
)
ends = st.sampled_from(
    [[], [], [], [Fail()], [Cut()], ["b", Hang()], [Finish("length", Usage(1, 1, 2))]]
)
turns = st.builds(lambda body, end: [*body, *end], st.lists(items, max_size=3), ends)
scripts = st.lists(turns, min_size=1, max_size=3)


async def watched(thread: ThreadHandle, upto: int) -> list[Event]:
    found: list[Event] = []
    if upto:
        async for event in thread.events():
            found.append(event)
            if event.seq >= upto:
                break
    return found


async def story(
    script: list[Any], store: str, plain: bool
) -> tuple[list[Event], list[ThreadState]]:
    """Play two runs; return the log, and the states that were seen, the last one last."""
    agent = define_agent(
        name="a",
        model=ScriptedModel(script, chunk=1),
        tools={"good": good, "bad": bad},
        ui_data={"note": str},
        run_metadata=None if plain else bags(),
        thread_metadata=None if plain else bags(),
        message_metadata=None if plain else bags(),
        thread_titles=not plain and ThreadTitleConfig("refresh", generator=entitle),
        reasoning_summary=not plain and ReasoningSummaryConfig(generator=label),
        lifecycle=None if plain else compose_lifecycle(Counts()),
    )
    states: list[ThreadState] = []
    with anyio.fail_after(30):
        async with create_pai(agents={"a": agent}, store=store) as app:
            thread = app.thread("a", thread_id="t")
            runs = [await thread.send("one"), await thread.send("two")]
            for run in runs:
                hanging = any(isinstance(item, Hang) for turn in script for item in turn)
                events: AsyncIterator[Event] = run.events()
                async for event in events:
                    if event.seq % 3 == 0:
                        states.append(await thread.state())
                    if hanging and event.type == "text-end":
                        await run.cancel("enough")
            while app._core.side._here:  # nothing tells when
                await anyio.lowlevel.checkpoint()
            states.append(await thread.state())
            return await watched(thread, states[-1].cursor), states


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(max_examples=25)
@given(script=scripts, plain=st.booleans(), sizes=st.lists(st.integers(1, 5), min_size=1))
def test_from_wherever_one_begins(
    kind: str, script: list[Any], plain: bool, sizes: list[int]
) -> None:
    """R-25: whatever happens in the runs, every cut point leads to what the store says."""
    with tempfile.TemporaryDirectory() as folder:
        store = "memory:" if kind == "memory" else f"sqlite:///{Path(folder) / 'a.db'}"
        events, states = asyncio.run(story(script, store, plain))
    end = states[-1]
    assert fold(None, events) == end
    for state in states:
        assert fold(state, events[state.cursor :]) == end
    # A fold that goes on from a fold is one fold, however the log is cut.
    so_far: ThreadState | None = None
    at = 0
    while at < len(events):
        size = sizes[at % len(sizes)]
        so_far = fold(so_far, events[at : at + size])
        assert so_far == fold(None, events[: at + size])
        at += size
    assert so_far == end
