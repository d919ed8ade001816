"""Models and plugins for tests of the layers around a step's stream."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from pai import (
    ModelProfile,
    ModelRequest,
    StepFinish,
    TextDelta,
    TextEnd,
    TextStart,
    compose_lifecycle,
    define_agent,
    hookimpl,
)
from pai.testing import ScriptedModel


class Model(ScriptedModel):
    """Says how many of its streams are open."""

    open = 0
    closed = 0

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        self.open += 1
        try:
            stream: Any = super().stream(request)
            async with aclosing(stream) as parts:
                async for part in parts:
                    yield part
        finally:
            self.open -= 1
            self.closed += 1


class Plain:
    """A driver whose stream is an iterator without `aclose`."""

    provider = "plain"
    name = "plain"
    profile = ModelProfile()

    def stream(self, request: ModelRequest) -> Any:
        return PlainIterator(
            [TextStart("t"), TextDelta("t", "hi"), TextEnd("t"), StepFinish("stop")]
        )


class PlainIterator:
    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def __aiter__(self) -> PlainIterator:
        return self

    async def __anext__(self) -> Any:
        if not self.parts:
            raise StopAsyncIteration
        return self.parts.pop(0)


def agent(model: Any, *plugins: object) -> Any:
    return define_agent(name="a", model=model, lifecycle=compose_lifecycle(*plugins))


def text(value: str, id_: str = "x") -> list[Any]:
    return [TextStart(id_), TextDelta(id_, value), TextEnd(id_)]


class Wrap:
    """Wraps the model call with a function."""

    def __init__(self, function: Any, name: str = "wrap") -> None:
        self.name = name
        self.function = function

    @hookimpl
    def wrap_model_call(self, step, call_model):
        return self.function(step, call_model)


class Transform:
    def __init__(self, function: Any, name: str = "transform") -> None:
        self.name = name
        self.function = function

    @hookimpl
    def transform_step_stream(self, step, stream):
        return self.function(step, stream)


def from_inner(step: Any, inner: Any) -> Any:
    """What a layer of either kind reads from."""
    return inner(step.request) if callable(inner) else inner


async def passing(step: Any, inner: Any) -> AsyncIterator[Any]:
    async for part in from_inner(step, inner):
        yield part
