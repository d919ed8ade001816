"""Iterating over events and text: plain iterators, which may be left at any point."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import Final

from pai.protocol import Event, RunFinished, RunSuspended, TextDelta
from pai.runtime._hub import Hub, Watcher

__all__ = ("EventStream", "Rests", "TextStream")

Rests = Callable[[int | None], Awaitable[bool]]
"""
Whether a run rests: it waits since the suspension that ended the episode of this number.

With ``None``, whether it waits or has settled: asked where a watcher may stand behind its last event.
"""


class EventStream:
    """
    Events of a thread, or of one run of it.

    Args:
        hub: The thread's hub.
        after: Only events numbered above this.
        run_id: Only this run's, up to where it rests; ``None``: all of the thread, without an end.
        rests: See :data:`Rests`; needed with *run_id*.
        agent: Only if the thread is this agent's; ``None``: that is known.
    """

    __slots__ = ("_after", "_ended", "_episode", "_events", "_rests", "_run_id", "_watcher")

    def __init__(
        self,
        hub: Hub,
        after: int,
        run_id: str | None = None,
        rests: Rests | None = None,
        agent: str | None = None,
    ) -> None:
        self._watcher: Final = Watcher(hub, after, agent)
        self._after: Final = after
        self._run_id: Final = run_id
        self._rests: Final = rests
        self._events: Iterator[Event] = iter(())
        self._ended = False
        # The episode whose suspension was told last.
        self._episode: int | None = None

    def __aiter__(self) -> EventStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ended:
            if self._episode is not None and self._rests is not None:
                episode, self._episode = self._episode, None
                if await self._rests(episode):
                    self._ended = True
                    break
            for event in self._events:
                if self._run_id is not None:
                    if type(event) is RunFinished:
                        self._ended = True
                    elif type(event) is RunSuspended:
                        self._episode = event.episode
                return event
            await self._more()
        raise StopAsyncIteration

    async def _more(self) -> None:
        batches = await self._watcher.ready()
        if not batches:
            if self._rests is not None and await self._rests(None):
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
    The text deltas of one run, up to where it rests.

    Args:
        hub: The thread's hub.
        after: The number of the event before the first to look at.
        run_id: The run.
        rests: See :data:`Rests`.
    """

    __slots__ = ("_deltas", "_ended", "_rests", "_run_id", "_watcher")

    def __init__(self, hub: Hub, after: int, run_id: str, rests: Rests) -> None:
        self._watcher: Final = Watcher(hub, after)
        self._run_id: Final = run_id
        self._rests: Final = rests
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
                for event in batch.events[batch.retold :]:
                    if type(event) is TextDelta:
                        deltas.append(event.text)
                    elif type(event) is RunFinished:
                        self._ended = True
                    elif type(event) is RunSuspended:
                        self._ended = await self._rests(event.episode)
            self._deltas = iter(deltas)
