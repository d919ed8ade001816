"""A handle on a run: watch it, wait for it, cancel it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from pai.protocol import (
    Event,
    RunFinished,
    ThreadKey,
    message_view,
)
from pai.runtime._event_stream import EventStream, TextStream
from pai.runtime._hub import Watcher
from pai.runtime._output import OutputStream, loaded_output, output_of
from pai.runtime._result import RunResult
from pai.schema import JsonValue

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
        self._before: Final = first - 1
        # What this process hands on from here is kept for this handle.
        self._hub: Final = core.hub(key)
        self.id: Final = run_id
        self.thread_id: Final = key.thread_id

    def events(self, after: int | None = None) -> AsyncIterator[Event]:
        """
        The run's events, from its first; it ends when the run has settled.

        Args:
            after: Only events numbered above this; 0 is the beginning.
        """
        start = self._before if after is None else after
        return EventStream(self._hub, start, self.id, self._is_over)

    async def _is_over(self) -> bool:
        if self._core.works_on(self._key, self.id):
            return False
        record = await self._core.store.run(self._key, self.id)
        return record is None or record.status in _SETTLED

    def text(self) -> AsyncIterator[str]:
        """The deltas of the run's text, as they come."""
        return TextStream(self._hub, self._before, self.id)

    def partial_output(self) -> AsyncIterator[JsonValue]:
        """
        The structured output as it is written, as JSON: each value has more of it (O-11).

        Texts and lists grow at their ends, objects by their keys; the last value is the whole
        output, checked. Where a step is made anew, or an answer did not fit, it begins anew.
        """
        core, key, id_ = self._core, self._key, self.id
        return OutputStream(self._hub, self._before, id_, lambda: output_of(core, key, id_))

    async def result(self) -> RunResult:
        """Wait for the end. It never raises for a run that failed: see ``raise_for_status()``."""
        finished: RunFinished | None = None
        watcher = Watcher(self._hub, self._before)
        while finished is None:
            for batch in await watcher.next():
                if batch.run_id == self.id and type(batch.events[-1]) is RunFinished:
                    finished = batch.events[-1]
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
            await loaded_output(self._core, self._key, self.id, message),
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
