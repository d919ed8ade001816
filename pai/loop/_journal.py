"""The journal: a run's way into the thread's log."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from time import monotonic
from typing import Any, Final

import anyio

from pai.contexts import Records
from pai.errors import InvalidInput, LeaseLost
from pai.loop._log import last_step, used_before
from pai.loop._store_log import written
from pai.ports import RecordScope, RunHold, Store
from pai.protocol import (
    Batch,
    Commit,
    Committed,
    Event,
    JobRecord,
    Leaves,
    Stopped,
    ThreadKey,
    Usage,
)
from pai.schema import JsonValue

__all__ = ("Journal",)

COALESCE = 0.02
"""Seconds between two batches of a step under way, once the first part has gone out (R-29a)."""

STRETCHED = 0.25
"""The same when the store is behind."""


class Journal:
    """
    Events of one run on their way to the store and the watchers.

    The first events of a step go at once, later ones are coalesced; the loop never waits for a
    write while the model's stream has more, only at a commit. A store whose writes cost nothing
    gets them as they come.

    Args:
        store: Where they go.
        key: The thread.
        run_id: The run.
        fence: The fence of its lease.
        publish: Hands a committed batch to the watchers.
        spawn: Starts a task beside the run.
        begin: Works on side jobs that were written.
        job_lease: Seconds that this process has for a side job it writes.
        leaves: The side jobs that runs leave which end with this one.
        stopped: Is told of those runs.
    """

    __slots__ = (
        "_begin", "_done", "_ended", "_failed", "_interval", "_jobs", "_last", "_leaves", "_pending",
        "_publish", "_sleeping", "_spawn", "_stopped", "_store", "_unlabelled", "_writing", "fence",
        "job_lease", "key", "more", "run_id",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        key: ThreadKey,
        run_id: str,
        fence: int,
        publish: Callable[[Batch], None],
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        begin: Callable[[ThreadKey, JobRecord], None] | None = None,
        job_lease: float = 0.0,
        leaves: Leaves | None = None,
        stopped: Callable[[Sequence[Stopped]], None] | None = None,
    ) -> None:
        self._store: Final = store
        self.key: Final = key
        self.run_id: Final = run_id
        self.fence: Final = fence
        self._publish: Final = publish
        self._spawn: Final = spawn
        self._begin: Final = begin
        self.job_lease: Final = job_lease
        self._leaves: Final = leaves
        self._stopped: Final = stopped
        self._jobs: list[JobRecord] = []
        self._unlabelled: str | None = None
        self.more = False
        """Whether another run of the thread waits; told by the commit that ends this one."""
        self._pending: list[Event] = []
        self._writing = False
        self._sleeping = False
        self._done: anyio.Event | None = None
        self._failed: Exception | None = None
        self._ended = False
        self._last = 0.0
        self._interval = COALESCE

    def hold(self, event: Event) -> None:
        """Take an event along with what comes next."""
        self._pending.append(event)
        self._last = 0.0

    async def put(self, events: list[Event]) -> None:
        """
        Send on parts of a step's stream.

        Raises:
            LeaseLost: An earlier write found that the run is not ours any more.
        """
        if self._store.durable:
            self.add(events)
            return
        if self._pending:
            events = [*self._pending, *events]
            self._pending = []
        await self._append(events)

    async def _append(self, events: list[Event]) -> None:
        if not self._jobs and self._unlabelled is None:
            batch = await self._store.append(self.key, self.run_id, self.fence, events)
            written(self.key, self.run_id, len(events))
            self._publish(batch)
            return
        jobs, self._jobs = self._jobs, []
        unlabelled, self._unlabelled = self._unlabelled, None
        batch = await self._store.append(
            self.key, self.run_id, self.fence, events, jobs=jobs, unlabelled=unlabelled
        )
        self._publish(batch)
        self.begin(jobs)

    def leave(self, job: JobRecord) -> None:
        """Write a side job with what comes next, and work on it from then on (R-38)."""
        self._jobs.append(job)

    def unlabel(self, message_id: str) -> None:
        """Drop the labels of a message that is void, with what comes next."""
        self._jobs = [job for job in self._jobs if not job.id.startswith(f"{message_id}:")]
        self._unlabelled = message_id

    def begin(self, jobs: Sequence[JobRecord]) -> None:
        """Work on side jobs that are written, beside the run."""
        if self._begin is not None:
            for job in jobs:
                self._begin(self.key, job)

    async def end_job(self, job_id: str) -> None:
        """Delete a side job that this run's worker did itself."""
        await self._store.finish_job(self.key, job_id, 1)

    def close(self) -> None:
        """Nothing more is written for the run."""
        self._ended = True
        self._failed = LeaseLost(f"run {self.run_id!r} has ended: nothing more is written")

    def check(self) -> None:
        """
        See that more can be written.

        Raises:
            LeaseLost: The run has ended, or is not ours any more.
        """
        if self._failed is not None:
            raise self._failed

    def add(self, events: list[Event]) -> None:
        """
        Send on events from code that cannot wait.

        Raises:
            LeaseLost: The run has ended, or is not ours any more.
        """
        self.check()
        self._pending += events
        if not (self._writing or self._sleeping):
            self._sleeping = True
            self._spawn(self._flush)

    async def _flush(self) -> None:
        while True:
            delay = self._last + self._interval - monotonic()
            if delay > 0:
                await anyio.sleep(delay)
            self._sleeping = False
            if self._writing or not self._pending or self._failed is not None:
                return  # a commit has taken them along
            events, self._pending = self._pending, []
            self._writing = True
            started = self._last = monotonic()
            try:
                await self._append(events)
            except Exception as error:  # the run's own task raises it
                self._failed = error
            finally:
                self._writing = False
                if self._done is not None:
                    self._done.set()
                    self._done = None
            # Writes that take as long as the interval mean that the store is behind.
            slow = monotonic() - started > self._interval / 2
            self._interval = min(self._interval * 2, STRETCHED) if slow else COALESCE
            if not self._pending:
                return
            self._sleeping = True

    async def commit(self, change: Commit) -> Committed:
        """
        Write a change, and before it what was put and not written yet, as one transaction.

        Raises:
            LeaseLost: The run is not ours any more.
        """
        if not self._store.durable:
            return await self._commit(change)
        # What is written is told, also to a run that is cancelled at this moment.
        with anyio.CancelScope(shield=True):
            committed = await self._commit(change)
        return committed  # noqa: RET504  # mypy: a scope may swallow what it holds

    async def _commit(self, change: Commit) -> Committed:
        while self._writing:
            if self._done is None:
                self._done = anyio.Event()
            await self._done.wait()
        self.check()
        pending, self._pending = self._pending, []
        jobs, unlabelled = self._jobs, self._unlabelled
        if pending:
            change.events = [*pending, *change.events]
        if jobs or unlabelled is not None:
            change.jobs = (*jobs, *change.jobs)
            change.unlabelled = unlabelled
            self._jobs, self._unlabelled = [], None
        try:
            committed = await self._store.commit(
                self.key, self.run_id, self.fence, change, self._leaves
            )
        except InvalidInput:
            # Nothing of it was written, and what was put before goes with the next.
            self._pending = [*pending, *self._pending]
            self._jobs, self._unlabelled = [*jobs, *self._jobs], unlabelled or self._unlabelled
            raise
        written(self.key, self.run_id, len(change.events), change)
        if change.end is not None or change.suspend is not None:
            self.more = committed.more
            self.close()
        self._publish(committed.batch)
        if committed.stopped and self._stopped is not None:
            self._stopped(committed.stopped)
        if committed.jobs:
            # Observers of the end are told by this worker itself.
            self.begin([job for job in committed.jobs if job.kind != "settled"])
        return committed

    async def decisions(self) -> dict[str, JsonValue]:
        """What was decided on the run's calls, by their ids: payloads and edits included (O-3)."""
        calls = await self._store.calls(self.key, self.run_id)
        return {call.call_id: call.decisions[-1] for call in calls if call.decisions}

    async def last_step(self, cursor: int) -> list[Event]:
        """The events, up to *cursor*, of the last step that the log knows of this run."""
        return await last_step(self._store, self.key, cursor, self.run_id)

    async def used_before(self, cursor: int) -> Usage:
        """What the steps up to *cursor* used."""
        return await used_before(self._store, self.key, cursor, self.run_id)

    def records_of(self, plugin: str) -> Records:
        """A plugin's rows of the thread, fenced as long as the run has not ended (R-42)."""
        scope = RecordScope(self.key.partition, plugin, self.key.thread_id)
        return Records(self._store, scope, self._hold)

    def _hold(self) -> RunHold | None:
        return None if self._ended else RunHold(self.key, self.run_id, self.fence)
