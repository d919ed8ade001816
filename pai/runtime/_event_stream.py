"""Iterating over events and text: plain iterators, which may be left at any point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from pai.protocol import Event, RunFinished, TextDelta
from pai.runtime._hub import Hub, Watcher

__all__ = ("EventStream", "TextStream")

IsOver = Callable[[], Awaitable[bool]]
"""Whether a run has settled; asked where a watcher may stand behind its last event."""


class EventStream:
    """
    Events of a thread, or of one run of it.

    Args:
        hub: The thread's hub.
        after: Only events numbered above this.
        run_id: Only this run's, up to its end; ``None``: all of the thread, without an end.
        is_over: See :data:`IsOver`; needed with *run_id*.
    """

    __slots__ = ("_after", "_ended", "_events", "_is_over", "_run_id", "_watcher")

    def __init__(
        self, hub: Hub, after: int, run_id: str | None = None, is_over: IsOver | None = None
    ) -> None:
        self._watcher: Final = Watcher(hub, after)
        self._after: Final = after
        self._run_id: Final = run_id
        self._is_over: Final = is_over
        self._events: Iterator[Event] = iter(())
        self._ended = False

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ended:
            for event in self._events:
                if type(event) is RunFinished and self._run_id is not None:
                    self._ended = True
                return event
            await self._more()
        raise StopAsyncIteration

    async def _more(self) -> None:
        batches = await self._watcher.ready()
        if not batches:
            if self._is_over is not None and await self._is_over():
                # The end may have been written meanwhile, and not have reached the hub yet.
                batches = await self._watcher.stored()
                if not batches:
                    self._ended = True
                    return
            else:
                batches = await self._watcher.next()
        own, after = self._run_id, self._after
        self._events = iter(
            [
                event
                for batch in batches
                if own is None or batch.run_id == own
                for event in batch.numbered(after)
            ]
        )


class TextStream:
    """
    The text deltas of one run.

    Args:
        hub: The thread's hub.
        after: The number of the event before the run's first.
        run_id: The run.
    """

    __slots__ = ("_deltas", "_ended", "_run_id", "_watcher")

    def __init__(self, hub: Hub, after: int, run_id: str) -> None:
        self._watcher: Final = Watcher(hub, after)
        self._run_id: Final = run_id
        self._deltas: Iterator[str] = iter(())
        self._ended = False

    def __aiter__(self) -> TextStream:
        return self

    async def __anext__(self) -> str:
        while True:
            for delta in self._deltas:
                return delta
            if self._ended:
                raise StopAsyncIteration
            deltas: list[str] = []
            for batch in await self._watcher.next():
                if batch.run_id != self._run_id:
                    continue
                for event in batch.events:
                    if type(event) is TextDelta:
                        deltas.append(event.text)
                    elif type(event) is RunFinished:
                        self._ended = True
            self._deltas = iter(deltas)
