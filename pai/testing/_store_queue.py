"""What a store promises of runs: their queue, leases and fences, and their end."""

from __future__ import annotations

import anyio

from pai.errors import (
    AnswerConflict,
    LeaseLost,
    ThreadBusy,
)
from pai.protocol import (
    CallRecord,
    Commit,
    Metadata,
    RunEnd,
    RunFinished,
    RunQueued,
    StepFinished,
    ToolCallPart,
    Usage,
    new_id,
)
from pai.testing._store_world import EARLY, Make, World, becomes, expect, opened, refuses

__all__ = ("QUEUE_CHECKS",)


async def check_accept_claims(make: Make) -> None:
    """Accept gives the run at once if the thread is free, and only then."""
    async with opened(make) as world:
        claimed = await world.begin("one")
        expect(claimed.run.status == "running" and claimed.run.attempt == 1, "it is running")
        expect(claimed.run.started_at is not None, "it says since when")
        expect([m.text for m in claimed.messages] == ["one"], "it holds the message")
        expect(claimed.batch.first == 2, "its events follow those of the accepting")
        second = await world.send("two", lease=60.0)
        expect(second.claimed is None, "a busy thread's run waits")
        await world.end(claimed)
        third = await world.send("three", lease=60.0)
        expect(third.claimed is None, "a run waits for those accepted before it")


async def check_order(make: Make) -> None:
    """R-1: one active run a thread; they start in the order they were accepted."""
    async with opened(make) as world:
        ids = [(await world.send(text)).run.id for text in ("a", "b", "c")]
        for place, run_id in enumerate(ids):
            claimed = await world.must_claim()
            expect(claimed.run.id == run_id, "runs start in accepted order")
            expect(await world.claim() is None, "a held thread gives nothing")
            done = await world.end(claimed)
            expect(done.more == (place < 2), "the end of a run tells whether another waits")
        expect(await world.claim() is None, "an empty queue gives nothing")
        nowhere = World(world.store)
        expect(await nowhere.claim() is None, "a thread that is none gives nothing")


async def check_one_claim_wins(make: Make) -> None:
    """R-1: of many who claim at once, one gets the run."""
    async with opened(make) as world:
        await world.send()
        won: list[object] = []

        async def claim() -> None:
            won.append(await world.claim())

        async with anyio.create_task_group() as tasks:
            for _ in range(8):
                tasks.start_soon(claim)
        expect(sum(one is not None for one in won) == 1, "exactly one claim wins")


async def check_busy_refused(make: Make) -> None:
    """R-2: a caller who will not wait is told, and nothing is written."""
    async with opened(make) as world:
        await world.send(reject=True)
        before = await world.traces()
        await refuses(ThreadBusy, world.send(reject=True), "a waiting run makes a thread busy")
        await refuses(
            ThreadBusy, world.send(reject=True, lease=60.0), "also for one who would claim"
        )
        expect(await world.traces() == before, "a refused run leaves nothing")
        await world.end(await world.must_claim())
        await world.send(reject=True)


async def check_same_request(make: Make) -> None:
    """O-18: the same run id is the same run, or a conflict."""
    async with opened(make) as world:
        run = world.run()
        await world.send(run=run)
        before = await world.traces()
        again = await world.send(run=run, lease=60.0, reject=True)
        expect(again.known and again.batch is None, "the same request is known")
        expect(again.claimed is None and again.run.id == run.id, "and is not claimed")
        expect(again.born == world.born, "and of this very thread (R-16)")
        other = world.run(run.id)
        other.digest = "another"
        await refuses(AnswerConflict, world.send(run=other), "another request with its id")
        expect(await world.traces() == before, "neither leaves anything")
        message = world.message(new_id(), "x", role="user")
        await world.store.accept(world.head(), world.run(), message, [])
        second = world.store.accept(world.head(), world.run(), message, [])
        await refuses(AnswerConflict, second, "a message id is taken once")
        await world.end(await world.must_claim())
        known = await world.send(run=run, lease=60.0)
        expect(known.known and known.run.status == "completed", "also when it has ended")


async def check_fence(make: Make) -> None:
    """R-4: who lost the lease cannot write one row."""
    async with opened(make) as world:
        first = await world.begin(lease=0.0)
        message = await world.say(first, ToolCallPart("c1", "add"), ToolCallPart("c2", "add"))
        calls = (
            CallRecord("c1", message.id, "add", "settled", "completed", 1),
            CallRecord("c2", message.id, "add", "started"),
        )
        await world.commit(first, Commit(calls=calls))
        second = await world.must_claim(lease=0.0)
        expect(second.run.id == first.run.id and second.run.attempt == 2, "a second attempt")
        expect(second.fence > first.fence, "the fence moves")
        expect(second.takeovers == 1, "a takeover is counted")
        expect([call.call_id for call in second.calls] == ["c2"], "open calls are handed over")
        before = await world.traces()
        await refuses(LeaseLost, world.append(first, "late"), "append with an old fence")
        await refuses(LeaseLost, world.say(first, "late"), "commit with an old fence")
        await refuses(LeaseLost, world.end(first), "settling with an old fence")
        renewed = world.store.renew(world.key, first.run.id, first.fence, 60.0)
        await refuses(LeaseLost, renewed, "renewing with an old fence")
        expect(await world.traces() == before, "nothing of it is written")
        third = await world.must_claim()
        expect(third.takeovers == 2, "takeovers without a commit add up (R-3b)")
        await world.say(third, "on time")
        await world.store.renew(world.key, third.run.id, third.fence, 0.0)
        expect((await world.must_claim()).takeovers == 1, "and a commit ends the count")


async def check_leases(make: Make) -> None:
    """R-4: a lease keeps others away until it ends; renewing it makes it longer."""
    async with opened(make) as world:
        claimed = await world.begin(lease=0.0)
        wish = await world.store.renew(world.key, claimed.run.id, claimed.fence, 60.0)
        expect(wish is None, "nobody asked to cancel")
        expect(await world.claim() is None, "a renewed lease holds")
        expect(world.key not in await world.store.waiting(10_000), "a held thread does not wait")
        await world.append(claimed, "still ours")
        await world.store.renew(world.key, claimed.run.id, claimed.fence, 0.0)
        expect(world.key in await world.store.waiting(10_000), "an ended lease is to be taken")


async def check_release(make: Make) -> None:
    """R-3: a run that is given back may be taken at once, and that is no takeover (R-3b)."""
    async with opened(make) as world:
        await world.end(await world.begin())
        first = await world.begin()
        for _ in range(5):
            await world.store.release(world.key, first.run.id, first.fence)
            expect(world.key in await world.store.waiting(10_000), "it is to be taken")
            again = await world.must_claim()
            expect(again.run.id == first.run.id, "before any other")
            expect(again.fence > first.fence and again.takeovers == 0, "as no takeover")
            before = await world.traces()
            late = world.store.release(world.key, first.run.id, first.fence)
            await refuses(LeaseLost, late, "only who holds it gives it back")
            expect(await world.traces() == before, "nothing is written")
            expect(await world.claim() is None, "and it stays with the other")
            first = again
        await world.end(first)
        await refuses(
            LeaseLost,
            world.store.release(world.key, first.run.id, first.fence),
            "an ended run is not given back",
        )


async def check_waiting(make: Make) -> None:
    """Threads with a run to take are told, until it is taken."""
    async with opened(make) as world:
        await world.send()
        await world.send()
        waiting = await world.store.waiting(10_000)
        expect(waiting.count(world.key) == 1, "a thread waits once")
        claimed = await world.must_claim()
        expect(world.key not in await world.store.waiting(10_000), "not while its run is held")
        await world.end(claimed)
        expect(world.key in await world.store.waiting(10_000), "but again for the next")
        await world.end(await world.must_claim())
        expect(world.key not in await world.store.waiting(10_000), "and not when it is empty")


async def check_settled_stays(make: Make) -> None:
    """R-3: a run that has ended stays as it is."""
    async with opened(make) as world:
        claimed = await world.begin()
        usage = Usage(1, 2, 3, 4, 5, 6)
        error = {"code": "c", "message": "m"}
        end = RunEnd("failed", EARLY, "outcome", "reason", "stop", usage, error)  # type: ignore[arg-type]
        bag = Metadata({"a": 1}, {"b": 2})
        await world.commit(
            claimed, Commit([RunFinished("failed")], run_metadata=becomes(bag), end=end)
        )
        run = await world.store.run(world.key, claimed.run.id)
        told = run and (run.status, run.outcome, run.reason, run.stop_reason, run.usage, run.error)
        expect(told == ("failed", "outcome", "reason", "stop", usage, error), "its end is kept")
        expect(run and (run.metadata, run.finished_at) == (bag, EARLY), "with metadata and time")
        before = await world.traces()
        await refuses(LeaseLost, world.append(claimed, "late"), "appending to an ended run")
        await refuses(LeaseLost, world.end(claimed), "ending it twice")
        expect(not await world.store.cancel(world.key, claimed.run.id, "no"), "no cancelling")
        expect(await world.traces() == before, "nothing changes it")


async def check_cancel_queued(make: Make) -> None:
    """R-8: a queued run that is cancelled ends at once, and never starts."""
    async with opened(make) as world:
        claimed = await world.begin()
        run = world.run()
        run.metadata = Metadata({"hidden": 1}, {"shown": 1})
        await world.send(run=run)
        last = (await world.send()).run.id
        (stopped,) = await world.store.cancel(world.key, run.id, "changed my mind")
        event = stopped.batch.events[0] if stopped.batch is not None else None
        expect(isinstance(event, RunFinished) and event.status == "cancelled", "its event")
        expect(getattr(event, "metadata", None) == {"shown": 1}, "shows public metadata only")
        kept = await world.store.run(world.key, run.id)
        expect(kept and (kept.status, kept.reason) == ("cancelled", "changed my mind"), "its end")
        expect(not await world.store.cancel(world.key, run.id, "again"), "cancelling repeats")
        expect((await world.end(claimed)).more, "others still wait")
        expect((await world.must_claim()).run.id == last, "the cancelled one is passed over")
        alone = World(world.store)
        only = await alone.send()
        await alone.store.cancel(alone.key, only.run.id, "no")
        expect(await alone.claim() is None, "a queue with only that is empty")
        expect(alone.key not in await world.store.waiting(10_000), "and does not wait")


async def check_cancel_running(make: Make) -> None:
    """R-8: who holds a run learns that it shall be cancelled."""
    async with opened(make) as world:
        claimed = await world.begin(lease=0.0)
        run_id = claimed.run.id
        (asked,) = await world.store.cancel(world.key, run_id, "first")
        expect((asked.run_id, asked.batch) == (run_id, None), "it ends later")
        await world.store.cancel(world.key, run_id, "second")
        wish = await world.store.renew(world.key, run_id, claimed.fence, 0.0)
        expect(wish == "first", "renewing tells it, and the first reason stays")
        expect((await world.commit(claimed, Commit())).cancel == "first", "so does a commit")
        kept = await world.store.run(world.key, run_id)
        expect(kept and kept.cancel == "first" and kept.status == "running", "and its record")
        again = await world.must_claim()
        expect(again.run.cancel == "first", "a takeover learns it too")
        expect((await world.end(again)).cancel == "first", "until the end")
        expect((await world.begin()).run.cancel is None, "the next run is not concerned")


async def check_step_and_end(make: Make) -> None:
    """The last step and the run's end are one commit, and free the thread."""
    async with opened(make) as world:
        claimed = await world.begin()
        last = world.message(claimed.run.id, "bye")
        change = Commit([StepFinished(1, "stop"), RunFinished("completed")], last)
        change.end = RunEnd("completed", EARLY, "completed")
        done = await world.commit(claimed, change)
        expect((done.batch.first, done.batch.last, done.more) == (3, 4, False), "its numbers")
        expect(await world.texts() == ["hello", "bye"], "its message")
        bare = world.run()
        accepted = await world.store.accept(world.head(), bare, None, [RunQueued("trigger")])
        expect(accepted.batch is not None, "a run may come without a message")
        expect(len((await world.must_claim()).messages) == 2, "and sees what was said")


QUEUE_CHECKS = (
    check_accept_claims,
    check_order,
    check_one_claim_wins,
    check_busy_refused,
    check_same_request,
    check_fence,
    check_leases,
    check_release,
    check_waiting,
    check_settled_stays,
    check_cancel_queued,
    check_cancel_running,
    check_step_and_end,
)
