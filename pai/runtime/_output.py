"""The structured output of a run: when it is whole, and while it is written (O-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

import attrs

from pai.definition import Output, as_output
from pai.errors import PaiError
from pai.protocol import (
    Event,
    MessageView,
    OutputPart,
    RunFinished,
    RunSuspended,
    StepFinished,
    StepReset,
    StepStarted,
    TextDelta,
    ThreadKey,
)
from pai.runtime._drivers import writes_output
from pai.runtime._event_stream import Rests
from pai.runtime._hub import Hub, Watcher
from pai.schema import UNSET, JsonValue, PartialJson, Schema, Unset

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("Grown", "JsonOutput", "TypedOutput", "expected_of", "loaded_output")

T = TypeVar("T")


async def loaded_output(
    core: Core, key: ThreadKey, run_id: str, message: MessageView | None
) -> object:
    """The output that the run's last message holds: an instance, where its name leads to a class."""
    last = message.parts[-1] if message is not None and message.parts else None
    if not isinstance(last, OutputPart):
        return None
    record = await core.store.run(key, run_id)
    agent = None if record is None else core.agents.get(record.agent)
    known = None if agent is None or last.name is None else agent.definition.outputs.get(last.name)
    if known is None:
        return last.value
    try:
        return known.load(last.value)
    except PaiError:
        # It was checked by an earlier version of the class: it stays what it is.
        return last.value


@attrs.frozen
class Expected:
    """
    What is known of a run's structured output beforehand; what hooks chose, nobody here knows.

    Args:
        output: What the run was asked for with its options.
        in_text: Its text may be the output.
    """

    output: Output | None = None
    in_text: bool = True


async def expected_of(core: Core, key: ThreadKey, run_id: str) -> Expected:
    """What a run was asked for, and how it comes."""
    record = await core.store.run(key, run_id)
    agent = None if record is None else core.agents.get(record.agent)
    if record is None or agent is None:
        return Expected()
    given = record.request.get("options")
    options = given if isinstance(given, dict) else {}
    in_text = writes_output(agent.definition, options.get("model"))
    wish = options.get("output")
    if wish is None:
        return Expected(None, in_text)
    try:
        return Expected(as_output(wish, agent.definition.outputs), in_text)
    except PaiError:
        return Expected(None, in_text)


class Grown:
    """
    What there is of a run's structured output, each time that there is more of it.

    Args:
        hub: The thread's hub.
        after: The number of the event before the run's first.
        run_id: The run.
        rests: See :data:`~pai.runtime._event_stream.Rests`.
        find: What is known of the output.
    """

    __slots__ = (
        "_ended", "_expected", "_find", "_last", "_partial", "_rests", "_run_id",
        "_values", "_watcher",
    )  # fmt: skip

    def __init__(
        self,
        hub: Hub,
        after: int,
        run_id: str,
        rests: Rests,
        find: Callable[[], Awaitable[Expected]],
    ) -> None:
        self._watcher: Final = Watcher(hub, after)
        self._run_id: Final = run_id
        self._rests: Final = rests
        self._find: Final = find
        self._expected: Expected | None = None
        self._partial = PartialJson()
        self._last: JsonValue | Unset = UNSET
        self._values: Iterator[tuple[JsonValue, bool]] = iter(())
        self._ended = False

    async def next(self) -> tuple[JsonValue, bool]:
        """
        The next value, and whether it is the checked one.

        Raises:
            StopAsyncIteration: The run rests.
        """
        if self._expected is None:
            self._expected = await self._find()
        while True:
            for value in self._values:
                return value
            if self._ended:
                raise StopAsyncIteration
            found: list[tuple[JsonValue, bool]] = []
            for batch in await self._watcher.next():
                if batch.run_id == self._run_id:
                    await self._read(batch.events, self._expected, found)
            self._values = iter(found)

    async def _read(
        self, events: list[Event], expected: Expected, found: list[tuple[JsonValue, bool]]
    ) -> None:
        output, written = expected.output, False
        for event in events:
            kind = type(event)
            if kind is TextDelta:
                if expected.in_text:
                    self._partial.feed(event.text)  # type: ignore[union-attr]  # it is a delta
                    written = True
            elif kind is StepStarted or kind is StepReset:
                self._partial = PartialJson() if output is None else output.partial()
            elif isinstance(event, StepFinished) and event.output is not None:
                found.append((event.output.value, True))
                self._last = event.output.value
                written = False
            elif kind is RunFinished:
                self._ended = True
            elif isinstance(event, RunSuspended):
                self._ended = await self._rests(event.episode)
        # Once for all that came together: looking at the value costs as much as it is long.
        if written and not self._partial.broken:
            value = _so_far(output, self._partial)
            if not isinstance(value, Unset) and value != self._last:
                self._last = value
                found.append((value, False))


def _so_far(output: Output | None, partial: PartialJson) -> JsonValue | Unset:
    if output is not None:
        return output.so_far(partial)
    value = partial.value()
    return UNSET if value is None else value


class JsonOutput:
    """
    The structured output of a run as it grows, as JSON.

    Args:
        grown: What there is of it.
    """

    __slots__ = ("_grown", "_last")

    def __init__(self, grown: Grown) -> None:
        self._grown: Final = grown
        self._last: JsonValue | Unset = UNSET

    def __aiter__(self) -> JsonOutput:
        return self

    async def __anext__(self) -> JsonValue:
        while True:
            value, _ = await self._grown.next()
            if value != self._last:
                self._last = value
                return value


class TypedOutput(Generic[T]):
    """
    The structured output of a run as it grows, as objects of a type.

    Args:
        grown: What there is of it.
        schema: The schema of the type.
    """

    __slots__ = ("_grown", "_schema")

    def __init__(self, grown: Grown, schema: Schema[T]) -> None:
        self._grown: Final = grown
        self._schema: Final = schema

    def __aiter__(self) -> TypedOutput[T]:
        return self

    async def __anext__(self) -> T:
        while True:
            value, whole = await self._grown.next()
            if whole:
                return self._schema.parse(value, at="output")
            made = self._schema.parse_partial(value)
            if not isinstance(made, Unset):
                return made
