"""Assembling a step's stream into the parts of its message."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

from pai.errors import ModelError
from pai.protocol import (
    Data,
    DataPart,
    Event,
    File,
    FilePart,
    MessagePart,
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
    new_id,
)
from pai.schema import JsonObject

__all__ = ("Assembly",)


class _Open:
    """A part of the message that is being written."""

    __slots__ = ("chunks", "closed", "id", "kind", "part", "provider_data", "tool")

    def __init__(self, kind: Literal["text", "reasoning", "call", "other"], id_: str) -> None:
        self.kind = kind
        self.id = id_
        self.chunks: list[str] = []
        self.closed = False
        self.provider_data: JsonObject | None = None
        self.tool = ""
        self.part: MessagePart | None = None


class Watch(Protocol):
    """Wants to know which parts of reasoning close."""

    written: bool

    def closed(self, order: list[_Open]) -> None: ...

    def reset(self) -> None: ...


class Assembly:
    """
    The message of a step as it grows.

    Args:
        provider: Who is blamed for a stream that is not well formed.
        used: Ids of calls of earlier steps. Some servers count from 0 again in each answer; such
            a call gets a fresh id, since a call is known by its id within the run.
        beside: Data that was written beside the stream, and comes before what it brings.
        check: Looks at data that the stream brings.

    Attributes:
        finish: The *StepFinish*, once it came.
        calls: Whole calls for us to run or to decide on, in order.
        labels: Is told of each part of reasoning that closes, and of resets.
    """

    __slots__ = (
        "_beside",
        "_calls",
        "_check",
        "_data",
        "_order",
        "_reasonings",
        "_renamed",
        "_texts",
        "_used",
        "calls",
        "finish",
        "labels",
        "provider",
    )  # fmt: skip

    def __init__(
        self,
        provider: str,
        used: set[str],
        beside: Sequence[Data] = (),
        check: Callable[[Data], None] | None = None,
    ) -> None:
        self._check = check
        self.provider = provider
        self.finish: StepFinish | None = None
        self.labels: Watch | None = None
        self._used = used
        self._renamed: dict[str, str] = {}
        self._beside = list(beside)
        self._clear()
        for data in beside:
            self._put_data(data)

    def _clear(self) -> None:
        self._order: list[_Open] = []
        self._texts: dict[str, _Open] = {}
        self._reasonings: dict[str, _Open] = {}
        self._calls: dict[str, _Open] = {}
        self._data: dict[tuple[str, str], _Open] = {}
        self.calls: list[ToolCall] = []

    def _malformed(self, part: StreamPart) -> ModelError:
        # Whatever a plugin yields gets here.
        kind = getattr(part, "type", type(part).__name__)
        return ModelError(
            f"a {kind} came out of place in the stream of a step",
            provider=self.provider,
            code="malformed_stream",
        )

    def feed(self, parts: list[StreamPart]) -> list[Event]:
        """
        Take parts in; return those that are events, which is all but the *StepFinish*.

        A *StepReset* takes along what the stream brought. Data that was written beside it stays,
        and is shown again.

        Raises:
            ModelError: The stream is not well formed.
        """
        texts = self._texts
        for part in parts:
            kind = type(part)
            try:
                if kind is TextDelta:
                    texts[part.id].chunks.append(part.text)  # type: ignore[union-attr, index]
                    continue
                if kind is ToolInputDelta:
                    self._calls[part.call_id].chunks.append(part.text)  # type: ignore[union-attr]
                    continue
                if kind is ReasoningDelta:
                    self._reasonings[part.id].chunks.append(part.text)  # type: ignore[union-attr, index]
                    continue
            except KeyError:
                self._renamed_delta(part)
                continue
            self._rare(part)
            texts = self._texts
            if kind is StepReset and self._beside:
                parts = _after(part, parts, self._beside)
                for data in self._beside:
                    self._put_data(data)
        if type(parts[-1]) is StepFinish:
            return parts[:-1]  # type: ignore[return-value]  # nothing else is no event
        return parts  # type: ignore[return-value]

    def _renamed_delta(self, part: StreamPart) -> None:
        if isinstance(part, ToolInputDelta):
            fresh = self._renamed.get(part.call_id, "")
            if fresh in self._calls:
                part.call_id = fresh
                self._calls[fresh].chunks.append(part.text)
                return
        raise self._malformed(part)

    def _own_id(self, part: ToolInputStart | ToolCall) -> None:
        """Give the call an id that no earlier step of the run has used."""
        if part.call_id in self._renamed:
            part.call_id = self._renamed[part.call_id]
        elif part.call_id in self._used:
            fresh = self._renamed[part.call_id] = new_id()
            part.call_id = fresh

    def _rare(self, part: StreamPart) -> None:
        if self.finish is not None:
            raise self._malformed(part)
        if isinstance(part, (ToolInputStart, ToolCall)):
            self._own_id(part)
        if isinstance(part, TextStart):
            self._open(part, "text", part.id, self._texts)
        elif isinstance(part, ReasoningStart):
            self._open(part, "reasoning", part.id, self._reasonings)
        elif isinstance(part, (TextEnd, ReasoningEnd)):
            known = self._texts if isinstance(part, TextEnd) else self._reasonings
            item = known.pop(part.id, None)
            if item is None:
                raise self._malformed(part)
            item.closed = True
            item.provider_data = part.provider_data
            if self.labels is not None and item.kind == "reasoning":
                self.labels.closed(self._order)
        elif isinstance(part, ToolInputStart):
            self._open(part, "call", part.call_id, self._calls).tool = part.tool
        elif isinstance(part, ToolCall):
            item = self._calls.get(part.call_id)
            if item is None:
                item = self._open(part, "call", part.call_id, self._calls)
            elif item.closed:
                raise self._malformed(part)
            item.closed = True
            item.tool = part.tool
            item.part = _call_part(part)
            if not part.run_by_provider:
                self.calls.append(part)
        elif isinstance(part, StepFinish):
            self.finish = part
            # A delta that comes after it finds nothing that is open.
            self._texts, self._reasonings, self._calls = {}, {}, {}
        elif isinstance(part, StepReset):
            self._clear()
            if self.labels is not None:
                self.labels.reset()
        elif isinstance(part, Data):
            if self._check is not None:
                self._check(part)
            if not part.transient:
                self._put_data(part)
        elif isinstance(part, (Source, File)):
            self._put(_other_part(part))
        else:
            raise self._malformed(part)

    def write(self, data: Data) -> None:
        """Take in data that is written beside the stream."""
        self._beside.append(data)
        self._put_data(data)

    def _put_data(self, data: Data) -> None:
        known = None if data.id is None else self._data.get((data.name, data.id))
        if known is not None:
            known.part = DataPart(data.name, data.value, data.id)
            return
        item = self._put(DataPart(data.name, data.value, data.id))
        if data.id is not None:
            self._data[data.name, data.id] = item

    def _put(self, part: MessagePart) -> _Open:
        item = _Open("other", "")
        item.closed = True
        item.part = part
        self._order.append(item)
        return item

    def _open(
        self,
        part: StreamPart,
        kind: Literal["text", "reasoning", "call"],
        id_: str,
        known: dict[str, _Open],
    ) -> _Open:
        if id_ in known:
            raise self._malformed(part)
        item = known[id_] = _Open(kind, id_)
        self._order.append(item)
        return item

    def restart(self, reason: str) -> list[Event]:
        """Begin anew, after what came was whole: the events that say so."""
        self.finish = None
        return self.feed([StepReset(reason)])

    def close(self) -> list[Event]:
        """
        Close what is open, so that the message is whole as far as it came (R-14).

        Returns:
            The events that say so. Calls whose input was cut off become whole ones with the text
            as *raw*.
        """
        events: list[Event] = []
        for item in self._order:
            if item.closed:
                continue
            item.closed = True
            if item.kind == "text":
                events.append(TextEnd(item.id))
            elif item.kind == "reasoning":
                events.append(ReasoningEnd(item.id))
            else:
                call = ToolCall(item.id, item.tool, None, raw="".join(item.chunks))
                item.part = _call_part(call)
                self.calls.append(call)
                events.append(call)
        if self.labels is not None:
            self.labels.closed(self._order)
        return events

    def parts(self) -> list[MessagePart]:
        """The message's parts so far; empty texts are left out."""
        found: list[MessagePart] = []
        for item in self._order:
            if item.part is not None:
                found.append(item.part)
            elif item.kind == "text":
                if text := "".join(item.chunks):
                    found.append(TextPart(text, item.provider_data))
            elif item.kind == "reasoning":
                text = "".join(item.chunks)
                if text or item.provider_data:
                    found.append(ReasoningPart(text, None, item.provider_data))
        return found


def _call_part(call: ToolCall) -> ToolCallPart:
    outcome: Literal["completed", "failed"] | None = None
    if call.run_by_provider:
        outcome = "failed" if call.error is not None else "completed"
    return ToolCallPart(
        call.call_id,
        call.tool,
        call.input,
        outcome,
        call.output,
        call.error,
        call.raw,
        call.provider_executed,
        call.provider_data,
        call.approval,
    )


def _other_part(part: Source | File) -> MessagePart:
    if isinstance(part, Source):
        return SourcePart(
            part.id, part.url, part.title, part.media_type, part.filename, part.provider_data
        )
    return FilePart(part.media_type, part.url, part.data, part.filename, part.provider_data)


def _after(reset: StreamPart, parts: list[StreamPart], beside: Sequence[Data]) -> list[StreamPart]:
    """*parts*, with data that is shown again after the reset."""
    at = next(index for index, part in enumerate(parts) if part is reset) + 1
    again = [Data(data.name, data.value, data.id) for data in beside]
    return [*parts[:at], *again, *parts[at:]]
