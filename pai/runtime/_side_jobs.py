"""Side jobs: titles, labels, and ends that nobody was told of; rows that are worked on beside runs (R-38)."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from functools import partial
from typing import Any, Final

import anyio

from pai.definition import Signal
from pai.lifecycle import is_stray
from pai.loop import (
    BoundAgent,
    Episode,
    Journal,
    Report,
    build_context,
    make_label,
    make_title,
    reopened,
    tell_again,
)
from pai.models import resolve_model
from pai.ports import Store
from pai.protocol import Batch, JobRecord, NewLabel, NewTitle, RunRecord, ThreadKey, settled_job

__all__ = ("SideJobs",)

POLL = 1.0
"""Seconds between looks for jobs that another process left."""

AT_ONCE = 8
"""Side jobs that are worked on at once in a process."""

PATIENCE = 60.0
"""Seconds for one attempt."""

BACK_OFF = (1.0, 5.0, 30.0)
"""Seconds before each further attempt; after the last one it is given up."""

_STRANGER = 60.0
"""Seconds until others are asked again for a job of an agent that this process does not have."""

_LONGEST_LEASE = 3600.0
"""Seconds: a lease without an end would leave a dead worker's jobs to nobody."""


class _Work:
    """A job that is worked on here."""

    __slots__ = ("job", "scope", "signal")

    def __init__(self, job: JobRecord) -> None:
        self.job = job
        self.signal = Signal()
        self.scope = anyio.CancelScope()


class SideJobs:
    """
    The side jobs that this process works on.

    Those it has written are begun at once, by their first attempt; those that another process left
    are found by :meth:`look`. Nothing here delays a run or fails one.

    Args:
        store: Where they lie.
        agents: The agents by key.
        lease: Seconds that this process may be silent before others take a job.
        works: Whether it works at all; else another process takes what it leaves at once.
        report: Takes errors whole.
        publish: Hands a committed batch to the watchers.
        spawn: Starts a task that lives as long as the runtime.
        tool_limiter: As for any episode.
    """

    def __init__(
        self,
        store: Store,
        agents: Mapping[str, BoundAgent],
        *,
        lease: float,
        works: Callable[[], bool],
        report: Report,
        publish: Callable[[ThreadKey, Batch], None],
        spawn: Callable[[Callable[[], Coroutine[Any, Any, None]]], None],
        tool_limiter: Callable[[], anyio.CapacityLimiter],
    ) -> None:
        self._store: Final = store
        self._agents: Final = agents
        self.lease: Final = min(lease, _LONGEST_LEASE)
        self._works: Final = works
        self._report: Final = report
        self._publish: Final = publish
        self._spawn: Final = spawn
        self._tool_limiter: Final = tool_limiter
        self._here: dict[tuple[ThreadKey, str], _Work] = {}
        self._room: anyio.CapacityLimiter | None = None
        self.used: Final = any(
            agent.leaves_jobs or agent.definition.reasoning_summary is not None
            for agent in agents.values()
        )
        """Whether any agent leaves side jobs: only then others' are looked for."""

    def left(self, run: RunRecord) -> tuple[JobRecord, ...]:
        """
        What a run leaves that ends without a worker: its observers are told all the same (R-33a).

        One that never began leaves nothing.
        """
        bound = self._agents.get(run.agent)
        if run.started_at is None or bound is None or not bound.chains.run_settled:
            return ()
        return (settled_job(run.id, self.lease if self._works() else 0.0),)

    def begin_left(self, key: ThreadKey, jobs: Iterable[JobRecord]) -> None:
        """Work on what :meth:`left` gave, as far as it is left to this process."""
        for job in jobs:
            if job.lease:
                self.begin(key, job, None)

    def begin(self, key: ThreadKey, job: JobRecord, episode: Episode | None) -> None:
        """
        Work on a job that is ours.

        Args:
            key: Its thread.
            job: It, with our attempt.
            episode: Its run's, if it is at hand; else it is built again.
        """
        if (key, job.id) not in self._here:
            work = self._here[key, job.id] = _Work(job)
            self._spawn(lambda: self._work(key, work, episode))

    async def watch(self) -> None:
        """Take the jobs that others left, for good; nothing while this process does not work."""
        while True:
            await anyio.sleep(POLL)
            if self._works():
                await self.look()

    async def look(self) -> None:
        """Take the jobs that others left."""
        for key, job_id in await self._store.due_jobs():
            if (key, job_id) not in self._here:
                await self._take(key, job_id)

    async def _take(self, key: ThreadKey, job_id: str) -> None:
        job = await self._store.claim_job(key, job_id, self.lease)
        if job is not None:
            self.begin(key, job, None)

    async def beat(self) -> None:
        """Keep the jobs that are worked on here."""
        for (key, _), work in list(self._here.items()):
            job = work.job
            if not await self._store.postpone_job(key, job.id, job.attempt, self.lease):
                work.scope.cancel()

    def close(self) -> None:
        """Let go of all: with a durable store others take them, else they are dropped."""
        for work in self._here.values():
            work.signal.set("shutdown")
            work.scope.cancel()
        self._here = {}

    # ------------------------------------------------------------------ one job

    async def _work(self, key: ThreadKey, work: _Work, episode: Episode | None) -> None:
        job = work.job
        pause: float | None = None
        try:
            with work.scope:
                pause = await self._attempt(key, work, episode)
            if work.scope.cancelled_caught:
                await self._let_go(key, job)
        except anyio.get_cancelled_exc_class():
            await self._let_go(key, job)
            raise
        except Exception as error:  # the store is gone: whoever finds the job goes on with it
            self._report(error, {"job": job.kind, "thread_id": key.thread_id})
        finally:
            self._here.pop((key, job.id), None)
        if pause is not None:
            self._spawn(lambda: self._later(key, job, pause))

    async def _later(self, key: ThreadKey, job: JobRecord, pause: float) -> None:
        await anyio.sleep(pause)
        try:
            await self._take(key, job.id)
        except Exception as error:
            self._report(error, {"job": job.kind, "thread_id": key.thread_id})

    async def _let_go(self, key: ThreadKey, job: JobRecord) -> None:
        with anyio.CancelScope(shield=True):
            await self._store.postpone_job(key, job.id, job.attempt, 0.0)

    async def _attempt(self, key: ThreadKey, work: _Work, episode: Episode | None) -> float | None:
        """Do the job; the seconds until it is to be tried again, if it failed."""
        job = work.job
        if self._room is None:
            self._room = anyio.CapacityLimiter(AT_ONCE)
        async with self._room:
            try:
                with anyio.fail_after(PATIENCE):
                    return await self._do(key, work, episode)
            except BaseException as error:
                if not isinstance(error, Exception) and not is_stray(error):
                    raise
                work.signal.set("failed")
                self._report(
                    error,
                    {
                        "job": job.kind,
                        "attempt": job.attempt,
                        "run_id": job.run_id,
                        "thread_id": key.thread_id,
                    },
                )
        if job.attempt > len(BACK_OFF) and job.kind != "settled":
            await self._store.finish_job(key, job.id, job.attempt)
            return None
        pause = BACK_OFF[min(job.attempt, len(BACK_OFF)) - 1]
        await self._store.postpone_job(key, job.id, job.attempt, pause)
        return pause

    async def _do(self, key: ThreadKey, work: _Work, episode: Episode | None) -> float | None:
        job, store = work.job, self._store
        result: NewTitle | NewLabel | None = None
        source = None
        if episode is None or job.kind == "title":
            source = await store.run_source(key, job.run_id)
            if source is None:
                return None  # the thread is gone, and its jobs with it
        if episode is None:
            assert source is not None
            agent = self._agents.get(source.run.agent)
            if agent is None:
                await store.postpone_job(key, job.id, job.attempt, _STRANGER)
                return None
            publish = partial(self._publish, key)
            journal = Journal(store, key, job.run_id, 0, publish, self._spawn)
            episode = reopened(
                agent, source, journal, self._report, resolve_model, self._tool_limiter
            )
            if job.kind == "settled":
                await tell_again(episode)
            else:
                await build_context(episode)
        if job.kind == "title":
            assert source is not None
            result = await make_title(episode, source, work.signal)
        elif job.kind == "label":
            result = await make_label(episode, job, work.signal)
        batch = await store.finish_job(key, job.id, job.attempt, result)
        if batch is not None:
            self._publish(key, batch)
        return None
