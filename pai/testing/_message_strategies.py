"""Hypothesis strategies for what threads hold: parts, messages, histories, metadata, streams."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from pai.protocol import (
    DataPart,
    FilePart,
    Message,
    MessagePart,
    Metadata,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningPart,
    ReasoningStart,
    Source,
    SourcePart,
    StepFinish,
    StepReset,
    StreamPart,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ToolCall,
    ToolCallPart,
    ToolInputDelta,
    ToolInputStart,
    Usage,
    new_id,
)
from pai.schema import JsonValue, dump_json
from pai.testing._schema_strategies import json_values

__all__ = ("histories", "messages", "metadata", "parts", "streams")

_OUTCOMES = ["completed", "failed", "denied", "skipped", "cancelled", "interrupted", "truncated"]
_EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


def _texts() -> SearchStrategy[str]:
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@st.composite
def _calls(draw: DrawFn, *, settled: bool) -> ToolCallPart:
    outcome: Any = draw(st.sampled_from(_OUTCOMES if settled else [*_OUTCOMES, None]))
    done = outcome in ("completed", "skipped")
    return ToolCallPart(
        new_id(),
        draw(st.sampled_from(["add", "search", "send_mail"])),
        draw(st.dictionaries(st.sampled_from("abc"), json_values(3), max_size=2)),
        outcome,
        draw(json_values(3)) if done else None,
        None if done or outcome is None else draw(_texts()),
    )


def parts(*, settled: bool = True) -> SearchStrategy[MessagePart]:
    """
    Parts of an assistant's message.

    Args:
        settled: Whether all calls among them have an outcome.
    """
    return st.one_of(
        _texts().map(TextPart),
        _texts().map(ReasoningPart),
        _calls(settled=settled),
        st.builds(DataPart, st.just("note"), json_values(3)),
        st.builds(SourcePart, _texts(), st.just("https://example.org")),
        st.builds(FilePart, st.just("image/png"), st.just("https://example.org/a.png")),
    )


def metadata() -> SearchStrategy[Metadata]:
    """Both bags of something, with any JSON in them."""
    bag: SearchStrategy[dict[str, JsonValue]] = st.dictionaries(
        st.sampled_from(["tag", "count", "note"]), json_values(4), max_size=2
    )
    return st.builds(Metadata, bag, bag)


@st.composite
def messages(draw: DrawFn, *, settled: bool = True) -> Message:
    """
    Messages of either role.

    Args:
        settled: Whether all calls in them have an outcome.
    """
    role: Any = draw(st.sampled_from(["user", "assistant"]))
    content: list[Any] = (
        draw(st.lists(_texts().map(TextPart), min_size=1, max_size=2))
        if role == "user"
        else draw(st.lists(parts(settled=settled), min_size=1, max_size=4))
    )
    return Message(new_id(), role, tuple(content), "run", _EPOCH, draw(metadata()))


@st.composite
def histories(draw: DrawFn, *, max_turns: int = 5, settled: bool = True) -> list[Message]:
    """
    Histories as a thread holds them: each turn a user's message and the steps that answer it.

    Args:
        max_turns: Turns at most.
        settled: Whether all calls have an outcome.
    """
    found: list[Message] = []
    for turn in range(draw(st.integers(0, max_turns))):
        run_id = f"run-{turn}"
        question = draw(_texts())
        found.append(Message(new_id(), "user", (TextPart(question),), run_id, _EPOCH))
        for _ in range(draw(st.integers(0, 3))):
            content = draw(st.lists(parts(settled=settled), min_size=1, max_size=4))
            found.append(Message(new_id(), "assistant", tuple(content), run_id, _EPOCH))
    return found


@st.composite
def streams(draw: DrawFn, *, resets: bool = False) -> list[StreamPart]:
    """
    Whole, well-formed streams of a step, as a driver gives them.

    Args:
        resets: Whether a *StepReset* may come in the middle.
    """
    stream: list[StreamPart] = []
    calls = False
    for number in range(draw(st.integers(0, 5))):
        kind = draw(st.sampled_from(["text", "reasoning", "call", "source"]))
        if kind == "source":
            stream.append(Source(f"s{number}", "https://example.org"))
            continue
        chunks = draw(st.lists(_texts(), max_size=4))
        if kind == "text":
            stream.append(TextStart(f"t{number}"))
            stream += [TextDelta(f"t{number}", chunk) for chunk in chunks]
            stream.append(TextEnd(f"t{number}"))
        elif kind == "reasoning":
            stream.append(ReasoningStart(f"r{number}"))
            stream += [ReasoningDelta(f"r{number}", chunk) for chunk in chunks]
            stream.append(ReasoningEnd(f"r{number}"))
        else:
            calls = True
            stream += _called(draw)
    if resets and stream and draw(st.booleans()):
        stream = [*stream, StepReset("made again"), TextStart("again"), TextEnd("again")]
        calls = False
    stream.append(StepFinish("tool-calls" if calls else "stop", Usage(1, 1, 2)))
    return stream


def _called(draw: DrawFn) -> list[StreamPart]:
    value: JsonValue = draw(st.dictionaries(st.sampled_from("ab"), json_values(2), max_size=2))
    text = dump_json(value)
    cut = draw(st.integers(0, len(text)))
    call_id = new_id()
    deltas: list[StreamPart] = [
        ToolInputDelta(call_id, piece) for piece in (text[:cut], text[cut:]) if piece
    ]
    return [ToolInputStart(call_id, "add"), *deltas, ToolCall(call_id, "add", value)]
