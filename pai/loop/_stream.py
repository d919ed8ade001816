"""The stream of a step: the model's, through the layers that plugins put around it."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

from pai.contexts import StepContext
from pai.errors import ModelError, PluginError
from pai.lifecycle import Hook, broken_hook
from pai.loop._episode import Episode
from pai.ports import ModelRequest
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

__all__ = ("Layers", "synthetic")


class Layers:
    """
    The layers of one step, outermost last, and their closing.

    ``open()`` gives the stream the loop reads: lists straight from the driver where no plugin
    stands between, single parts where one does. ``aclose()`` closes every layer (R-28).
    """

    __slots__ = ("_episode", "_guards", "_opened", "_own", "_step")

    def __init__(self, episode: Episode, step: StepContext[Any]) -> None:
        self._episode = episode
        self._step = step
        self._guards: list[Any] = []
        self._opened: list[Any] = []
        # Errors of the model pass through plugins as what they are.
        self._own: BaseException | None = None

    def open(
        self, source: AsyncIterator[StreamPart] | None = None
    ) -> AsyncIterator[StreamPart | list[StreamPart]]:
        """
        The canonical stream of the step.

        Args:
            source: A synthetic answer in place of the model's.
        """
        chains = self._episode.agent.chains
        if not chains.transform_step_stream and (source is not None or not chains.wrap_model_call):
            stream = source or self._driver(self._step.request)
            self._opened.append(stream)
            return stream
        singles = source or self._wrapped()
        for hook in chains.transform_step_stream:
            singles = self._layer(hook, singles)
        return singles

    def _driver(self, request: ModelRequest) -> AsyncIterator[StreamPart | list[StreamPart]]:
        return self._episode.resolve(request.model).stream(request)

    def _wrapped(self) -> AsyncIterator[StreamPart]:
        call: Callable[[ModelRequest], AsyncIterator[StreamPart]] = self._call_model
        for hook in reversed(self._episode.agent.chains.wrap_model_call):
            call = self._wrap(hook, call)
        return call(self._step.request)

    def _wrap(
        self, hook: Hook, inner: Callable[[ModelRequest], AsyncIterator[StreamPart]]
    ) -> Callable[[ModelRequest], AsyncIterator[StreamPart]]:
        def call(request: ModelRequest) -> AsyncIterator[StreamPart]:
            # What an outer layer asks for is what an inner one sees as its step's request.
            step = self._step if request is self._step.request else self._step.asking(request)
            return self._guard(hook, lambda: hook.call(step, inner))

        return call

    def _layer(
        self, hook: Hook, inner: AsyncIterator[StreamPart]
    ) -> AsyncIterator[StreamPart]:
        return self._guard(hook, lambda: hook.call(self._step, inner))

    def _call_model(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        stream = self._singles(request)
        self._opened.append(stream)
        return stream

    async def _singles(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        try:
            stream = self._driver(request)
            self._opened.append(stream)
            async for item in stream:
                if type(item) is list:
                    for part in item:
                        yield part
                else:
                    yield item  # type: ignore[misc]  # no list
        except BaseException as error:
            self._own = error
            raise

    def _guard(self, hook: Hook, make: Callable[[], Any]) -> AsyncIterator[StreamPart]:
        stream = self._guarded(hook, make)
        self._guards.append(stream)
        return stream

    async def _guarded(self, hook: Hook, make: Callable[[], Any]) -> AsyncIterator[StreamPart]:
        """A plugin's layer: what it raises itself carries its name (R-33)."""
        try:
            stream = make()
            if inspect.isawaitable(stream):
                stream = await stream
            self._opened.append(stream)
            async for part in stream:
                yield part
        except (PluginError, ModelError):
            raise
        except Exception as error:
            if error is self._own:
                raise
            raise broken_hook(hook, error) from error

    async def aclose(self) -> None:
        """Close every layer, the outermost first, so that each can still close what it holds."""
        for stream in (*reversed(self._guards), *self._opened):
            close = getattr(stream, "aclose", None)
            if close is not None:
                await close()


async def synthetic(parts: tuple[MessagePart, ...]) -> AsyncIterator[StreamPart]:
    """An answer that no model made, as a stream: it takes the way of all others (R-26)."""
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
            yield Data(part.name, part.value, part.id)
        else:
            raise TypeError("Respond takes text, reasoning, files, sources and data, no tool calls")
    yield StepFinish("stop")
