"""An answer that no model made, as a stream: it takes the way of all others (R-26)."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pai.loop._aside import registered
from pai.loop._episode import Episode
from pai.protocol import (
    Data,
    DataPart,
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
    StreamPart,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
)

__all__ = ("synthetic",)


async def synthetic(episode: Episode, parts: tuple[MessagePart, ...]) -> AsyncIterator[StreamPart]:
    """
    The stream of a ``Respond``.

    Raises:
        InvalidInput: A data part is not registered, or does not fit (A-UI-2).
    """
    for index, part in enumerate(parts):
        if isinstance(part, TextPart):
            yield TextStart(f"t{index}")
            if part.text:
                yield TextDelta(f"t{index}", part.text)
            yield TextEnd(f"t{index}")
        elif isinstance(part, ReasoningPart):
            yield ReasoningStart(f"r{index}")
            if part.text:
                yield ReasoningDelta(f"r{index}", part.text)
            yield ReasoningEnd(f"r{index}")
        elif isinstance(part, SourcePart):
            yield Source(part.id, part.url, part.title, part.media_type, part.filename)
        elif isinstance(part, FilePart):
            yield File(part.media_type, part.url, part.data, part.filename)
        elif isinstance(part, DataPart):
            yield Data(part.name, registered(episode, part.name, part.value), part.id)
    yield StepFinish("stop")
