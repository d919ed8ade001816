"""What the plugin remembers during an episode."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pai import Message, Source, StepFinish, StepReset, StreamPart, TextDelta
from pai_rag._citations import cited_numbers
from pai_rag._passage import Passage
from pai_rag._tail import source_of, with_passages

__all__ = ("Turn",)


class Turn:
    """
    The passages that were found for a message, and which of them were cited.

    Attributes:
        asked: Whether the model was asked in this step: not if a plugin answered in its place.
    """

    __slots__ = ("_before", "_cited", "_passages", "_shown", "_uncited", "asked")

    def __init__(self, message: Message, passages: tuple[Passage, ...], *, uncited: bool) -> None:
        self._before = message
        self._passages = passages
        self._shown = with_passages(message, passages) if passages else message
        self._cited = False
        self._uncited = uncited
        self.asked = False

    def __bool__(self) -> bool:
        """Whether anything was found."""
        return bool(self._passages)

    def shown(self, message: Message) -> Message:
        """*message* with the passages: the same object as long as the message is the same."""
        if message is not self._before:
            self._before = message
            self._shown = with_passages(message, self._passages)
        return self._shown

    async def cited(self, stream: AsyncIterator[StreamPart]) -> AsyncIterator[StreamPart]:
        """The step's stream, and before its end the sources that it cites."""
        text: list[str] = []
        async for part in stream:
            if type(part) is TextDelta:
                text.append(part.text)
            elif type(part) is StepReset:
                text.clear()
            elif type(part) is StepFinish and self.asked:
                for source in self._sources("".join(text), part.reason):
                    yield source
            yield part

    def _sources(self, text: str, reason: str) -> list[Source]:
        cited = cited_numbers(text, len(self._passages))
        if cited:
            self._cited = True
        elif self._uncited and not self._cited and text and reason != "tool-calls":
            # What the answer rests on was not said: it may be any of them.
            cited = tuple(range(1, len(self._passages) + 1))
        # Each step has a message of its own, so one that is cited again is a source again.
        return [source_of(number, self._passages[number - 1]) for number in cited]
