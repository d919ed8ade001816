"""The core of a runtime: store, hubs, and the worker that runs what the queue holds."""

from __future__ import annotations

import inspect
import logging
import math
import os
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from weakref import WeakValueDictionary

import anyio
import anyio.abc

from pai.definition import Signal
from pai.errors import LeaseLost, StoreError, ThreadNotFound
from pai.loop import BoundAgent, Children, Episode, Journal, NoChildren, one_run
from pai.models import resolve_model
from pai.ports import Engine, Store, TransactionalStore
from pai.protocol import (
    Accepted,
    Batch,
    Claimed,
    Event,
    JobRecord,
    RunStarted,
    Stopped,
    ThreadChange,
    ThreadKey,
    ThreadRecord,
    new_id,
)
from pai.runtime._drain import Drain
from pai.runtime._error_log import logger_of, named
from pai.runtime._fitting import Fitting
from pai.runtime._hub import Hub
from pai.runtime._kept import kept
from pai.runtime._retention import Retention
from pai.runtime._room import Room
from pai.runtime._side_jobs import SideJobs

__all__ = ("Core", "ErrorHandler")

_log = logging.getLogger("pai.run")

ErrorHandler = Callable[[BaseException], object]
"""Takes an error whole; sync or async."""


class _Job:
    """A run that is being worked on here."""

    __slots__ = ("claimed", "episode", "scope")

    def __init__(self, claimed: Claimed, episode: Episode) -> None:
        self.claimed = claimed
        self.episode = episode
        self.scope = anyio.CancelScope()


class Core:
    """
    What handles and worker share. It lives as long as the runtime is open.

    Args:
        store: The truth.
        engine: What brings workers to threads.
        agents: The agents by key.
        lease: Seconds a worker may be silent before others take its run (R-4).
        max_runs: Runs worked on at once here.
        works: Whether runs are worked on here at all.
        keep_deltas: Seconds that the pieces of a run's texts stay after its end; ``None``: for good.
        on_error: Takes errors whole (A-RUN-3).
    """

    def __init__(
        self,
        store: Store,
        engine: Engine,
        agents: Mapping[str, BoundAgent],
        *,
        lease: float,
        max_runs: int | None,
        works: bool,
        keep_deltas: float | None,
        on_error: ErrorHandler | None,
    ) -> None:
        self.store: Final = store
        self.engine: Final = engine
        self.agents: Final = agents
        self.lease: Final = lease
        self.max_runs: Final = max_runs
        self.works = works
        self.owner: Final = f"{os.getpid()}-{new_id()}"
        self._on_error = on_error
        self.room: Final = Room(max_runs)
        self._hubs: WeakValueDictionary[ThreadKey, Hub] = WeakValueDictionary()
        self._jobs: dict[tuple[ThreadKey, str], _Job] = {}
        self._draining: dict[ThreadKey, Drain] = {}
        # What is wanted of a run that has not begun here yet: by its id or, where its thread was
        # deleted, by when that was made.
        self._wishes: dict[tuple[ThreadKey, object], str] = {}
        self._group: anyio.abc.TaskGroup | None = None
        self._idle: anyio.Event | None = None
        self.signals: Final[set[Signal]] = set()
        """Those of commands that run: set when the runtime closes."""
        self._tools: anyio.CapacityLimiter | None = None
        self._fitting: Final = Fitting(agents, self.report)
        self.children: Children = NoChildren()
        """Starts runs of subagents; the runtime puts it in."""
        self._retention: Final = Retention(store, keep_deltas)
        self.side: Final = SideJobs(
            store,
            agents,
            lease=lease,
            works=lambda: self.works,
            report=self.report,
            publish=self.publish,
            spawn=self.spawn,
            tool_limiter=self.limiter,
        )

    # ------------------------------------------------------------------ open and close

    async def open(self, group: anyio.abc.TaskGroup) -> None:
        """Open the store and start the background tasks."""
        await self.store.open()
        self._group = group
        self._tools = anyio.CapacityLimiter(40)
        if self.engine.transactional and isinstance(self.store, TransactionalStore):
            self.store.join(self.engine.wake_in)
        try:
            await self.engine.open(self)
        except BaseException:
            self._group = None
            with anyio.CancelScope(shield=True):
                await self.store.close()
            raise
        if self.store.durable:
            self.keep("beat", self._beat)
            if self._retention.used and self.works:
                self.keep("retention", self._retention.watch)
            if self.side.used:
                self.keep("side jobs", self.side.watch)

    def stop(self) -> None:
        """Stop all runs: one that can be gone on with is left to others, else it is cancelled."""
        jobs = list(self._jobs.values())
        self._group = None
        self.engine.stop()
        for signal in self.signals:
            signal.set("shutdown")
        for job in jobs:
            if not self.store.durable:
                job.episode.signal.set("shutdown")
            job.scope.cancel()
        self.side.close()

    async def settled(self) -> None:
        """Wait until no run is worked on any more."""
        while self._draining:
            if self._idle is None:
                self._idle = anyio.Event()
            await self._idle.wait()

    @property
    def is_open(self) -> bool:
        """Whether runs can be accepted."""
        return self._group is not None

    def spawn(self, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Start a task that lives as long as the runtime."""
        if self._group is not None:
            self._group.start_soon(task)

    def keep(self, name: str, task: Callable[[], Awaitable[None]]) -> None:
        """Start a background task that never ends: a failure is reported and it starts again."""
        self.spawn(partial(kept, task, lambda error: self.report(error, {"task": name})))

    # ------------------------------------------------------------------ errors

    def report(self, error: BaseException, where: Mapping[str, object]) -> None:
        """Give an error to the application whole; the log gets its kind and place (A-RUN-3)."""
        place = " ".join(f"{key}={value}" for key, value in where.items())
        logger_of(error).error("%s in %s", named(error), place)
        if self._on_error is None:
            return
        error.add_note(place)
        try:
            answer = self._on_error(error)
        except Exception as broken:  # a handler that fails must not fail the run
            _log.error("on_runtime_error raised %s", type(broken).__name__)  # no text of theirs
            return
        if inspect.isawaitable(answer):
            self.spawn(lambda: _awaited(answer))

    # ------------------------------------------------------------------ watchers

    def hub(self, key: ThreadKey) -> Hub:
        """The thread's hub, for whoever watches or writes it: it lives as long as one does."""
        hub = self._hubs.get(key)
        if hub is None or hub.ended:
            hub = self._hubs[key] = Hub(self.store, key)
        return hub

    def bound(self, hub: Hub, key: ThreadKey, born: datetime, agent: str) -> Hub:
        """
        The hub of the thread that was made then.

        Args:
            hub: What :meth:`hub` gave before the store said which thread it is.
            key: The thread's key.
            born: When it was made.
            agent: Whose it is.
        """
        if hub.bind(born, agent):
            return hub
        # It stands for a thread of this key that was deleted, elsewhere perhaps.
        hub.end()
        now = self._hubs.get(key)
        if now is not None and now is not hub and now.bind(born, agent):
            return now
        fresh = Hub(self.store, key)
        fresh.bind(born, agent)
        if now is None or now is hub:
            self._hubs[key] = fresh
        return fresh

    def publish(self, key: ThreadKey, batch: Batch) -> None:
        """Hand a committed batch to the thread's watchers, if there are any."""
        hub = self._hubs.get(key)
        if hub is not None:
            hub.publish(batch)

    # ------------------------------------------------------------------ work

    def started(self, key: ThreadKey) -> list[Event]:
        """What the log is told when a run is claimed."""
        return [RunStarted(key.thread_id)]

    def claim_now(self, key: ThreadKey) -> tuple[str, float] | None:
        """Owner and lease, if a run that is accepted now may be claimed in the same transaction."""
        if not (self.works and self.engine.claims) or self.room.limited:
            return None
        if key in self._draining:
            return None
        return self.owner, self.lease

    def begin(self, key: ThreadKey, hub: Hub, accepted: Accepted) -> None:
        """Tell watchers of an accepted run, and see that it is worked on."""
        self.stopped(accepted.stopped)
        if accepted.batch is not None:
            hub.publish(accepted.batch)
        if accepted.claimed is not None:
            hub.publish(accepted.claimed.batch)
            self.drain_soon(key, accepted.claimed)
        elif not self.engine.transactional:  # else it was woken in the transaction
            self.engine.wake(key)

    def answered(self, key: ThreadKey, batch: Batch) -> None:
        """Tell watchers of an answer, and see that its run is worked on."""
        self.publish(key, batch)
        if not self.engine.transactional:
            self.engine.wake(key)

    def drain_soon(self, key: ThreadKey, claimed: Claimed | None = None) -> None:
        """Work on the thread's runs in a task, until none is left to take."""
        if self.is_open and self._enter(key, claimed):
            self.spawn(lambda: self._drain(key))

    async def drain(self, key: ThreadKey) -> None:
        """Work on the thread's runs, until none is left to take."""
        if self.is_open and self._enter(key, None):
            await self._drain(key)

    def _enter(self, key: ThreadKey, claimed: Claimed | None) -> bool:
        """Say what is to be done; whether it is the caller who has to do it."""
        drain = self._draining.get(key)
        first = drain is None
        if drain is None:
            drain = self._draining[key] = Drain()
        if claimed is None:
            drain.look = True
        else:
            drain.claimed.append(claimed)
        return first

    async def _drain(self, key: ThreadKey) -> None:
        hub, drain = self.hub(key), self._draining[key]
        hub.writers += 1
        try:
            # What is claimed is worked on or, if the runtime was closed meanwhile, handed back.
            while drain.claimed or (self.is_open and drain.look):
                claimed, placed = None, await self.room.enter(key)
                try:
                    if drain.claimed:
                        claimed = drain.claimed.pop(0)
                    elif self._group is not None:
                        drain.look = False
                        claimed = await self.store.claim(
                            key, self.owner, self.lease, self.started(key), self._fitting.takes
                        )
                        self._fitting.tell()
                    if claimed is not None:
                        head = claimed.thread
                        found = self.bound(hub, key, head.created_at, head.agent)
                        if found is not hub:
                            hub.leave()
                            hub = found
                            hub.writers += 1
                        hub.publish(claimed.batch)
                        drain.look |= await self._one(key, hub, claimed)
                except Exception as error:  # the queue of others must not stop
                    self.report(error, {"thread_id": key.thread_id})
                finally:
                    if placed:
                        self.room.leave()
        finally:
            self._draining.pop(key, None)
            if self._wishes:
                self._wishes = {at: why for at, why in self._wishes.items() if at[0] != key}
            hub.leave()
            if not self._draining and self._idle is not None:
                self._idle.set()
                self._idle = None

    async def _one(self, key: ThreadKey, hub: Hub, claimed: Claimed) -> bool:
        run = claimed.run
        if self._group is None:  # it was on its way when the runtime was closed
            await self._hand_back(key, hub, claimed)
            return False
        journal = Journal(
            self.store, key, run.id, claimed.fence, hub.publish, self.spawn, self._begin_job,
            self.side.lease, self.side.left, self.stopped,
        )  # fmt: skip
        episode = Episode(
            self.agents[run.agent],
            claimed,
            journal,
            self.report,
            resolve_model,
            self.limiter,
            self.children,
        )
        job = self._jobs[key, run.id] = _Job(claimed, episode)
        try:
            with job.scope:
                deleted = self._wishes.get((key, claimed.thread.created_at))
                wish = self._wishes.pop((key, run.id), run.cancel) or deleted
                if wish is not None:
                    self._stop(job, wish)
                await one_run(episode)
                self._retention.ended(key)
            if episode.expires_at is not None and not self.store.durable:
                # Nothing polls a store that no other process can write.
                self.spawn(partial(self._wake_at, key, episode.expires_at))
            if job.scope.cancelled_caught and not self.is_open:
                await self._hand_back(key, hub, claimed)
        except LeaseLost:
            _log.warning("lease lost run_id=%s thread_id=%s", run.id, key.thread_id)
        finally:
            if job.scope.cancel_called:
                # Code in a thread that nobody waits for goes on until it is told.
                episode.signal.set("lease lost" if self.is_open else "shutdown")
            del self._jobs[key, run.id]
        return journal.more

    async def _wake_at(self, key: ThreadKey, when: datetime) -> None:
        """Go on with a run that waits when the first of its calls expires."""
        await anyio.sleep(max((when - datetime.now(UTC)).total_seconds(), 0.0))
        self.engine.wake(key)

    async def _hand_back(self, key: ThreadKey, hub: Hub, claimed: Claimed) -> None:
        """Let whoever looks next go on with the run, without waiting for the lease."""
        if self.store.durable:
            with anyio.CancelScope(shield=True):
                hub.publish(await self.store.release(key, claimed.run.id, claimed.fence))

    def _begin_job(self, key: ThreadKey, side: JobRecord) -> None:
        """Work on a side job that a run of this process has left."""
        job = self._jobs.get((key, side.run_id))
        begun = job is not None and hasattr(job.episode, "context")
        self.side.begin(key, side, job.episode if job is not None and begun else None)

    def limiter(self) -> anyio.CapacityLimiter:
        """How many bodies of tools and commands may run in threads at once."""
        assert self._tools is not None
        return self._tools

    def works_on(self, key: ThreadKey, run_id: str) -> bool:
        """Whether the run is being worked on here."""
        return (key, run_id) in self._jobs

    def _stop(self, job: _Job, reason: str) -> None:
        job.episode.signal.set(reason)
        job.scope.cancel()

    async def cancel(self, key: ThreadKey, run_id: str, reason: str) -> None:
        """Cancel a run: here at once, elsewhere when its worker next looks."""
        self._ask(key, run_id, reason)
        # Written as well where it is worked on here: a process that dies now has promised it.
        runs = await self.store.cancel(key, run_id, reason, self.side.left)
        self.stopped(runs)
        if runs and runs[0].batch is not None and not self.engine.transactional:
            self.engine.wake(key)  # those that waited behind it may begin

    def _ask(self, key: ThreadKey, run_id: str, reason: str) -> None:
        job = self._jobs.get((key, run_id))
        if job is not None:
            self._stop(job, reason)
        elif key in self._draining:
            # It may be claimed for here and not have begun: then it is told when it does.
            self._wishes[key, run_id] = reason

    def stopped(self, runs: Iterable[Stopped]) -> None:
        """Tell of runs that were cancelled or stopped; those that are worked on here are, now."""
        for run in runs:
            if run.batch is None:
                self._ask(run.key, run.run_id, run.reason)
            else:
                self.publish(run.key, run.batch)
                self.side.begin_left(run.key, run.jobs)

    async def update(self, key: ThreadKey, agent: str, change: ThreadChange) -> None:
        """
        Change titles or metadata, and tell watchers.

        Raises:
            ThreadNotFound: The agent has no such thread, or the thread no such run or message.
            InvalidInput: A change of metadata does not fit what is stored.
        """
        self.must_be_open()
        hub = self.hub(key)
        hub.publish(await self.store.update(key, agent, change))

    async def delete(
        self, key: ThreadKey, agent: str, children: Sequence[ThreadRecord]
    ) -> ThreadRecord:
        """
        Delete a thread, stop what is worked on here of it, and tell its watchers: its head.

        Raises:
            ThreadNotFound: The agent has no such thread.
        """
        self.must_be_open()
        # Threads are locked from parents to children, as by every transaction over several.
        pairs = [(child.key, child.agent) for child in reversed(children)]
        head = await self.store.delete(key, agent, pairs)
        if head is None:
            raise ThreadNotFound(key.thread_id)
        for gone in (head, *children):
            if gone.key in self._draining:
                self._wishes[gone.key, gone.created_at] = "deleted"
            for (at, _), job in list(self._jobs.items()):
                if at == gone.key and job.claimed.thread.created_at == gone.created_at:
                    self._stop(job, "deleted")
            hub = self.hub(gone.key)
            if hub.bind(gone.created_at, gone.agent):
                hub.end()
                self._hubs.pop(gone.key, None)
        return head

    def must_be_open(self) -> None:
        """
        See that something can be written.

        Raises:
            StoreError: The runtime is not open.
        """
        if not self.is_open:
            raise StoreError("the runtime is not open: use it in `async with create_pai(...)`")

    # ------------------------------------------------------------------ background

    async def _beat(self) -> None:
        """Keep the leases of the runs that are worked on here."""
        pause = self.lease / 5 if math.isfinite(self.lease) else 3.0
        while True:
            await anyio.sleep(pause)
            for (key, run_id), job in list(self._jobs.items()):
                try:
                    reason = await self.store.renew(key, run_id, job.claimed.fence, self.lease)
                except LeaseLost:
                    job.scope.cancel()
                    continue
                if reason is not None:
                    self._stop(job, reason)
            await self.side.beat()


async def _awaited(answer: Awaitable[object]) -> None:
    try:
        await answer
    except Exception as broken:  # as for a sync handler
        _log.error("on_runtime_error raised %s", type(broken).__name__)  # no text of theirs
