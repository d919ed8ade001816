"""The model of a plugin's trial: it is told what to say."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING

import attrs

from pai.ports import ModelProfile, ModelRequest
from pai.protocol import (
    ReasoningDelta,
    StepFinish,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    Usage,
)

if TYPE_CHECKING:
    import anyio

__all__ = (
    "HOLD",
    "Answer",
    "Answering",
    "Item",
    "calls_add",
    "finish",
    "joined",
    "says",
    "text",
    "text_of",
)


@attrs.frozen
class _Hold:
    """The model says nothing more until it is left."""


HOLD = _Hold()

Item = StreamPart | Exception | _Hold
Answer = Callable[[ModelRequest], Sequence[Item]]
"""What the model says to a request."""


def says(*items: Item) -> Answer:
    """A model that says this, whatever it is asked."""
    return lambda request: items


def text(value: str, id_: str = "t", *, open_: bool = False) -> list[StreamPart]:
    """A text, a letter a part; an open one has no end."""
    parts: list[StreamPart] = [TextStart(id_), *[TextDelta(id_, letter) for letter in value]]
    return parts if open_ else [*parts, TextEnd(id_)]


def finish(reason: str = "stop") -> StepFinish:
    return StepFinish(reason, Usage(3, 2, 5))  # type: ignore[arg-type]  # one of the reasons


def calls_add(call_id: str, a: int, b: int) -> list[StreamPart]:
    return [
        ToolInputStart(call_id, "add"),
        ToolInputDelta(call_id, f'{{"a":{a},'),
        ToolInputDelta(call_id, f'"b":{b}}}'),
        ToolCall(call_id, "add", {"a": a, "b": b}),
    ]


def text_of(parts: Sequence[StreamPart]) -> str:
    return "".join([part.text for part in parts if isinstance(part, TextDelta)])


def joined(parts: Sequence[StreamPart]) -> list[StreamPart]:
    """The parts, with neighbouring deltas of one text, reasoning or input as one."""
    out: list[StreamPart] = []
    for part in parts:
        last = out[-1] if out else None
        if (isinstance(part, TextDelta) and isinstance(last, TextDelta) and part.id == last.id) or (
            isinstance(part, ReasoningDelta)
            and isinstance(last, ReasoningDelta)
            and part.id == last.id
        ):
            out[-1] = type(part)(part.id, last.text + part.text)
        elif (
            isinstance(part, ToolInputDelta)
            and isinstance(last, ToolInputDelta)
            and part.call_id == last.call_id
        ):
            out[-1] = ToolInputDelta(part.call_id, last.text + part.text)
        else:
            out.append(part)
    return out


class Answering:
    """
    A model that says what a function of the request gives.

    Attributes:
        requests: What it was asked.
        said: What it said.
        raised: What it raised.
        open: How many of its streams are open.
        holding: Set when a stream holds.
        released: Lets go of a stream that holds, when nothing else does.
    """

    provider = "kit"
    name = "kit"
    profile = ModelProfile()

    def __init__(self, answer: Answer) -> None:
        import anyio

        self._answer = answer
        self.requests: list[ModelRequest] = []
        self.said: list[StreamPart] = []
        self.raised: list[Exception] = []
        self.open = 0
        self.holding: anyio.Event = anyio.Event()
        self.released: anyio.Event = anyio.Event()

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        self.requests.append(request)
        self.open += 1
        try:
            for item in self._answer(request):
                if isinstance(item, Exception):
                    self.raised.append(item)
                    raise item
                if isinstance(item, _Hold):
                    self.holding.set()
                    await self.released.wait()
                    continue
                self.said.append(item)
                yield item
        finally:
            self.open -= 1
