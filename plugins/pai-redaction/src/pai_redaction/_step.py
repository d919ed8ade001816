"""The stream of a step, without what is to be hidden."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from pai import (
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StepReset,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)
from pai.schema import JsonValue
from pai_redaction._hider import Hider
from pai_redaction._parts import hide_part
from pai_redaction._text import TextInPieces

__all__ = ("hidden_stream",)


async def hidden_stream(
    hider: Hider,
    stream: AsyncIterator[StreamPart],
    inputs: list[JsonValue] | None,
) -> AsyncIterator[StreamPart]:
    """
    Pass on a step's stream.

    Text and reasoning leave as soon as nothing in them may become a match. The input of a call
    leaves when the call is whole: a secret may stand in its JSON behind escapes.

    Args:
        hider: Hides.
        stream: What comes from further left.
        inputs: Gets the inputs of the calls as they leave; ``None``: they are left alone.
    """
    step = _Step(hider, inputs)
    texts, thoughts = step.texts, step.thoughts
    async for part in stream:
        if type(part) is TextDelta:
            if text := _open(hider, texts, part.id).feed(part.text):
                yield part if text == part.text else TextDelta(part.id, text)
        elif type(part) is ReasoningDelta:
            if text := _open(hider, thoughts, part.id).feed(part.text):
                yield part if text == part.text else ReasoningDelta(part.id, text)
        else:
            for each in step.take(part):
                yield each


def _open(hider: Hider, known: dict[str, TextInPieces], id_: str) -> TextInPieces:
    pieces = known.get(id_)
    if pieces is None:
        pieces = known[id_] = hider.pieces()
    return pieces


class _Step:
    """
    What is held back of a step.

    Attributes:
        texts: The open texts by their ids.
        thoughts: The open reasonings by their ids.
    """

    def __init__(self, hider: Hider, inputs: list[JsonValue] | None) -> None:
        self._hider = hider
        self._inputs = inputs
        self._calls: dict[str, list[str]] = {}
        self.texts: dict[str, TextInPieces] = {}
        self.thoughts: dict[str, TextInPieces] = {}

    def take(self, part: StreamPart) -> list[StreamPart]:
        """What leaves for a part that is no delta of text or reasoning."""
        if isinstance(part, (TextStart, ReasoningStart)):
            return [part]
        if isinstance(part, TextEnd):
            return self._end_text(part)
        if isinstance(part, ReasoningEnd):
            return self._end_reasoning(part)
        if isinstance(part, (ToolInputStart, ToolInputDelta)) and self._inputs is None:
            return [part]
        if isinstance(part, ToolInputStart):
            self._calls[part.call_id] = []
            return [part]
        if isinstance(part, ToolInputDelta):
            self._calls.setdefault(part.call_id, []).append(part.text)
            return []
        if isinstance(part, ToolCall):
            return self._call(part)
        if isinstance(part, StepReset):
            self.texts.clear()
            self.thoughts.clear()
            self._calls.clear()
            return [part]
        if isinstance(part, StepFinish):
            return [*self._left_over(), hide_part(self._hider, part)]
        return [hide_part(self._hider, part)]

    def _end_text(self, part: TextEnd) -> list[StreamPart]:
        pieces = self.texts.pop(part.id, None)
        text = "" if pieces is None else pieces.flush()
        changed = pieces is not None and pieces.changed
        data = self._hider.kept(part.provider_data, changed=changed)
        end = part if data is part.provider_data else TextEnd(part.id, data)
        return [TextDelta(part.id, text), end] if text else [end]

    def _end_reasoning(self, part: ReasoningEnd) -> list[StreamPart]:
        pieces = self.thoughts.pop(part.id, None)
        text = "" if pieces is None else pieces.flush()
        changed = pieces is not None and pieces.changed
        data = self._hider.kept(part.provider_data, changed=changed)
        end = part if data is part.provider_data else ReasoningEnd(part.id, data)
        return [ReasoningDelta(part.id, text), end] if text else [end]

    def _call(self, part: ToolCall) -> list[StreamPart]:
        written = "".join(self._calls.pop(part.call_id, ()))
        if self._inputs is None:
            return [hide_part(self._hider, part, but=("input", "raw"))]
        call = hide_part(self._hider, part)
        self._inputs.append(call.input)
        if not written:
            return [call]
        # Its text is made anew even where nothing was hidden: it might say more than it means.
        return [ToolInputDelta(call.call_id, _text_of(call, plain=written == part.input)), call]

    def _left_over(self) -> list[StreamPart]:
        """What a stream that is not well formed, or was cut off, leaves open."""
        out: list[StreamPart] = []
        for id_, pieces in self.texts.items():
            if text := pieces.flush():
                out.append(TextDelta(id_, text))
        for id_, pieces in self.thoughts.items():
            if text := pieces.flush():
                out.append(ReasoningDelta(id_, text))
        for call_id, written in self._calls.items():
            if text := self._hider.raw("".join(written)):
                out.append(ToolInputDelta(call_id, text))
        return out


def _text_of(call: ToolCall, *, plain: bool) -> str:
    """The input's text; that of some calls is no JSON but *plain*."""
    if call.raw is not None:
        return call.raw
    if plain and isinstance(call.input, str):
        return call.input
    return json.dumps(call.input, ensure_ascii=False, separators=(",", ":"))
