"""The message of a step under way, as its events tell it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import attrs

from pai.protocol._events import (
    CallError,
    CallOutput,
    MessageMetadata,
    ReasoningSummary,
    StepStarted,
)
from pai.protocol._parts import (
    CallOutcome,
    DataPart,
    FilePart,
    MessagePart,
    ReasoningPart,
    SourcePart,
    TextPart,
    ToolCallPart,
)
from pai.protocol._state import MessageView
from pai.protocol._stream import (
    Data,
    EventBase,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from pai.schema import JsonObject

__all__ = ("EPOCH", "StepFold")

EPOCH = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
"""When something happened whose event does not say so."""

_Key = tuple[str, ...]


class _Entry:
    """
    A part of the message.

    Attributes:
        key: By what later events name it.
        events: What made it, its deltas left out.
        chunks: The texts of its deltas.
        delta: What a delta of it is made from.
        part: The part, where it is whole from the start.
        label: The label of a part of reasoning.
    """

    __slots__ = ("chunks", "delta", "events", "key", "label", "part")

    def __init__(self, key: _Key, event: EventBase, part: MessagePart | None = None) -> None:
        self.key = key
        self.events = [event]
        self.chunks: list[str] = []
        self.delta: Any = None
        self.part = part
        self.label: str | None = None


class StepFold:
    """
    A step under way.

    Args:
        started: Its first event.
    """

    def __init__(self, started: StepStarted) -> None:
        self._started = started
        self.message_id = started.message_id
        self.run_id = started.run_id
        self._metadata: MessageMetadata | None = None
        self.clear()

    @classmethod
    def of(cls, events: Iterable[EventBase]) -> StepFold:
        """What :meth:`events` told of."""
        first, *others = events
        assert isinstance(first, StepStarted)
        step = cls(first)
        for event in others:
            step.add(event)
        return step

    def clear(self) -> None:
        """What it has streamed is void."""
        self._order: list[_Entry] = []
        self._open: dict[_Key, _Entry] = {}

    def has_call(self, call_id: str) -> bool:
        return ("call", call_id) in self._open

    def add(self, event: Any) -> None:
        """Take an event in; one that says nothing about the message is passed over."""
        kind = type(event)
        if kind in _DELTAS:
            name = _DELTAS[kind]
            id_ = event.call_id if kind is ToolInputDelta else event.id
            entry = self._open.get((name, id_))
            if entry is not None:
                entry.chunks.append(event.text)
                entry.delta = event
        elif kind is TextStart or kind is ReasoningStart:
            self._put(_Entry(("text" if kind is TextStart else "reasoning", event.id), event))
        elif kind is TextEnd or kind is ReasoningEnd:
            # Its id is free again.
            name = "text" if kind is TextEnd else "reasoning"
            entry = self._open.pop((name, event.id), None)
            if entry is not None:
                entry.events.append(kind(event.id))
        elif kind is ToolInputStart:
            self._put(_Entry(("call", event.call_id), event))
        elif kind is ToolCall:
            self._call(event)
        elif kind is CallOutput or kind is CallError:
            entry = self._open[("call", event.call_id)]
            assert isinstance(entry.part, ToolCallPart)
            entry.events.append(event)
            entry.part = self.ended(entry.part, event)
        elif kind is Data:
            part = DataPart(event.name, event.value, event.id)
            key = ("data", event.name, event.id) if event.id is not None else ()
            entry = self._open.get(key) if key else None
            if entry is None:
                self._put(_Entry(key, event, part))
            else:
                entry.part, entry.events = part, [event]
        elif kind is Source:
            self._put(
                _Entry((), event, SourcePart(
                    event.id, event.url, event.title, event.media_type, event.filename
                ))
            )  # fmt: skip
        elif kind is File:
            self._put(
                _Entry((), event, FilePart(
                    event.media_type, event.url, event.data, event.filename
                ))
            )  # fmt: skip
        elif kind is MessageMetadata:
            self._metadata = event
        elif kind is ReasoningSummary:
            self._label(event)

    def _label(self, event: ReasoningSummary) -> None:
        ordinal = event.ordinal
        for entry in self._order:
            if type(entry.events[0]) is ReasoningStart and any(entry.chunks):
                if ordinal == 0:
                    entry.events = [e for e in entry.events if type(e) is not ReasoningSummary]
                    entry.events.append(event)
                    entry.label = event.summary
                    return
                ordinal -= 1

    def _put(self, entry: _Entry) -> None:
        self._order.append(entry)
        if entry.key:
            self._open[entry.key] = entry

    def _call(self, event: ToolCall) -> None:
        entry = self._open.get(("call", event.call_id))
        if entry is None:
            entry = _Entry(("call", event.call_id), event)
            self._put(entry)
        else:
            entry.events.append(event)
        if isinstance(entry.part, ToolCallPart):
            # The second one says with what it is executed.
            entry.part = attrs.evolve(entry.part, input=event.input)
            return
        outcome: CallOutcome | None = None
        if event.run_by_provider:
            outcome = "failed" if event.error is not None else "completed"
        entry.chunks.clear()
        entry.part = ToolCallPart(
            event.call_id, event.tool, event.input, outcome, event.output, event.error, event.raw,
            event.provider_executed, approval=event.approval,
        )  # fmt: skip

    @staticmethod
    def ended(part: ToolCallPart, event: CallOutput | CallError) -> ToolCallPart:
        """The call with its end."""
        if isinstance(event, CallOutput):
            return attrs.evolve(part, outcome=event.outcome, output=event.output, error=None)
        return attrs.evolve(part, outcome=event.outcome, output=None, error=event.error)

    def view(self) -> MessageView:
        """The message, as far as it came."""
        metadata: JsonObject = {} if self._metadata is None else self._metadata.metadata
        return MessageView(
            self.message_id,
            "assistant",
            tuple([part for entry in self._order if (part := _part(entry)) is not None]),
            metadata,
            self.run_id,
            self._started.created_at or EPOCH,
        )

    def events(self) -> tuple[EventBase, ...]:
        """The shortest events that make this step: the deltas of a part are one."""
        found: list[EventBase] = [self._started]
        if self._metadata is not None:
            found.append(self._metadata)
        for entry in self._order:
            first, *others = entry.events
            found.append(first)
            if entry.chunks:
                joined = attrs.evolve(entry.delta, text="".join(entry.chunks))
                joined.run_id = self.run_id
                found.append(joined)
            found += others
        return tuple(found)


def _part(entry: _Entry) -> MessagePart | None:
    """The part, if there is anything to show of it."""
    if entry.part is not None:
        return entry.part
    text = "".join(entry.chunks)
    first = entry.events[0]
    if isinstance(first, ToolInputStart):
        # Its input is being written.
        return ToolCallPart(first.call_id, first.tool, raw=text)
    if not text:
        return None
    return TextPart(text) if isinstance(first, TextStart) else ReasoningPart(text, entry.label)


_DELTAS: dict[type, str] = {
    TextDelta: "text",
    ReasoningDelta: "reasoning",
    ToolInputDelta: "call",
}
