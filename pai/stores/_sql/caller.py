"""How a thread of ours hands a result to the task that waits for it, on asyncio and on trio."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import trio

__all__ = ("Callers", "Done", "Slot", "current_callers")


class Slot(Protocol):
    """Where one result goes."""

    def cancelled(self) -> bool:
        """Whether nobody waits any more."""


Done = tuple[Slot, Any, BaseException | None]
"""A slot with its value, or its error."""


class Callers(Protocol):
    """The tasks of one event loop. A hop there and back costs half of a worker thread's."""

    def slot(self) -> Slot: ...

    async def wait(self, slot: Any) -> Any:
        """Wait for the slot's result; a cancelled wait marks the slot."""

    def post(self, done: list[Done]) -> None:
        """From another thread: hand results over."""


def current_callers() -> Callers:
    """The tasks of the loop that runs here."""
    # A loop of asyncio may run below trio's, so trio is asked first; it is loaded if it runs.
    trio = sys.modules.get("trio")
    if trio is not None and trio.lowlevel.in_trio_run():
        return _TrioCallers()
    return _AsyncioCallers()


class _AsyncioCallers:
    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()

    def slot(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    async def wait(self, slot: asyncio.Future[Any]) -> Any:
        return await slot

    def post(self, done: list[Done]) -> None:
        try:
            self._loop.call_soon_threadsafe(self._resolve, done)
        except RuntimeError:
            # The loop has been closed: nobody waits.
            return

    @staticmethod
    def _resolve(done: list[Any]) -> None:
        for slot, value, error in done:
            if slot.done():
                continue
            if error is None:
                slot.set_result(value)
            else:
                slot.set_exception(error)


class _TrioSlot:
    __slots__ = ("abandoned", "task")

    def __init__(self, task: trio.lowlevel.Task) -> None:
        self.task = task
        self.abandoned = False

    def cancelled(self) -> bool:
        return self.abandoned


class _TrioCallers:
    def __init__(self) -> None:
        import outcome
        import trio

        self._low = trio.lowlevel
        self._aborted: trio.lowlevel.Abort = trio.lowlevel.Abort.SUCCEEDED
        self._gone = trio.RunFinishedError
        self._token = trio.lowlevel.current_trio_token()
        self._value, self._error = outcome.Value, outcome.Error

    def slot(self) -> _TrioSlot:
        return _TrioSlot(self._low.current_task())

    async def wait(self, slot: _TrioSlot) -> Any:
        def abort(_: object) -> trio.lowlevel.Abort:
            slot.abandoned = True
            return self._aborted

        return await self._low.wait_task_rescheduled(abort)

    def post(self, done: list[Done]) -> None:
        try:
            self._token.run_sync_soon(self._resolve, done)
        except self._gone:
            return

    def _resolve(self, done: list[Any]) -> None:
        for slot, value, error in done:
            if not slot.abandoned:
                result = self._value(value) if error is None else self._error(error)
                self._low.reschedule(slot.task, result)
