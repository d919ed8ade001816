"""What a store promises of what lies in it: messages, calls, events, threads."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import anyio
import attrs

from pai.errors import (
    InvalidInput,
    LeaseLost,
    StoreError,
    ThreadNotFound,
)
from pai.protocol import (
    CallRecord,
    Commit,
    Metadata,
    RunEnd,
    TextDelta,
    TextPart,
    ThreadKey,
    ToolCallPart,
    new_id,
)
from pai.testing._store_world import EARLY, Make, World, becomes, expect, opened, refuses

__all__ = ("CONTENT_CHECKS",)


async def check_accepted_is_there(make: Make) -> None:
    """What was accepted can be read back as it was."""
    async with opened(make) as world:
        run = world.run()
        run.metadata = Metadata({"secret": 1}, {"shown": [True, None, 1.5, "ü"]})
        run.parent_run_id = "parent"
        accepted = await world.send("hello", run=run)
        expect(accepted.batch is not None and accepted.batch.first == 1, "the log begins at 1")
        expect(not accepted.known and accepted.claimed is None, "a new run only waits")
        found = await world.snapshot()
        (kept,), (message,) = found.runs, found.messages
        expect(kept.status == "queued" and kept.attempt == 0, "an accepted run is queued")
        for name in ("id", "agent", "version", "operation", "request", "digest", "created_at",
                     "metadata", "parent_run_id", "episode"):  # fmt: skip
            expect(getattr(kept, name) == getattr(run, name), f"a run keeps its {name}")
        expect(message.parts == (TextPart("hello"),), "a message keeps its parts")
        expect(message.created_at == EARLY, "a message keeps its time to the microsecond")
        expect(found.thread.created_at == EARLY, "a thread keeps its time")
        expect(found.cursor == 1, "the cursor is the last event's number")
        expect(await world.log() == [(1, run.id, "run-queued")], "the event is in the log")
        run.status = "failed"
        again = await world.store.run(world.key, run.id)
        expect(again is not None and again.status == "queued", "a caller's record is its own")


async def check_foreign_agent(make: Make) -> None:
    """A-RUN-5: a thread belongs to one agent, and does not exist for others."""
    async with opened(make) as world:
        await world.send()
        before = await world.traces()
        stranger = World(world.store, world.key)
        stranger.agent = "other"
        await refuses(ThreadNotFound, stranger.send(), "another agent's thread is not found")
        expect(await world.store.snapshot(world.key, "other") is None, "nor can it be read")
        expect(await world.traces() == before, "nothing is written")


async def check_partitions(make: Make) -> None:
    """R-7: a thread of another partition does not exist."""
    async with opened(make) as world:
        claimed = await world.begin("mine")
        other = World(world.store, ThreadKey(new_id(), world.key.thread_id))
        expect(await other.traces() is None, "it cannot be read")
        expect(await other.log() == [], "its log is empty")
        expect(await other.store.run(other.key, claimed.run.id) is None, "its runs are not there")
        await refuses(LeaseLost, other.append(claimed, "x"), "it cannot be written")
        expect(not await other.store.cancel(other.key, claimed.run.id, "no"), "nor cancelled")
        await other.send("theirs", run=other.run(claimed.run.id))
        expect(await world.texts() == ["mine"], "one id in two partitions is two threads")
        expect(await other.texts() == ["theirs"], "and two runs")


async def check_commit_is_whole(make: Make) -> None:
    """A commit that is refused leaves nothing of itself."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, ToolCallPart("c", "add"))
        ended = CallRecord("c", message.id, "add", "settled", "completed", 1)
        await world.commit(claimed, Commit(calls=(ended,)))
        before = await world.traces()
        new = world.message(claimed.run.id, "half")
        bag = Metadata({}, {"half": True})
        for promise, change in (
            ("metadata of no message", Commit(message_metadata={"none": becomes(bag)})),
            ("a call that has settled", Commit(calls=(ended,))),
        ):
            change.events = [TextDelta("1", "half")]
            change.message = new
            change.run_metadata = change.thread_metadata = becomes(bag)
            change.end = RunEnd("completed", EARLY)
            await refuses(StoreError, world.commit(claimed, change), promise)
            expect(await world.traces() == before, f"{promise}: nothing of it is there")


async def check_calls_in_messages(make: Make) -> None:
    """R-12: a call's end is in its message for all who read it."""
    async with opened(make) as world:
        claimed = await world.begin(lease=0.0)
        plain, edited, failed = (ToolCallPart(name, "add", {"n": 1}) for name in "abc")
        message = await world.say(claimed, "so:", plain, edited, failed, ToolCallPart("d", "add"))
        for call in (
            CallRecord("a", message.id, "add", "settled", "completed", {"sum": [1, None]}),
            CallRecord("b", message.id, "add", "settled", "completed", 0, None, {"n": 2}, True),
            CallRecord("c", message.id, "add", "settled", "failed", None, "no \x00 such thing"),
            CallRecord("d", message.id, "add", "started"),
        ):
            await world.commit(claimed, Commit(calls=(call,)))
        want = (
            TextPart("so:"),
            ToolCallPart("a", "add", {"n": 1}, "completed", {"sum": [1, None]}),
            ToolCallPart("b", "add", {"n": 2}, "completed", 0),
            ToolCallPart("c", "add", {"n": 1}, "failed", None, "no \x00 such thing"),
            ToolCallPart("d", "add"),
        )
        expect((await world.snapshot()).messages[1].parts == want, "in a snapshot")
        (own,) = await world.store.run_messages(world.key, claimed.run.id)
        expect(own.parts == want, "in what the run wrote, which is not the user's message")
        again = await world.must_claim()
        expect(again.messages[1].parts == want, "in what a worker is given")
        expect([call.call_id for call in again.calls] == ["d"], "and the rest is open")


async def check_message_replaced(make: Make) -> None:
    """A message that is committed again takes its own place."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, "draft", ToolCallPart("c", "add"))
        await world.send("queued")
        call = CallRecord("c", message.id, "add", "settled", "completed", 3)
        await world.commit(claimed, Commit(calls=(call,)))
        again = attrs.evolve(message, parts=(TextPart("final"), ToolCallPart("c", "add")))
        await world.commit(claimed, Commit(message=again))
        found = (await world.snapshot()).messages
        expect([m.text for m in found] == ["hello", "final", "queued"], "where it was")
        expect(found[1].id == message.id, "under its id")
        ended = ToolCallPart("c", "add", None, "completed", 3)
        expect(found[1].parts[1] == ended, "with what is known of its calls")


async def check_metadata(make: Make) -> None:
    """Metadata of run, thread and message is what it was made, and otherwise kept."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, "hi")
        bags = [Metadata({"p": n}, {"q": str(n)}) for n in range(3)]
        change = Commit(run_metadata=becomes(bags[0]), thread_metadata=becomes(bags[1]))
        change.message_metadata = {message.id: becomes(bags[2])}
        await world.commit(claimed, change)
        await world.append(claimed, "x")
        await world.end(claimed)
        found = await world.snapshot()
        expect(found.runs[0].metadata == bags[0], "the run's")
        expect(found.thread.metadata == bags[1], "the thread's")
        expect(found.messages[1].metadata == bags[2], "the message's")
        await world.end(await world.begin())
        expect((await world.snapshot()).thread.metadata == bags[1], "a new run keeps it")


async def check_numbers(make: Make) -> None:
    """Events are numbered from 1 without a gap, whoever writes at the same time."""
    async with opened(make) as world:
        claimed = await world.begin()
        firsts: list[tuple[int, int]] = []

        async def write() -> None:
            for size in range(1, 6):
                batch = await world.append(claimed, *["x"] * size)
                firsts.append((batch.first, batch.last))

        async with anyio.create_task_group() as tasks:
            for _ in range(4):
                tasks.start_soon(write)
                tasks.start_soon(world.send)
        log = await world.log()
        expect([row[0] for row in log] == list(range(1, len(log) + 1)), "no gap, no double")
        expect(len(log) == 2 + 4 * 15 + 4, "and nothing is lost")
        expect(all(a[1] < b[0] for a, b in pairwise(sorted(firsts))), "batches do not overlap")
        empty = await world.append(claimed)
        expect(empty.first == len(log) + 1 and empty.size == 0, "an empty batch takes no number")


async def check_snapshot_and_events(make: Make) -> None:
    """R-25: a snapshot and the events after its cursor are all there is."""
    async with opened(make) as world:
        claimed = await world.begin()
        await world.append(claimed, "a", "b", "c")
        cursor = (await world.snapshot()).cursor
        expect(cursor == 5, "a snapshot's cursor is the last event's number")
        expect(await world.log(cursor) == [], "nothing is after it yet")
        await world.end(claimed)
        expect([row[0] for row in await world.log(cursor)] == [6], "then what came after it")
        expect([row[0] for row in await world.log(3)] == [4, 5, 6], "also from within a batch")
        one = await world.store.events(world.key, 2, 1)
        expect([batch.last for batch in one] == [5], "at most as many batches as asked for")
        expect([e.type for e in one[0].events] == ["text-delta"] * 3, "events are as they were")


async def check_history_by_run(make: Make) -> None:
    """A run is given what was said before it, and not what waits behind it."""
    async with opened(make) as world:
        first = await world.begin("one")
        await world.send("two")
        await world.say(first, "answer one")
        await world.store.renew(world.key, first.run.id, first.fence, 0.0)
        first = await world.must_claim()
        expect([m.text for m in first.messages] == ["one", "answer one"], "not what waits")
        await world.end(first)
        second = await world.must_claim()
        told = [m.text for m in second.messages]
        expect(told == ["one", "answer one", "two"], "run by run")
        expect(await world.texts() == ["one", "two", "answer one"], "a reader: as they came")
        await world.end(second)
        for _ in range(40):
            await world.send("more")
            await world.end(await world.must_claim())
        last = await world.begin("last")
        told = [m.text for m in last.messages]
        expect(told[:3] == ["one", "answer one", "two"] and told[-1] == "last", "of any length")
        expect(len(told) == 44, "and nothing is missing")


async def check_threads(make: Make) -> None:
    """An agent's threads come in pages, the one that moved last first."""
    async with opened(make) as world:
        partition = world.key.partition
        keys = [ThreadKey(partition, f"t{n}") for n in range(5)]
        for minutes, key in enumerate(keys):
            one = World(world.store, key)
            await one.send(run=one.run(minutes=minutes))
        moved = World(world.store, keys[1])
        await moved.end(await moved.must_claim(), minutes=9)
        stranger = World(world.store, ThreadKey(partition, "t9"))
        stranger.agent = "other"
        await stranger.send()
        seen: list[str] = []
        after: str | None = None
        for size in (2, 2, 1):
            page, after = await world.store.threads(partition, "main", 2, after)
            expect(len(page) == size, "a page is full but for the last")
            seen += [head.key.thread_id for head in page]
        expect(after is None, "the last page has no next")
        expect(seen == ["t1", "t4", "t3", "t2", "t0"], "newest first, each once")
        page, _ = await world.store.threads(partition, "main", 9, None)
        expect(page[0].updated_at == EARLY + timedelta(minutes=9), "a run's end moves a thread")
        expect((await world.store.threads(new_id(), "main", 9, None))[0] == [], "only its own")
        wrong = world.store.threads(partition, "main", 2, "nonsense")
        await refuses(InvalidInput, wrong, "a cursor that is none")


async def check_any_text(make: Make) -> None:
    """R-29: whatever a model streams is kept, also what is no proper text."""
    async with opened(make) as world:
        odd = 'ü 🙂 \x00 \ud83d half " \\ \u2028 ' + "x" * 70_000
        claimed = await world.begin(odd)
        await world.append(claimed, odd)
        await world.say(claimed, ToolCallPart("c", "t", {"k\x00": odd}, raw=odd))
        found = await world.snapshot()
        expect(found.messages[0].text == odd, "in a user's message")
        expect(getattr(found.messages[1].parts[0], "raw", "") == odd, "in a call")
        (batch,) = await world.store.events(world.key, 2, 1)
        expect(getattr(batch.events[0], "text", "") == odd, "in an event")


async def check_cancelled_caller(make: Make) -> None:
    """A call whose caller is cancelled is done whole, or not at all."""
    async with opened(make) as world:
        for steps in range(6):
            one = World(world.store)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(one.send)
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
                tasks.cancel_scope.cancel()
            await World(world.store).send()  # What was under way is done by now.
            found = await one.store.snapshot(one.key, one.agent)
            if found is not None:
                whole = (len(found.messages), len(found.runs), found.cursor, len(await one.log()))
                expect(whole == (1, 1, 1, 1), "all of it is there")


async def check_durable(make: Make) -> None:
    """R-10: what a finished method wrote is there after the store was closed and opened."""
    async with opened(make) as world:
        claimed = await world.begin(lease=0.0)
        await world.say(claimed, "kept")
        await world.send("queued")
        before = await world.traces()
        if not world.store.durable:
            return
    async with opened(make) as again:
        same = World(again.store, world.key)
        expect(await same.traces() == before, "nothing is lost, nothing is added")
        taken = await same.must_claim()
        expect(taken.run.id == claimed.run.id and taken.run.attempt == 2, "work goes on")
        await same.end(taken)
        expect((await same.must_claim()).run.attempt == 1, "and so does the queue")


CONTENT_CHECKS = (
    check_accepted_is_there,
    check_foreign_agent,
    check_partitions,
    check_commit_is_whole,
    check_calls_in_messages,
    check_message_replaced,
    check_metadata,
    check_numbers,
    check_snapshot_and_events,
    check_history_by_run,
    check_threads,
    check_any_text,
    check_cancelled_caller,
    check_durable,
)
