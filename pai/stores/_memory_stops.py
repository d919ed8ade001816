"""Runs that end without a worker, with those of their subagents, in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from pai.protocol import (
    INTERRUPTED,
    CallOutcome,
    Leaves,
    RunEnd,
    RunRecord,
    Stopped,
    ThreadKey,
    child_id,
)
from pai.stores._memory_thread import MemoryThread, copied_run
from pai.stores._rules import cancelled_end, leaves_subagents

__all__ = ("StopMethods",)


class StopMethods:
    """The method of the store that cancels, and what others of it share with that."""

    _clock: Callable[[], float]
    _threads: dict[ThreadKey, MemoryThread]
    _busy: dict[ThreadKey, MemoryThread]

    async def cancel(
        self, key: ThreadKey, run_id: str, reason: str, leaves: Leaves | None = None
    ) -> Sequence[Stopped]:
        stopped: list[Stopped] = []
        self._stop(key, run_id, reason, leaves, stopped)
        return stopped

    def _stop(
        self, key: ThreadKey, run_id: str, reason: str, leaves: Leaves | None, found: list[Stopped]
    ) -> bool:
        """Cancel a run; whether there is one of this id."""
        here = self._threads.get(key)
        run = None if here is None else here.runs.get(run_id)
        if here is None or run is None:
            return False
        if run.status == "running":
            if run.cancel is None:
                run.cancel = reason
            found.append(Stopped(key, run_id, reason))
        elif run.status in ("queued", "suspended"):
            run.cancel = reason
            was_active = run is here.active
            end = cancelled_end(reason, run.usage)
            self.end_idle(here, run, end, "interrupted", INTERRUPTED, leaves, found)
            if here.active is None and not here.queue:
                here.ready = None
                del self._busy[key]
            elif was_active:
                here.ready = self._clock()
        return True

    def end_idle(
        self,
        here: MemoryThread,
        run: RunRecord,
        end: RunEnd,
        outcome: CallOutcome,
        error: str,
        leaves: Leaves | None,
        found: list[Stopped],
    ) -> None:
        """End a run that no worker holds, and with it the runs of its subagents."""
        key = here.head.key
        jobs = () if leaves is None else leaves(copied_run(run))
        here.jobs.write(jobs, None, self._clock())
        batch, calls = here.end_idle(run, end, outcome, error)
        why = end.reason or end.status
        found.append(Stopped(key, run.id, why, batch, jobs))
        left = [call.call_id for call in calls if leaves_subagents(call)]
        self.stop_subagents(key, run.id, left, why, leaves, found)

    def stop_subagents(
        self,
        key: ThreadKey,
        run_id: str,
        calls: Iterable[str],
        reason: str,
        leaves: Leaves | None,
        found: list[Stopped],
    ) -> None:
        """Cancel the runs of subagents that calls have started."""
        for call_id in calls:
            for place in count():
                own = child_id(key.thread_id, run_id, call_id, place)
                if not self._stop(ThreadKey(key.partition, own), own, reason, leaves, found):
                    break
