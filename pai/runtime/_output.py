"""The structured output of a run: when it is whole, and while it is written (O-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final, Generic, TypeVar

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
from pai.runtime._event_stream import Rests
from pai.runtime._hub import Hub, Watcher
from pai.schema import UNSET, JsonValue, PartialJson, Schema, Unset

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("Grown", "JsonOutput", "TypedOutput", "loaded_output", "output_of")

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


async def output_of(core: Core, key: ThreadKey, run_id: str) -> Output | None:
    """What the run was asked for with its options; what hooks chose, nobody here knows."""
    record = await core.store.run(key, run_id)
    options = {} if record is None else record.request.get("options")
    agent = None if record is None else core.agents.get(record.agent)
    wish = options.get("output") if isinstance(options, dict) else None
    if wish is None or agent is None:
        return None
    try:
        return as_output(wish, agent.definition.outputs)
    except PaiError:
        return None


class Grown:
    """
    What there is of a run's structured output, each time that there is more of it.

    Args:
        hub: The thread's hub.
        after: The number of the event before the run's first.
        run_id: The run.
        rests: See :data:`~pai.runtime._event_stream.Rests`.
        find: What the run was asked for.
    """

    __slots__ = (
        "_ended", "_find", "_known", "_last", "_output", "_partial", "_rests", "_run_id",
        "_values", "_watcher",
    )  # fmt: skip

    def __init__(
        self,
        hub: Hub,
        after: int,
        run_id: str,
        rests: Rests,
        find: Callable[[], Awaitable[Output | None]],
    ) -> None:
        self._watcher: Final = Watcher(hub, after)
        self._run_id: Final = run_id
        self._rests: Final = rests
        self._find: Final = find
        self._known = False
        self._output: Output | None = None
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
        if not self._known:
            self._output, self._known = await self._find(), True
        while True:
            for value in self._values:
                return value
            if self._ended:
                raise StopAsyncIteration
            found: list[tuple[JsonValue, bool]] = []
            for batch in await self._watcher.next():
                if batch.run_id == self._run_id:
                    await self._read(batch.events, found)
            self._values = iter(found)

    async def _read(self, events: list[Event], found: list[tuple[JsonValue, bool]]) -> None:
        written = False
        for event in events:
            kind = type(event)
            if kind is TextDelta:
                self._partial.feed(event.text)  # type: ignore[union-attr]  # it is a delta
                written = True
            elif kind is StepStarted or kind is StepReset:
                output = self._output
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
            value = self._so_far()
            if not isinstance(value, Unset) and value != self._last:
                self._last = value
                found.append((value, False))

    def _so_far(self) -> JsonValue | Unset:
        if self._output is not None:
            return self._output.so_far(self._partial)
        value = self._partial.value()
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
