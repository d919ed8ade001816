"""The structured output of a run: when it is whole, and while it is written (O-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Final

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
from pai.schema import JsonValue, PartialJson

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("OutputStream", "loaded_output", "output_of")


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


class OutputStream:
    """
    The structured output of a run as it grows, as JSON.

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
        self._last: JsonValue = None
        self._values: Iterator[JsonValue] = iter(())
        self._ended = False

    def __aiter__(self) -> OutputStream:
        return self

    async def __anext__(self) -> JsonValue:
        if not self._known:
            self._output, self._known = await self._find(), True
        while True:
            for value in self._values:
                return value
            if self._ended:
                raise StopAsyncIteration
            found: list[JsonValue] = []
            for batch in await self._watcher.next():
                if batch.run_id == self._run_id:
                    await self._read(batch.events, found)
            self._values = iter(found)

    async def _read(self, events: list[Event], found: list[JsonValue]) -> None:
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
                self._add(event.output.value, found)
                written = False
            elif kind is RunFinished:
                self._ended = True
            elif isinstance(event, RunSuspended):
                self._ended = await self._rests(event.episode)
        # Once for all that came together: looking at the value costs as much as it is long.
        if written and not self._partial.broken:
            partial, output = self._partial, self._output
            self._add(partial.value() if output is None else output.so_far(partial), found)

    def _add(self, value: JsonValue, found: list[JsonValue]) -> None:
        if value is not None and value != self._last:
            self._last = value
            found.append(value)
