"""What a store promises of logs that it makes short."""

from __future__ import annotations

from datetime import datetime, timedelta

from pai.protocol import (
    Commit,
    Event,
    JobRecord,
    NewLabel,
    RunEnd,
    RunFinished,
    StepFinished,
    StepStarted,
    TextDelta,
    TextEnd,
    TextStart,
    fold,
)
from pai.testing._store_world import EARLY, Make, World, expect, opened

__all__ = ("COMPACT_CHECKS",)

_ODD = "Hello, \ud83d\x00 ü"
"""Half a surrogate pair, as a model may stream one."""

_THEN = EARLY + timedelta(minutes=5)


async def _told(world: World, after: int = 0) -> list[Event]:
    batches = await world.store.events(world.key, after, 10_000)
    return [event for batch in batches for event in batch.numbered(after)]


async def _say(world: World, text: str, *, ends: bool = True) -> None:
    """A run that streams its answer letter by letter; another message comes in meanwhile."""
    claimed = await world.begin("hello")
    store, key, run_id = world.store, world.key, claimed.run.id
    message = world.message(run_id, text)

    async def append(*events: Event) -> None:
        await store.append(key, run_id, claimed.fence, list(events))

    await append(StepStarted(0, message.id, EARLY), TextStart("t"))
    for letter in text[:3]:
        await append(TextDelta("t", letter))
    await world.send("wait")
    for letter in text[3:]:
        await append(TextDelta("t", letter))
    await append(TextEnd("t"))
    await world.commit(claimed, Commit([StepFinished(0, "stop")], message))
    if ends:
        end = RunEnd("completed", EARLY, outcome="completed")
        await world.commit(claimed, Commit([RunFinished("completed", finished_at=EARLY)], end=end))


async def check_compact(make: Make) -> None:
    """R-25: a log that is made short tells the same, from every number on."""
    async with opened(make) as world:
        store, key = world.store, world.key
        await _say(world, _ODD)
        long = await _told(world)
        state = fold(None, long)
        await store.compact(key, EARLY - timedelta(seconds=1))
        expect([e.type for e in await _told(world)] == [e.type for e in long], "not too early")
        await store.compact(key, _THEN)
        short = await _told(world)
        deltas = [event.text for event in short if isinstance(event, TextDelta)]
        expect(deltas == [_ODD], "a text is one delta")
        expect(fold(None, short) == state, "it tells the same")
        for at in range(1, len(long) + 1):
            rest = await _told(world, at)
            expect(fold(fold(None, long[:at]), rest) == state, f"also from {at} on")
        before = [event.seq for event in short]
        await store.compact(key, _THEN)
        expect([event.seq for event in await _told(world)] == before, "once is enough")
        expect((await world.snapshot()).cursor == state.cursor, "numbers go on as they did")
        taken = await world.must_claim()
        expect(taken.batch.first == state.cursor + 1, "without a gap")


async def check_compact_later(make: Make) -> None:
    """A run that has not ended stays as it is, until it has; other threads are not touched."""
    async with opened(make) as world:
        store, key = world.store, world.key
        await _say(world, "Hello", ends=False)
        other = World(store)
        await _say(other, "Other")
        long, others = await _told(world), [event.seq for event in await _told(other)]
        await store.compact(key, _THEN)
        expect([e.seq for e in await _told(world)] == [e.seq for e in long], "it is at work")
        snapshot = await world.snapshot()
        claimed = await world.claim()
        expect(claimed is None, "and held")
        await store.cancel(key, snapshot.runs[1].id, "no")
        expect([event.seq for event in await _told(other)] == others, "the other is as it was")
        await store.compact(other.key, _THEN)
        expect(len(await _told(other)) < len(others), "until it is its turn")


async def check_compact_and_labels(make: Make) -> None:
    """What comes after a run was made short comes behind it."""
    async with opened(make) as world:
        store, key = world.store, world.key
        claimed = await world.begin()
        run_id = claimed.run.id
        end = RunEnd("completed", EARLY)
        job = JobRecord("m:1", "label", run_id, lease=60.0)
        finished: list[Event] = [RunFinished("completed", finished_at=EARLY)]
        await world.commit(claimed, Commit(finished, end=end, jobs=(job,)))
        await store.compact(key, _THEN)
        batch = await store.finish_job(key, job.id, 1, NewLabel("m", 0, "late"))
        told = await _told(world)
        expect(batch is not None and told[-1].seq == batch.last, "its number is the next")
        await store.compact(key, _THEN)
        expect([e.seq for e in await _told(world)] == [e.seq for e in told], "and stays")
        batches = await store.events(key, 0)
        ends = [b.last for b in batches if b.events and isinstance(b.events[-1], RunFinished)]
        expect(len(ends) == 1, "the end of a run is the end of a batch")


async def check_long_logs(make: Make) -> None:
    """Threads whose logs may be made short are found, once they are quiet."""
    async with opened(make) as world:
        store = world.store

        async def listed(before: datetime = _THEN) -> bool:
            return world.key in await store.long_logs(before, 10_000)

        claimed = await world.begin()
        expect(not await listed(), "not while a run is active")
        await world.end(claimed)
        expect(await listed(), "then it is found")
        expect(not await listed(EARLY - timedelta(days=1)), "if it is old enough")
        await store.compact(world.key, _THEN)
        expect(not await listed(), "and no more once it is short")


COMPACT_CHECKS = (check_compact, check_compact_later, check_compact_and_labels, check_long_logs)
