"""The layers that plugins put around a step's stream, and their closing (R-28)."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from typing import Any

import attrs

from pai.contexts import StepContext
from pai.errors import IncompleteStream, LeaseLost, ModelError, PluginError
from pai.lifecycle import Hook, broken_hook, wrong_answer
from pai.loop._episode import Episode
from pai.loop._history import repaired
from pai.loop._mid_conversation import checked_changes
from pai.loop._output import tell
from pai.loop._overridden import overridden
from pai.loop._retry import Retried
from pai.ports import ModelRequest
from pai.protocol import ModelSettings, StepFinish, StreamPart

__all__ = ("Layers",)

_SETTINGS = tuple([field.name for field in attrs.fields(ModelSettings)])
# These go through a plugin's layer as they are.
_PASSING = (PluginError, ModelError, LeaseLost)


class _Layer:
    """
    One layer: what a plugin made, or a call of the model.

    Attributes:
        hook: Whose it is; ``None`` for the model, and for an answer in its place.
        inner: The layers it reads from: the last one it asked for comes last.
        last: Its last part, once it has come to its end.
        stream: What comes out of it. Closing it closes what is inside.
    """

    __slots__ = ("hook", "inner", "last", "stream", "whole")

    stream: AsyncIterator[StreamPart]

    def __init__(self, hook: Hook | None) -> None:
        self.hook = hook
        self.inner: list[_Layer] = []
        self.last: StreamPart | None = None
        self.whole = False

    @property
    def unfinished(self) -> bool:
        """It came to its end without a *StepFinish*."""
        return self.whole and type(self.last) is not StepFinish


class Layers:
    """
    The layers of one step.

    ``open()`` gives the stream the loop reads: lists straight from the driver where no plugin
    stands between, single parts where one does. A layer that ends, or is closed, closes what is
    inside, so that each can still close what it holds before; ``abandon()`` closes all.
    """

    __slots__ = ("_episode", "_outermost", "_own", "_step", "_stream")

    def __init__(self, episode: Episode, step: StepContext[Any]) -> None:
        self._episode = episode
        self._step = step
        self._stream: object = None
        self._outermost: _Layer | None = None
        # Errors of the model pass through plugins as what they are.
        self._own: list[BaseException] = []

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
            stream = self._stream = source or self._driver(self._step.request)
            return stream
        if source is None:
            layer = self._call(0, self._step.request)
        else:
            layer = _Layer(None)
            layer.stream = source
        for hook in chains.transform_step_stream:
            layer = self._transform(hook, layer)
        self._outermost, self._stream = layer, layer.stream
        return layer.stream

    def _driver(self, request: ModelRequest) -> AsyncIterator[StreamPart | list[StreamPart]]:
        settings = request.settings
        if type(settings) is not ModelSettings:
            # Only what ModelSettings names goes on: nothing about transport (A-MODEL-2).
            allowed = {name: getattr(settings, name) for name in _SETTINGS}
            request = attrs.evolve(request, settings=ModelSettings(**allowed))
        if request.messages is not self._step.request.messages:
            # A plugin made this history, so it is repaired here.
            request = attrs.evolve(request, messages=tuple(repaired(request.messages)))
        driver, retry = self._episode.resolve(request.model), request.retry
        if request.provider_options:
            self._episode.overridden = overridden(request, driver.provider)
        if request.output is not None or self._episode.output is not None:
            request = tell(self._episode, request, driver)
        if request.mid_conversation is not None:
            request = checked_changes(request, self._step.request, driver)
        if retry is None or retry.max_retries == 0 or self._step.kind == "output":
            return driver.stream(request)
        return Retried(lambda: driver.stream(request), retry)

    # ------------------------------------------------------------------ making layers

    def _transform(self, hook: Hook, inner: _Layer) -> _Layer:
        layer = _Layer(hook)
        layer.inner.append(inner)
        layer.stream = self._guarded(layer, hook, lambda: hook.call(self._step, inner.stream))
        return layer

    def _call(self, depth: int, request: ModelRequest) -> _Layer:
        """The layer at *depth* of the onion; behind the last one is the model."""
        chain = self._episode.agent.chains.wrap_model_call
        if depth == len(chain):
            layer = _Layer(None)
            layer.stream = self._singles(layer, request)
        else:
            hook = chain[depth]
            layer = _Layer(hook)
            # What an outer layer asks for is what an inner one sees as its step's request.
            own = self._step.request
            step = self._step if request is own else self._step.asking(request)
            call_model = self._inner(layer, depth + 1)
            layer.stream = self._guarded(layer, hook, lambda: hook.call(step, call_model))
        return layer

    def _inner(
        self, layer: _Layer, depth: int
    ) -> Callable[[ModelRequest], AsyncIterator[StreamPart]]:
        def call_model(request: ModelRequest) -> AsyncIterator[StreamPart]:
            if not isinstance(request, ModelRequest):
                raise TypeError("call_model takes a request: step.request, or one evolved from it")
            inner = self._call(depth, request)
            layer.inner.append(inner)
            return inner.stream

        return call_model

    async def _singles(self, layer: _Layer, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """The model's stream, part by part."""
        stream: object = None
        part: StreamPart | None = None
        try:
            stream = source = self._driver(request)
            async for item in source:
                if type(item) is list:
                    for part in item:
                        yield part
                else:
                    part = item  # type: ignore[assignment]  # no list
                    yield part  # type: ignore[misc]  # it is set
            layer.last, layer.whole = part, True
        except Exception as error:
            self._own.append(error)
            raise
        finally:
            await _close(stream)

    async def _guarded(
        self, layer: _Layer, hook: Hook, make: Callable[[], Any]
    ) -> AsyncIterator[StreamPart]:
        """A plugin's layer: what it raises itself carries its name (R-33)."""
        stream: Any = None
        part: StreamPart | None = None
        try:
            try:
                stream = make()
                if inspect.isawaitable(stream):
                    stream = await stream
                if not hasattr(stream, "__aiter__"):
                    raise wrong_answer(hook, stream, "an async iterator of stream parts")
                async for part in stream:
                    yield part
                layer.last, layer.whole = part, True
            finally:
                await _close(stream, *layer.inner)
        except _PASSING:
            raise
        except Exception as error:
            if any(error is own for own in self._own):
                raise
            raise broken_hook(hook, error) from error

    # ------------------------------------------------------------------ the end

    def unfinished(self, provider: str) -> PluginError | ModelError:
        """Whose fault it is that the stream ended without a *StepFinish*."""
        layer = self._outermost
        while layer is not None and layer.hook is not None:
            inner = layer.inner[-1] if layer.inner else None
            if inner is None or not inner.unfinished:
                hook = layer.hook
                return PluginError(
                    f"plugin {hook.plugin!r} ended the stream of {hook.phase} without a StepFinish:"
                    " pass on the one it gets, or yield one",
                    plugin=hook.plugin,
                    distribution=hook.distribution,
                    phase=hook.phase,
                )
            layer = inner
        return IncompleteStream(
            "the stream of a step ended without saying that it had finished", provider=provider
        )

    async def abandon(self) -> None:
        """Close every layer of a step that has failed; what is raised meanwhile is reported."""
        try:
            await _close(self._stream)
        except Exception as error:
            run = self._episode.claimed.run
            self._episode.report(error, {"run_id": run.id, "step": self._step.index})


async def _close(stream: object, *inner: _Layer) -> None:
    """Close a stream, then the layers inside, whatever it raises."""
    close = getattr(stream, "aclose", None)
    try:
        if close is not None:
            await close()
    finally:
        if inner:
            await _close(inner[0].stream, *inner[1:])
