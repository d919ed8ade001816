"""Histories read back are repaired, whatever they look like (R-15)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given, strategies as st

from pai import (
    DataPart,
    Message,
    ReasoningPart,
    SourcePart,
    StepPatch,
    TextPart,
    ToolCallPart,
    define_agent,
    hookimpl,
)
from pai.loop import repaired
from pai.protocol import INTERRUPTED
from pai.testing import ScriptedModel

from ..played import play

texts = st.text(max_size=5)
outcomes = st.sampled_from(
    [None, "completed", "failed", "denied", "skipped", "cancelled", "interrupted", "truncated"]
)
calls = st.builds(
    lambda call_id, outcome, raw, hosted: ToolCallPart(
        call_id,
        "look",
        None if raw else {"a": 1},
        outcome,
        "out" if outcome in ("completed", "skipped") else None,
        None if outcome in (None, "completed", "skipped") else "error",
        raw,
        hosted,
    ),
    st.sampled_from("abc"),
    outcomes,
    st.sampled_from([None, '{"a":']),
    st.booleans(),
)
parts = st.one_of(
    st.builds(TextPart, texts),
    st.builds(ReasoningPart, texts),
    st.builds(DataPart, st.just("note"), texts),
    st.builds(SourcePart, texts),
    calls,
)


def made(role: Any, contents: list[Any]) -> Message:
    return Message("m", role, tuple(contents), "r", datetime.now(UTC))


messages = st.builds(made, st.sampled_from(["user", "assistant"]), st.lists(parts, max_size=6))
histories = st.lists(messages, max_size=5)


def content(history: list[Message]) -> list[Any]:
    return [(message.id, message.role, message.parts) for message in history]


def cut(history: list[Message], at: int) -> list[Message]:
    """The history as it was when *at* parts had been written."""
    out = []
    for message in history:
        kept = message.parts[: max(at, 0)]
        at -= len(message.parts)
        out.append(attrs.evolve(message, parts=kept))
        if at <= 0:
            break
    return out


@given(histories, st.integers(0, 30))
def test_repair_is_deterministic_and_idempotent(history: list[Message], at: int) -> None:
    """R-15: over random cut points."""
    history = cut(history, at)
    once = repaired(history)
    assert content(once) == content(repaired(history))
    twice = repaired(once)
    assert all(a is b for a, b in zip(once, twice, strict=True))


@given(histories, st.integers(0, 30))
def test_a_repaired_history_is_one_that_providers_accept(history: list[Message], at: int) -> None:
    """R-14, R-15: no open call, no empty message, no id twice in a message."""
    for message in repaired(cut(history, at)):
        assert message.parts
        found = [part for part in message.parts if isinstance(part, ToolCallPart)]
        assert all(part.outcome is not None for part in found)
        assert len({part.call_id for part in found}) == len(found)


@given(histories)
def test_repair_adds_and_removes_whole_parts_alone(history: list[Message]) -> None:
    """R-15: it never edits text, nor the order."""
    by_parts = iter([message for message in history if message.parts])
    for message in repaired(history):
        before = next(by_parts)
        rest = iter(before.parts)
        for part in message.parts:
            for other in rest:
                if part == other:
                    break
                if (
                    isinstance(part, ToolCallPart)
                    and part.error == INTERRUPTED
                    and other == attrs.evolve(part, outcome=None, error=None)
                ):
                    break
                # What is left out is a second call of one id.
                assert isinstance(other, ToolCallPart)
            else:
                pytest.fail(f"{part} was not there before")
        unchanged = [p for p in message.parts if not isinstance(p, ToolCallPart)]
        assert unchanged == [p for p in before.parts if not isinstance(p, ToolCallPart)]


def test_a_message_that_needs_nothing_is_the_very_object() -> None:
    message = made("assistant", [TextPart("hi"), ToolCallPart("c", "look", {}, "completed")])
    assert repaired([message])[0] is message


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["step", "wrap"])
async def test_messages_of_a_plugin_are_repaired_before_the_call(where: str) -> None:
    """R-15: before each model call."""
    torn = [made("user", [TextPart("hi")]), made("assistant", [ToolCallPart("c", "look", {})])]

    class Edits:
        @hookimpl
        def prepare_model_step(self, step):
            return StepPatch(messages=torn) if where == "step" else None

        @hookimpl
        def wrap_model_call(self, step, call_model):
            request = attrs.evolve(step.request, messages=torn) if where == "wrap" else step.request
            return call_model(request)

    model = ScriptedModel(["hi"])
    await play(define_agent(name="a", model=model, lifecycle=Edits()))
    call = model.requests[0].messages[-1].parts[0]
    assert isinstance(call, ToolCallPart)
    assert (call.outcome, call.error) == ("interrupted", INTERRUPTED)
