"""
Stream parts: what a driver or a transform yields during a step.

They are the events of a run at the same time: the loop numbers what comes out of the last
transform and writes it into the thread's log, and nothing is made twice. ``seq`` and ``run_id``
are therefore the log's to set, not the maker's; a part belongs to one place of one log.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from pai.protocol._codec import quote
from pai.protocol._usage import Usage
from pai.schema import UNSET, JsonObject, JsonValue, Unset

__all__ = (
    "Data",
    "EventBase",
    "File",
    "FinishReason",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningStart",
    "Source",
    "StepFinish",
    "StepReset",
    "StreamPart",
    "TextDelta",
    "TextEnd",
    "TextStart",
    "ToolCall",
    "ToolInputDelta",
    "ToolInputStart",
)

FinishReason = Literal["stop", "length", "tool-calls", "content-filter", "error", "other"]
"""Why the model stopped writing."""


@attrs.define
class EventBase:
    """What all events have: a number in the thread's log, from 1, and the run they tell of."""

    seq: int = attrs.field(default=0, init=False, eq=False)
    run_id: str = attrs.field(default="", init=False, eq=False, repr=False)


_inside = {"wire": False}
"""Metadata of a field that is kept with the message, and shown to no client."""


@attrs.define
class TextStart(EventBase):
    """Text begins; *id* is unique within the step."""

    type: ClassVar[Literal["text-start"]] = "text-start"

    id: str


@attrs.define
class TextDelta(EventBase):
    """More of the text *id*."""

    type: ClassVar[Literal["text-delta"]] = "text-delta"

    id: str
    text: str

    def encode(self) -> str:
        return f'{{"type":"text-delta","id":{quote(self.id)},"text":{quote(self.text)}}}'


@attrs.define
class TextEnd(EventBase):
    """The text *id* is whole."""

    type: ClassVar[Literal["text-end"]] = "text-end"

    id: str
    provider_data: JsonObject | None = attrs.field(default=None, metadata=_inside)


@attrs.define
class ReasoningStart(EventBase):
    """Reasoning begins; *id* is unique within the step."""

    type: ClassVar[Literal["reasoning-start"]] = "reasoning-start"

    id: str


@attrs.define
class ReasoningDelta(EventBase):
    """More of the reasoning *id*."""

    type: ClassVar[Literal["reasoning-delta"]] = "reasoning-delta"

    id: str
    text: str

    def encode(self) -> str:
        return f'{{"type":"reasoning-delta","id":{quote(self.id)},"text":{quote(self.text)}}}'


@attrs.define
class ReasoningEnd(EventBase):
    """The reasoning *id* is whole."""

    type: ClassVar[Literal["reasoning-end"]] = "reasoning-end"

    id: str
    provider_data: JsonObject | None = attrs.field(default=None, metadata=_inside)


@attrs.define
class ToolInputStart(EventBase):
    """The model begins to write the input of a call."""

    type: ClassVar[Literal["tool-input-start"]] = "tool-input-start"

    call_id: str
    tool: str


@attrs.define
class ToolInputDelta(EventBase):
    """More of the input's JSON text."""

    type: ClassVar[Literal["tool-input-delta"]] = "tool-input-delta"

    call_id: str
    text: str

    def encode(self) -> str:
        return (
            f'{{"type":"tool-input-delta","callId":{quote(self.call_id)}'
            f',"text":{quote(self.text)}}}'
        )


@attrs.define
class ToolCall(EventBase):
    """
    A call, whole.

    Args:
        call_id: As in its *ToolInputStart*.
        tool: The name the model used.
        input: The parsed input; empty text counts as ``{}``.
        raw: The text, where it was no JSON; *input* is ``None`` then.
        provider_executed: The provider ran it itself; *output* or *error* says what came of it.
        output: The output of a provider-executed call.
        error: The error of a provider-executed call.
        provider_data: What the provider wants back with the call.
        approval: The provider asks before it runs the call, and says this of it: the run waits for
            a decision, and the next request has it (O-3). Such a call is *provider_executed*, and
            has neither output nor error.
    """

    type: ClassVar[Literal["tool-call"]] = "tool-call"

    call_id: str
    tool: str
    input: JsonValue = None
    raw: str | None = None
    provider_executed: bool = False
    output: JsonValue = None
    error: str | None = None
    provider_data: JsonObject | None = attrs.field(default=None, metadata=_inside)
    approval: JsonObject | None = None

    @property
    def run_by_provider(self) -> bool:
        """The provider has run it: nothing is left to do, or to decide."""
        return self.provider_executed and self.approval is None


@attrs.define
class Source(EventBase):
    """A source of the answer; see :class:`~pai.protocol.SourcePart`."""

    type: ClassVar[Literal["source"]] = "source"

    id: str
    url: str | None = None
    title: str | None = None
    media_type: str | None = None
    filename: str | None = None
    provider_data: JsonObject | None = attrs.field(default=None, metadata=_inside)


@attrs.define
class File(EventBase):
    """A file the model made; see :class:`~pai.protocol.FilePart`."""

    type: ClassVar[Literal["file"]] = "file"

    media_type: str
    url: str | None = None
    data: str | None = None
    filename: str | None = None
    provider_data: JsonObject | None = attrs.field(default=None, metadata=_inside)


@attrs.define
class Data(EventBase):
    """An application's data part; one with the *id* of an earlier one replaces it (A-UI-1)."""

    type: ClassVar[Literal["data"]] = "data"

    name: str
    value: JsonValue
    id: str | None = None
    transient: bool = False


@attrs.define
class StepReset(EventBase):
    """What this step has streamed so far is void and is made again (R-13, R-37)."""

    type: ClassVar[Literal["step-reset"]] = "step-reset"

    reason: str


@attrs.define
class StepFinish(EventBase):
    """
    The last part of a step's stream. It is no event itself: the loop answers with *step-finished*.

    Args:
        reason: Why the model stopped.
        usage: What the call used, where the provider said so.
        output: The structured output, from a driver whose profile says ``output_source="event"``;
            from any other it is not looked at (O-11).
    """

    type: ClassVar[Literal["step-finish"]] = "step-finish"

    reason: FinishReason
    usage: Usage | None = None
    output: JsonValue | Unset = attrs.field(default=UNSET, kw_only=True)


StreamPart = (
    TextStart
    | TextDelta
    | TextEnd
    | ReasoningStart
    | ReasoningDelta
    | ReasoningEnd
    | ToolInputStart
    | ToolInputDelta
    | ToolCall
    | Source
    | File
    | Data
    | StepReset
    | StepFinish
)
