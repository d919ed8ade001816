"""The shipped strategies give what they say, and protocol values survive their own codecs."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from pai.loop import repaired
from pai.protocol import (
    Batch,
    Message,
    StepFinish,
    encode_events,
    message_view,
    parts_from_text,
    parts_to_text,
)
from pai.protocol._state import MessageView
from pai.testing import check_stream, strategies


@given(strategies.streams(resets=True))
def test_streams_are_well_formed(stream: list[Any]) -> None:
    check_stream(stream)


@given(strategies.histories())
def test_settled_histories_need_no_repair(history: list[Message]) -> None:
    """R-15: what needs nothing stays the very object."""
    assert all(a is b for a, b in zip(repaired(history), history, strict=True))


@given(strategies.messages(settled=False))
def test_messages_survive_the_store(message: Message) -> None:
    assert parts_from_text(parts_to_text(message.parts)) == message.parts


@given(strategies.messages())
def test_messages_survive_the_wire(message: Message) -> None:
    view = message_view(message)
    assert MessageView.codec.from_json(MessageView.codec.to_json(view)) == view


@given(strategies.streams())
def test_events_survive_their_batch(stream: list[Any]) -> None:
    events = [part for part in stream if not isinstance(part, StepFinish)]
    body = encode_events(events)
    assert Batch(1, "r", body=body, size=len(events)).events == events
    assert [e.seq for e in Batch(7, "r", events).numbered(8)] == list(range(9, 7 + len(events)))
