"""The side jobs of one thread in memory, and the labels that they made."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Protocol

import attrs

from pai.protocol import (
    Batch,
    Event,
    JobRecord,
    NewLabel,
    NewTitle,
    ReasoningSummary,
    ThreadKey,
    ThreadUpdated,
)

__all__ = ("JobMethods", "ThreadJobs")


class ThreadJobs:
    """
    The side jobs of one thread.

    Attributes:
        labels: Labels by message and place; they may come before their message.
    """

    __slots__ = ("_jobs", "labels")

    def __init__(self) -> None:
        # Each with when others may take it.
        self._jobs: dict[str, tuple[JobRecord, float]] = {}
        self.labels: dict[str, dict[int, str]] = {}

    def write(
        self, jobs: Sequence[JobRecord], unlabelled: str | None, now: float
    ) -> tuple[JobRecord, ...]:
        """Add jobs, after those of a void message are gone; those that are new are returned."""
        if unlabelled is not None:
            self.labels.pop(unlabelled, None)
            for job_id in [name for name in self._jobs if name.startswith(f"{unlabelled}:")]:
                del self._jobs[job_id]
        new = []
        for job in jobs:
            if job.id not in self._jobs:
                self._jobs[job.id] = job, now + job.lease
                new.append(job)
        return tuple(new)

    def due(self, now: float) -> Iterator[tuple[float, str]]:
        """Since when which may be taken."""
        for job_id, (_, ready) in self._jobs.items():
            if ready <= now:
                yield ready, job_id

    def claim(self, job_id: str, now: float, lease: float) -> JobRecord | None:
        """Take one that is due."""
        job, ready = self._jobs.get(job_id, (None, 0.0))
        if job is None or ready > now:
            return None
        job = attrs.evolve(job, attempt=job.attempt + 1)
        self._jobs[job_id] = job, now + lease
        return job

    def postpone(self, job_id: str, attempt: int, ready: float) -> bool:
        """Give one another time, if the attempt is the present one."""
        job, _ = self._jobs.get(job_id, (None, 0.0))
        if job is None or job.attempt != attempt:
            return False
        self._jobs[job_id] = job, ready
        return True

    def take(self, job_id: str, attempt: int) -> JobRecord | None:
        """Delete one, if the attempt is the present one."""
        job, _ = self._jobs.get(job_id, (None, 0.0))
        if job is None or job.attempt != attempt:
            return None
        del self._jobs[job_id]
        return job


class _Thread(Protocol):
    """A thread, as far as its side jobs change it."""

    jobs: ThreadJobs

    def log(self, run_id: str, events: list[Event]) -> Batch: ...

    def label(self, new: NewLabel) -> None: ...

    def retitle(self, new: NewTitle) -> bool: ...


class JobMethods:
    """The methods of the store that side jobs use."""

    _clock: Callable[[], float]
    _threads: Mapping[ThreadKey, _Thread]

    async def due_jobs(self, limit: int = 100) -> list[tuple[ThreadKey, str]]:
        now = self._clock()
        due = [
            (ready, key, job_id)
            for key, here in self._threads.items()
            for ready, job_id in here.jobs.due(now)
        ]
        due.sort()
        return [(key, job_id) for _, key, job_id in due[:limit]]

    async def claim_job(self, key: ThreadKey, job_id: str, lease: float) -> JobRecord | None:
        here = self._threads.get(key)
        return None if here is None else here.jobs.claim(job_id, self._clock(), lease)

    async def postpone_job(self, key: ThreadKey, job_id: str, attempt: int, seconds: float) -> bool:
        here = self._threads.get(key)
        return here is not None and here.jobs.postpone(job_id, attempt, self._clock() + seconds)

    async def finish_job(
        self, key: ThreadKey, job_id: str, attempt: int, result: NewTitle | NewLabel | None = None
    ) -> Batch | None:
        here = self._threads.get(key)
        job = None if here is None else here.jobs.take(job_id, attempt)
        if here is None or job is None:
            return None
        if isinstance(result, NewLabel):
            here.label(result)
            event = ReasoningSummary(result.message_id, result.ordinal, result.text)
            return here.log(job.run_id, [event])
        if isinstance(result, NewTitle) and here.retitle(result):
            return here.log("", [ThreadUpdated(result.text, "generated")])
        return None
