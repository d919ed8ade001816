"""A handle on a run: watch it, wait for it, cancel it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final, cast

from pai.errors import ThreadNotFound
from pai.protocol import (
    Event,
    RunFinished,
    TextDelta,
    ThreadKey,
    message_view,
)
from pai.runtime._result import RunResult

if TYPE_CHECKING:
    from pai.runtime._core import Core

__all__ = ("RunHandle",)

_SETTLED = frozenset({"completed", "failed", "cancelled", "blocked"})


class RunHandle:
    """
    A run of a thread. It goes on whether anybody watches or not (R-8).

    Attributes:
        id: The run's id.
        thread_id: Its thread.
    """

    def __init__(self, core: Core, key: ThreadKey, run_id: str, first: int) -> None:
        self._core: Final = core
        self._key: Final = key
        self._first: Final = first
        self.id: Final = run_id
        self.thread_id: Final = key.thread_id

    async def events(self, after: int | None = None) -> AsyncIterator[Event]:
        """
        The run's events, from its first; it ends when the run has settled.

        Args:
            after: Only events numbered above this; 0 is the beginning.
        """
        start = self._first - 1 if after is None else after
        with self._core.hub(self._key) as hub:
            async for batches in hub.watch(start, idle=True):
                if not batches and await self._is_over():
                    return
                for batch in batches:
                    if batch.run_id != self.id:
                        continue
                    for event in batch.numbered(start):
                        yield event
                        if type(event) is RunFinished:
                            return

    async def _is_over(self) -> bool:
        """Whether nothing more can come: asked only where a watcher starts behind the end."""
        if self._core.works_on(self._key, self.id):
            return False
        record = await self._core.store.run(self._key, self.id)
        return record is None or record.status in _SETTLED

    async def text(self) -> AsyncIterator[str]:
        """The deltas of the run's text, as they come."""
        own = self.id
        with self._core.hub(self._key) as hub:
            async for batches in hub.watch(self._first - 1):
                for batch in batches:
                    if batch.run_id == own:
                        for event in batch.events:
                            kind = type(event)
                            if kind is TextDelta:
                                yield event.text  # type: ignore[union-attr]  # its type was asked
                            elif kind is RunFinished:
                                return

    async def result(self) -> RunResult:
        """
        Wait for the end. It never raises for a run that failed: see ``raise_for_status()``.

        Raises:
            ThreadNotFound: The thread was deleted meanwhile.
        """
        finished: RunFinished | None = None
        with self._core.hub(self._key) as hub:
            async for batches in hub.watch(self._first - 1):
                for batch in batches:
                    if batch.run_id == self.id and type(batch.events[-1]) is RunFinished:
                        finished = cast("RunFinished", batch.events[-1])
                if finished is not None:
                    break
        if finished is None:
            raise ThreadNotFound(self.thread_id)
        message = None
        for item in await self._core.store.run_messages(self._key, self.id):
            if item.role == "assistant":
                message = message_view(item)
        return RunResult(
            self.id,
            finished.status,
            finished.outcome,
            finished.reason,
            finished.stop_reason,
            None,
            message,
            finished.usage,
            (),
            finished.error,
        )

    async def cancel(self, reason: str = "cancelled") -> None:
        """
        Cancel the run, from any process; one that has ended stays as it is (R-8).

        Args:
            reason: Kept on the run (O-1).
        """
        await self._core.cancel(self._key, self.id, reason)
