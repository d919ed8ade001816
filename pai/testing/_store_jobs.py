"""What a store promises of side jobs."""

from __future__ import annotations

from pai.errors import LeaseLost
from pai.protocol import (
    Commit,
    JobRecord,
    NewLabel,
    NewTitle,
    ReasoningEnd,
    ReasoningPart,
    RunEnd,
    RunFinished,
    StepFinished,
    StepReset,
    TitleMark,
)
from pai.schema import JsonObject
from pai.testing._store_world import EARLY, Make, World, expect, opened, refuses

__all__ = ("JOB_CHECKS",)

_PAYLOAD: JsonObject = {"text": "ü \ud800", "n": [1, None]}


def _title(text: str = "T", *replaces: str) -> NewTitle:
    return NewTitle(text, replaces or ("",), EARLY, 2, 1)


async def _due(world: World) -> list[str]:
    return [job_id for key, job_id in await world.store.due_jobs(1000) if key == world.key]


async def check_jobs_come_with_writes(make: Make) -> None:
    """R-38: a job is there with the write that brings it, or neither is."""
    async with opened(make) as world:
        store, claimed = world.store, await world.begin()
        run_id = claimed.run.id
        job = JobRecord("a", "label", run_id, _PAYLOAD)
        await refuses(
            LeaseLost,
            store.append(world.key, run_id, claimed.fence + 1, [ReasoningEnd("r")], jobs=[job]),
            "a stale fence",
        )
        expect(await _due(world) == [], "nothing of it is there")
        await store.append(world.key, run_id, claimed.fence, [ReasoningEnd("r")], jobs=[job])
        held = JobRecord("b", "title", run_id, lease=60.0)
        done = await world.commit(claimed, Commit(jobs=(held, job)))
        expect([item.id for item in done.jobs] == ["b"], "one that is there is not written again")
        expect(await _due(world) == ["a"], "its writer has time for it")
        taken = await store.claim_job(world.key, "a", 60.0)
        expect(taken is not None, "one that is due can be taken")
        if taken is not None:
            found = taken.kind, taken.run_id, taken.payload, taken.attempt
            expect(found == ("label", run_id, _PAYLOAD, 2), "it is as it was written")
        expect(await store.claim_job(world.key, "b", 60.0) is None, "one that is held cannot")
        other = World(store)
        expect(await store.claim_job(other.key, "a", 1.0) is None, "R-7: nor from elsewhere")


async def check_one_attempt_counts(make: Make) -> None:
    """Who has the present attempt of a job has the job."""
    async with opened(make) as world:
        store, key = world.store, world.key
        claimed = await world.begin()
        run_id = claimed.run.id
        await world.commit(claimed, Commit(jobs=(JobRecord("a", "title", run_id),)))
        taken = await store.claim_job(key, "a", 0.0)
        again = await store.claim_job(key, "a", 0.0)
        expect(taken and again and again.attempt == 3, "each claim is a new attempt")
        before = await world.traces()
        expect(await store.finish_job(key, "a", 2, _title()) is None, "an old attempt is void")
        expect(not await store.postpone_job(key, "a", 2, 60.0), "and postpones nothing")
        expect(await world.traces() == before, "it writes nothing")
        expect(await store.postpone_job(key, "a", 3, 60.0), "the present one can wait")
        expect(await _due(world) == [], "and is left alone meanwhile")
        expect(await store.postpone_job(key, "a", 3, 0.0), "or be given back")
        expect(await _due(world) == ["a"], "for others")
        expect(await store.finish_job(key, "a", 3) is None, "nothing may come of it")
        expect(await _due(world) == [], "it is gone")
        expect(await store.finish_job(key, "a", 3, _title()) is None, "once and for all")
        expect(await world.traces() == before, "and has written nothing")


async def check_titles(make: Make) -> None:
    """A-TITLE-3: a title replaces only what it may, whatever is there by then."""
    async with opened(make) as world:
        store, key = world.store, world.key
        claimed = await world.begin()

        async def titled(text: str, *replaces: str) -> bool:
            job = JobRecord("title", "title", claimed.run.id, lease=60.0)
            await world.commit(claimed, Commit(jobs=(job,)))
            batch = await store.finish_job(key, "title", 1, _title(text, *replaces))
            expect(await _due(world) == [], "the job is gone in any case")
            head = (await world.snapshot()).thread
            if batch is not None:
                (event,) = batch.numbered()
                expect(event.type == "thread-updated" and event.run_id == "", "told of the thread")
                expect(event.seq == (await world.snapshot()).cursor, "by the log's next event")
                expect(head.title == text, "the title is there")
                expect(head.title_source == "generated", "with its source")
                expect(head.titled == TitleMark(EARLY, 2, 1), "and what it had seen")
            return batch is not None

        expect(await titled("ü 1"), "no title is replaced")
        listed, _ = await store.threads(key.partition, world.agent, 10, None)
        expect([head.title for head in listed] == ["ü 1"], "lists show it")
        expect(not await titled("2", ""), "one that is there is not, unless")
        expect(await titled("3", "", "generated"), "it may be")
        expect((await world.snapshot()).thread.updated_at == EARLY, "nothing else is changed")


async def check_labels(make: Make) -> None:
    """A-REASON-1: a label is on its part for all who read it, whether it came before or after."""
    async with opened(make) as world:
        store, key = world.store, world.key
        claimed = await world.begin(lease=0.0)
        run_id = claimed.run.id
        parts = (ReasoningPart("one"), "so", ReasoningPart(""), ReasoningPart("two"))
        message = world.message(run_id, *parts)
        jobs = [JobRecord(f"{message.id}:{n}", "label", run_id) for n in (0, 1)]
        await store.append(key, run_id, claimed.fence, [ReasoningEnd("r")], jobs=jobs)
        early = NewLabel(message.id, 1, "Zwei \u2028")
        batch = await store.finish_job(key, jobs[1].id, 1, early)
        expect(batch is not None and batch.run_id == run_id, "an event of the run tells of it")
        expect(await _due(world) == [jobs[0].id], "its job is not done again")
        expect(await store.finish_job(key, jobs[1].id, 1, early) is None, "nor twice")
        await world.commit(claimed, Commit([StepFinished(0, "stop")], message, labelled=True))
        await store.finish_job(key, jobs[0].id, 1, NewLabel(message.id, 0, "Eins"))

        def labels(found: object) -> list[str | None]:
            return [part.summary for part in found if isinstance(part, ReasoningPart)]  # type: ignore[attr-defined]  # parts

        want = ["Eins", None, "Zwei \u2028"]
        expect(labels((await world.snapshot()).messages[-1].parts) == want, "in a snapshot")
        expect(labels((await store.run_messages(key, run_id))[-1].parts) == want, "of a run")
        source = await store.run_source(key, run_id)
        expect(source is not None and labels(source.messages[-1].parts) == want, "for a job")
        taken = await world.must_claim()
        expect(labels(taken.messages[-1].parts) == want, "and for the next worker")
        await world.commit(taken, Commit(message=message))
        expect(labels((await world.snapshot()).messages[-1].parts) == want, "also if written anew")


async def check_void_labels(make: Make) -> None:
    """A label of a part that a reset took back is dropped with it, written or not."""
    async with opened(make) as world:
        store, key = world.store, world.key
        claimed = await world.begin()
        run_id = claimed.run.id
        message = world.message(run_id, ReasoningPart("new"))
        old = [JobRecord(f"{message.id}:old{n}", "label", run_id) for n in (0, 1)]
        other = JobRecord("other:0", "label", run_id, lease=60.0)
        await store.append(key, run_id, claimed.fence, [ReasoningEnd("r")], jobs=[*old, other])
        await store.finish_job(key, old[0].id, 1, NewLabel(message.id, 0, "old"))
        new = JobRecord(f"{message.id}:new", "label", run_id)
        await store.append(
            key, run_id, claimed.fence, [StepReset("again")], jobs=[new], unlabelled=message.id
        )
        late = await store.finish_job(key, old[1].id, 1, NewLabel(message.id, 0, "late"))
        expect(late is None, "one that comes later is not written")
        await world.commit(claimed, Commit([StepFinished(0, "stop")], message, labelled=True))
        (part,) = (await world.snapshot()).messages[-1].parts
        expect(part == ReasoningPart("new"), "one that came before is gone")
        expect(await _due(world) == [new.id], "those of what came after stay")
        expect(await store.postpone_job(key, other.id, 1, 0.0), "and those of other messages")


async def check_run_source(make: Make) -> None:
    """What a job after a run is given: the run, and the messages up to it, not beyond."""
    async with opened(make) as world:
        first = await world.begin("one")
        run_id = first.run.id
        await world.send("two")
        await world.say(first, "answer")
        await world.end(first)
        source = await world.store.run_source(world.key, run_id)
        expect(source is not None, "a run that has ended is found")
        if source is not None:
            expect(source.turn == first.turn == 1, "with its place")
            expect([m.text for m in source.messages] == ["one", "answer"], "and what it knew")
            expect(source.run.status == "completed", "as it ended")
            expect(source.thread.key == world.key, "and its thread")
        taken = await world.must_claim()
        expect(taken.turn == 2, "the next one has the next place")
        expect(await world.store.run_source(world.key, "none") is None, "no other is")
        expect(await world.store.run_source(World(world.store).key, run_id) is None, "R-7")


async def check_jobs_durable(make: Make) -> None:
    """R-38: a job that was committed is there after the store was closed and opened."""
    async with opened(make) as world:
        if not world.store.durable:
            return
        key, claimed = world.key, await world.begin()
        run_id = claimed.run.id
        end = RunEnd("completed", EARLY)
        job = JobRecord("a", "settled", run_id)
        await world.commit(claimed, Commit([RunFinished("completed")], end=end, jobs=(job,)))
    async with opened(make) as again:
        expect(await _due(World(again.store, key)) == ["a"], "it is kept")


JOB_CHECKS = (
    check_jobs_come_with_writes,
    check_one_attempt_counts,
    check_titles,
    check_labels,
    check_void_labels,
    check_run_source,
    check_jobs_durable,
)
