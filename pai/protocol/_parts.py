"""
What a message is made of.

Every part has a ``type``; in JSON it is the tag. ``provider_data`` is what a provider wants back
word for word when the part is sent to it again (an encrypted reasoning item, say): a mapping by
provider name, stored with the message and never shown to a client.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

import attrs

from pai.protocol._codec import Codec
from pai.schema import JsonObject, JsonValue

__all__ = (
    "INTERRUPTED",
    "CallOutcome",
    "DataPart",
    "FilePart",
    "MessagePart",
    "OutputCodec",
    "OutputPart",
    "ReasoningPart",
    "SourcePart",
    "TextPart",
    "ToolCallPart",
    "part_from_json",
    "part_to_json",
)

CallOutcome = Literal[
    "completed",
    "failed",
    "denied",
    "skipped",
    "cancelled",
    "interrupted",
    "expired",
    "truncated",
]
"""How a tool call ended."""

INTERRUPTED: Final = "The call was interrupted before it finished."
"""What the model is told of a call that has no result (R-14)."""


@attrs.frozen
class TextPart:
    """Text, of the user or of the model."""

    type: ClassVar[Literal["text"]] = "text"

    text: str
    provider_data: JsonObject | None = None


@attrs.frozen
class ReasoningPart:
    """What the model thought, as far as its provider shows it; *summary* is a short label."""

    type: ClassVar[Literal["reasoning"]] = "reasoning"

    text: str
    summary: str | None = None
    provider_data: JsonObject | None = None


@attrs.frozen
class ToolCallPart:
    """
    A call the model made and, once it has settled, how it ended.

    Args:
        call_id: Unique within the run.
        tool: The name the model used.
        input: The input as JSON: what was executed, or what the model sent if nothing was.
        outcome: ``None`` while the call is open.
        output: The output as JSON, for the outcomes *completed* and *skipped*.
        error: What the model is told of a call that ended in another way.
        raw: The input's text, where it was no JSON; *input* is ``None`` then.
        provider_executed: The provider ran the tool; we only keep the record.
        provider_data: See the module.
        approval: What the provider said when it asked before it ran the call (O-3). The call is
            *completed* when it was approved; what came of it is told by a later one.
    """

    type: ClassVar[Literal["tool-call"]] = "tool-call"

    call_id: str
    tool: str
    input: JsonValue = None
    outcome: CallOutcome | None = None
    output: JsonValue = None
    error: str | None = None
    raw: str | None = None
    provider_executed: bool = False
    provider_data: JsonObject | None = None
    approval: JsonObject | None = None

    @property
    def run_by_provider(self) -> bool:
        """The provider ran it without asking: nothing was to be done, or decided."""
        return self.provider_executed and self.approval is None


@attrs.frozen
class FilePart:
    """
    A file, by address or by content.

    Args:
        media_type: E.g. ``"image/png"``.
        url: Where it is; exactly one of *url* and *data* is given.
        data: Its bytes in base64.
        filename: Its name, if it has one.
    """

    type: ClassVar[Literal["file"]] = "file"

    media_type: str
    url: str | None = None
    data: str | None = None
    filename: str | None = None
    provider_data: JsonObject | None = None


@attrs.frozen
class SourcePart:
    """A source the answer rests on: a web page by *url*, else a document by *title*."""

    type: ClassVar[Literal["source"]] = "source"

    id: str
    url: str | None = None
    title: str | None = None
    media_type: str | None = None
    filename: str | None = None
    provider_data: JsonObject | None = None


@attrs.frozen
class DataPart:
    """An application's own part, checked by the schema under *name* in ``ui_data`` (A-UI-1)."""

    name: str
    value: JsonValue
    id: str | None = None

    @property
    def type(self) -> str:
        """``data-`` and the name, as front ends address it."""
        return f"data-{self.name}"


@attrs.frozen
class OutputPart:
    """
    The structured output of a run, checked (O-11).

    Args:
        value: The output as JSON.
        name: Its name among the agent's ``outputs``; ``None`` where a schema was given.
        in_text: The text that it was read from stands before it, so that a model needs not be told
            of it again; a driver may have given it as a value.
    """

    type: ClassVar[Literal["output"]] = "output"

    value: JsonValue
    name: str | None = None
    in_text: bool = True


MessagePart = (
    TextPart | ReasoningPart | ToolCallPart | FilePart | SourcePart | DataPart | OutputPart
)

_CODECS: dict[type, Codec[Any]] = {
    cls: Codec(cls, tag=cls.type)
    for cls in (TextPart, ReasoningPart, ToolCallPart, FilePart, SourcePart, OutputPart)
}
_CODECS[DataPart] = Codec(DataPart, tag="data")
_BY_TAG: dict[str, Codec[Any]] = {codec.tag: codec for codec in _CODECS.values()}


def part_to_json(part: MessagePart) -> JsonObject:
    """The part as it is stored."""
    return _CODECS[type(part)].to_json(part)


def part_from_json(value: Mapping[str, Any]) -> MessagePart:
    """The part a stored row describes."""
    text = value.get("type")
    codec = _BY_TAG.get(text) if isinstance(text, str) else None
    if codec is None:
        # A part of a later version stays visible as what it is.
        return DataPart("unknown-part", dict(value))
    part: MessagePart = codec.from_json(value)
    return part


class OutputCodec:
    """The JSON form of an output within an event."""

    def to_json(self, value: OutputPart) -> JsonObject:
        return part_to_json(value)

    def from_json(self, value: Mapping[str, Any]) -> MessagePart:
        return part_from_json(value)
