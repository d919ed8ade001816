"""What a store promises of the runs of subagents: they end with the call that has started them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from pai.protocol import (
    CallRecord,
    Claimed,
    Commit,
    JobRecord,
    RunEnd,
    RunFinished,
    RunQueued,
    RunRecord,
    RunSuspended,
    Stopped,
    Suspension,
    ThreadKey,
    ToolCallPart,
    child_id,
    settled_job,
)
from pai.testing._store_world import EARLY, Make, World, expect, opened

__all__ = ("CHILD_CHECKS",)


def _call(call_id: str, status: str = "held", outcome: str | None = None) -> CallRecord:
    return CallRecord(call_id, "m", "helper", status, outcome)  # type: ignore[arg-type]


async def _subagent(parent: World, run_id: str, call_id: str, place: int) -> World:
    """The thread of a subagent that a call has started, with its run queued."""
    own = child_id(parent.key.thread_id, run_id, call_id, place)
    world = World(parent.store, ThreadKey(parent.key.partition, own))
    await world.send(run=world.run(own))
    return world


async def _suspend(world: World, claimed: Claimed, *calls: CallRecord) -> None:
    parts = [ToolCallPart(call.call_id, call.tool, {}) for call in calls]
    message = world.message(claimed.run.id, *parts)
    change = Commit([RunSuspended(1)], message, calls, suspend=Suspension(None, 1))
    await world.commit(claimed, change)


class _Family:
    """
    A run that waits for four subagents, and threads that are none of its business.

    Args:
        world: Its thread.
        waits: A subagent that waits itself, for one of its own: *below*.
        queued: One that has been answered.
        busy: One that a worker has.
        done: One of a call that has completed.
        strange: A thread of the same id in another partition.
    """

    def __init__(
        self, world: World, waits: World, below: World, queued: World, busy: World, done: World,
        strange: World,
    ) -> None:  # fmt: skip
        self.world, self.waits, self.below, self.queued = world, waits, below, queued
        self.busy, self.done, self.strange = busy, done, strange


async def _family(world: World, claimed: Claimed) -> _Family:
    run_id = claimed.run.id
    waits = await _subagent(world, run_id, "a", 0)
    own = await waits.must_claim()
    below = await _subagent(waits, own.run.id, "x", 0)
    await _suspend(below, await below.must_claim())
    await _suspend(waits, own, _call("x"))
    queued = await _subagent(world, run_id, "a", 1)
    busy = await _subagent(world, run_id, "b", 0)
    await busy.must_claim()
    done = await _subagent(world, run_id, "c", 0)
    strange = World(world.store, ThreadKey(f"{world.key.partition}2", waits.key.thread_id))
    await strange.send(run=strange.run(waits.key.thread_id))
    return _Family(world, waits, below, queued, busy, done, strange)


def _leaves(run: RunRecord) -> Sequence[JobRecord]:
    return (settled_job(run.id),) if run.started_at is not None else ()


async def _cancelled(family: _Family, claimed: Claimed) -> Sequence[Stopped]:
    await _suspend(
        family.world, claimed, _call("a"), _call("b"), _call("c", "settled", "completed")
    )
    stopped = await family.world.store.cancel(family.world.key, claimed.run.id, "why", _leaves)
    expect(stopped[0].run_id == claimed.run.id, "the run itself comes first")
    return stopped[1:]


async def _superseded(family: _Family, claimed: Claimed) -> Sequence[Stopped]:
    world = family.world
    await _suspend(world, claimed, _call("a"), _call("b"), _call("c", "settled", "completed"))
    run = world.run()
    accepted = await world.store.accept(
        world.head(), run, world.message(run.id, "instead", role="user"), [RunQueued("send")],
        when_pending="supersede", leaves=_leaves,
    )  # fmt: skip
    expect(accepted.stopped[0].run_id == claimed.run.id, "the run itself comes first")
    return accepted.stopped[1:]


async def _ended(family: _Family, claimed: Claimed) -> Sequence[Stopped]:
    calls = _call("a", "settled", "interrupted"), _call("b", "settled", "denied")
    end = RunEnd("failed", EARLY, reason="why")
    change = Commit(
        [RunFinished("failed")], None, (*calls, _call("c", "settled", "completed")), end=end
    )
    world = family.world
    done = await world.store.commit(world.key, claimed.run.id, claimed.fence, change, _leaves)
    return done.stopped


async def _settled(family: _Family, claimed: Claimed) -> Sequence[Stopped]:
    calls = _call("a", "settled", "failed"), _call("b", "settled", "cancelled")
    change = Commit(calls=(*calls, _call("c", "settled", "completed")))
    world = family.world
    done = await world.store.commit(world.key, claimed.run.id, claimed.fence, change, _leaves)
    return done.stopped


_WAYS: tuple[tuple[str, Callable[[_Family, Claimed], Awaitable[Sequence[Stopped]]]], ...] = (
    ("why", _cancelled),
    ("superseded", _superseded),
    ("why", _ended),
    ("given up", _settled),
)


async def check_subagents_end(make: Make) -> None:
    """O-20, R-14: runs of subagents end with the call that has started them, in one transaction."""
    for reason, way in _WAYS:
        async with opened(make) as world:
            claimed = await world.begin()
            family = await _family(world, claimed)
            stopped = {run.key: run for run in await way(family, claimed)}
            ended = family.waits, family.below, family.queued
            wanted = {child.key for child in (*ended, family.busy)}
            expect(stopped.keys() == wanted, "the runs that have not ended are stopped, no others")
            for child in ended:
                told, own = stopped[child.key], child.key.thread_id
                run = await world.store.run(child.key, own)
                expect(run and (run.status, run.reason) == ("cancelled", reason), "they end")
                batch = told.batch
                expect(batch and isinstance(batch.events[-1], RunFinished), "their logs say so")
                expect(
                    (await child.log())[-1][::2] == (batch and batch.last, "run-finished"), "and"
                )
                jobs = [job.id for job in told.jobs]
                began = child is not family.queued
                expect(jobs == ([f"settled:{own}"] if began else []), "and leave side jobs")
                due = {job_id for key, job_id in await world.store.due_jobs() if key == child.key}
                expect(due == set(jobs), "which are written")
                expect(await child.claim() is None, "nothing is left to be worked on")
            for call in await world.store.calls(family.waits.key, family.waits.key.thread_id):
                expect(
                    (call.status, call.outcome) == ("settled", "interrupted"),
                    "nor to be waited for",
                )
            told = stopped[family.busy.key]
            expect(
                (told.batch, told.reason) == (None, reason), "one that a worker holds is not ended"
            )
            run = await world.store.run(family.busy.key, family.busy.key.thread_id)
            expect(run and (run.status, run.cancel) == ("running", reason), "its worker has to")
            for other in (family.done, family.strange):
                run = await world.store.run(other.key, other.key.thread_id)
                expect(
                    run and (run.status, run.cancel) == ("queued", None), "no other is concerned"
                )


CHILD_CHECKS = (check_subagents_end,)
