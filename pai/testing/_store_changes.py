"""What a store promises of changes beside a run: titles, metadata, deletion."""

from __future__ import annotations

from datetime import timedelta

import anyio
import attrs

from pai.errors import Fault, InvalidInput, LeaseLost, ThreadNotFound
from pai.ports import RecordScope
from pai.protocol import (
    CallRecord,
    Commit,
    Event,
    Latest,
    MessageMetadata,
    Metadata,
    RunEnd,
    RunFinished,
    ThreadChange,
    ThreadKey,
    ThreadUpdated,
    ToolCallPart,
    new_id,
)
from pai.testing._store_world import (
    EARLY,
    Make,
    World,
    becomes,
    expect,
    opened,
    refuses,
    shows,
)

__all__ = ("CHANGE_CHECKS",)


def _refuse(stored: Metadata) -> Metadata:
    raise InvalidInput([Fault("metadata", "does not fit")])


async def check_update(make: Make) -> None:
    """Titles and metadata change beside the runs, and the log tells of it."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, "hi")
        cursor = (await world.snapshot()).cursor
        hidden = becomes(Metadata({"secret": 1}, {}))
        change = ThreadChange(
            "Title", "manual", shows(a=1), claimed.run.id, shows(b=2), {message.id: shows(c=3)}
        )
        batch = await world.store.update(world.key, world.agent, change)
        expect(batch.first == cursor + 1, "its events are numbered on")
        expect(batch.run_id == claimed.run.id, "they are the run's, where that changes")
        found = await world.snapshot()
        head = found.thread
        expect((head.title, head.title_source) == ("Title", "manual"), "the title")
        expect(head.metadata.public == {"a": 1}, "the thread's metadata")
        expect(found.runs[0].metadata.public == {"b": 2}, "the run's")
        expect(found.messages[1].metadata.public == {"c": 3}, "the message's")
        told = [
            event
            for one in await world.store.events(world.key, cursor)
            for event in one.numbered(cursor)
        ]
        want = ThreadUpdated("Title", "manual", {"a": 1}, {"b": 2})
        expect(len(told) == 2 and attrs.evolve(told[0]) == want, "one event for all of it")
        expect(isinstance(told[1], MessageMetadata), "and one a message")
        cursor = found.cursor
        batch = await world.store.update(
            world.key, world.agent, ThreadChange(thread_metadata=hidden)
        )
        expect(batch.size == 1 and batch.run_id == "", "public metadata became another")
        quiet = ThreadChange(thread_metadata=becomes(Metadata({"secret": 2}, {})))
        batch = await world.store.update(world.key, world.agent, quiet)
        expect(batch.size == 0, "what clients don't see is not told")
        await world.end(claimed)
        again = await world.begin()
        expect(again.thread.title == "Title", "a new run is given the title")
        expect(again.thread.metadata.private == {"secret": 2}, "and the metadata")


async def check_update_is_whole(make: Make) -> None:
    """A-META-5: a change that is refused leaves nothing of itself."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, "hi")
        before = await world.traces()
        run_id, update = claimed.run.id, world.store.update
        for error, promise, change in (
            (InvalidInput, "a merge that is refused",
             ThreadChange("T", "manual", shows(a=1), run_id, shows(a=1), {message.id: _refuse})),
            (InvalidInput, "one of the run", ThreadChange("T", "manual", shows(a=1), run_id, _refuse)),
            (InvalidInput, "one of the thread", ThreadChange("T", None, _refuse, run_id, shows(a=1))),
            (ThreadNotFound, "no such run", ThreadChange("T", "manual", None, "none", shows(a=1))),
            (ThreadNotFound, "no such message",
             ThreadChange("T", "manual", shows(a=1), message_metadata={"none": shows(a=1)})),
        ):  # fmt: skip
            await refuses(error, update(world.key, world.agent, change), promise)
            expect(await world.traces() == before, f"{promise}: nothing of it is there")
        for promise, key, agent in (
            ("another agent's", world.key, "other"),
            ("of another partition", ThreadKey(new_id(), world.key.thread_id), world.agent),
            ("none", ThreadKey(world.key.partition, new_id()), world.agent),
        ):
            await refuses(ThreadNotFound, update(key, agent, ThreadChange("T")), promise)
        expect(await world.traces() == before, "and nothing is written")
        refused = Commit([RunFinished("completed")], run_metadata=_refuse)
        refused.end = RunEnd("completed", EARLY)
        await refuses(InvalidInput, world.commit(claimed, refused), "a commit's merge")
        expect(await world.traces() == before, "a commit that is refused leaves nothing either")


async def check_no_update_is_lost(make: Make) -> None:
    """A-META-5: whoever patches at the same time, each patch is there afterwards."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, "hi")

        async def beside(n: int) -> None:
            merge = shows(**{f"beside{n}": n})
            change = ThreadChange(None, None, merge, claimed.run.id, merge, {message.id: merge})
            await world.store.update(world.key, world.agent, change)

        async def within(n: int) -> None:
            merge = shows(**{f"within{n}": n})
            change = Commit([], None, (), merge, merge, {message.id: merge})
            committed = await world.commit(claimed, change)
            changed = committed.changed
            if changed is None:
                raise AssertionError("a commit says what became of metadata")
            for bag in (changed.run, changed.thread, changed.messages[message.id]):
                expect(bag is not None and f"within{n}" in bag.public, "a commit says what became")

        async with anyio.create_task_group() as tasks:
            for n in range(5):
                tasks.start_soon(beside, n)
                tasks.start_soon(within, n)
        found = await world.snapshot()
        for bag in (
            found.thread.metadata, found.runs[0].metadata, found.messages[1].metadata,
        ):  # fmt: skip
            expect(len(bag.public) == 10, "none is lost")


async def check_events_show_what_became(make: Make) -> None:
    """R-25: what a commit's events show of metadata is what is stored, others' patches included."""
    async with opened(make) as world:
        claimed = await world.begin()
        message = await world.say(claimed, "hi")
        beside = ThreadChange(None, None, shows(b=1), claimed.run.id, shows(b=1))
        await world.store.update(world.key, world.agent, beside)
        events: list[Event] = [
            ThreadUpdated(metadata={"a": 1}),
            ThreadUpdated(run_metadata={"a": 1}),
            MessageMetadata(message.id, {"a": 1}),
            ThreadUpdated("T"),
        ]
        change = Commit(events, None, (), shows(a=1), shows(a=1), {message.id: shows(a=1)})
        committed = await world.commit(claimed, change)
        told = committed.batch.events
        expect(told[0] == ThreadUpdated(metadata={"a": 1, "b": 1}), "the thread's")
        expect(told[1] == ThreadUpdated(run_metadata={"a": 1, "b": 1}), "the run's")
        expect(told[3] == ThreadUpdated("T"), "and what shows none stays as it is")
        batches = await world.store.events(world.key, committed.batch.first - 1)
        expect(batches[0].events == told, "the log has the same")
        late = ThreadChange(run_id=claimed.run.id, run_metadata=shows(c=1))
        await world.store.update(world.key, world.agent, late)
        finished = await world.end(claimed)
        last = finished.batch.events[-1]
        want = {"a": 1, "b": 1, "c": 1}
        expect(isinstance(last, RunFinished) and last.metadata == want, "the run's end says all")
        # A message that is committed again keeps what others made of its metadata.
        again = await world.begin()
        mine = await world.say(again, "draft")
        patch = ThreadChange(message_metadata={mine.id: shows(kept=True)})
        await world.store.update(world.key, world.agent, patch)
        await world.commit(again, Commit(message=mine))
        kept = (await world.snapshot()).messages[-1].metadata.public
        expect(kept == {"kept": True}, "a message's metadata is its own")


async def check_delete(make: Make) -> None:
    """R-16, R-42: every row of a thread goes, and none of another."""
    async with opened(make) as world:
        store, agent = world.store, world.agent
        claimed = await world.begin()
        message = await world.say(claimed, ToolCallPart("c", "add"))
        await world.commit(claimed, Commit(calls=(CallRecord("c", message.id, "add", "started"),)))
        waiting = await world.send("waits")
        other = World(store, ThreadKey(world.key.partition, new_id()))
        await other.begin("other")
        scopes = [
            RecordScope(world.key.partition, "plugin", thread_id)
            for thread_id in (world.key.thread_id, other.key.thread_id, "")
        ]
        for scope in scopes:
            await store.put_record(scope, "k", "1")
        before = await other.traces()
        expect(await store.delete(world.key, "other") is None, "another agent's is not found")
        expect(await store.delete(World(store).key, agent) is None, "nor one that there is not")
        expect(await world.traces() is not None, "and stays")
        head = await store.delete(world.key, agent)
        expect(head is not None and head.created_at == EARLY, "the head that it had is told")
        expect(await store.delete(world.key, agent) is None, "it goes once")
        expect(await world.traces() is None and await world.log() == [], "nothing is left")
        expect(await store.head(world.key) is None, "no head")
        expect(await store.latest(world.key) == Latest(None, None), "no run, no message")
        for run in (claimed.run, waiting.run):
            expect(await store.run(world.key, run.id) is None, "no run can be found")
            expect(not await store.cancel(world.key, run.id, "x"), "or cancelled")
        expect(await world.claim() is None, "or taken")
        expect(world.key not in await store.waiting(10_000), "none waits")
        lost = "who held a run of it has lost it"
        await refuses(LeaseLost, world.append(claimed, "x"), lost)
        await refuses(LeaseLost, world.end(claimed), lost)
        renewed = store.renew(world.key, claimed.run.id, claimed.fence, 60.0)
        await refuses(LeaseLost, renewed, lost)
        found = [await store.get_record(scope, "k") for scope in scopes]
        expect(found == [None, "1", "1"], "its records are gone, and no others")
        expect(await other.traces() == before, "other threads stay as they are")
        children = [(other.key, other.agent), (World(store).key, agent)]
        none = await store.delete(world.key, agent, children)
        expect(none is None and await other.traces() == before, "nor go without their parent")
        page, _ = await store.threads(world.key.partition, agent, 10, None)
        expect([item.key for item in page] == [other.key], "it is in no list")


async def check_made_again(make: Make) -> None:
    """R-4, R-16: a thread of the same key that is made later shares nothing with the first."""
    async with opened(make) as world:
        store = world.store
        run = world.run("r")
        old = (await world.send("old", run=run, lease=60.0)).claimed
        expect(old is not None, "a free thread's run is claimed")
        child = World(store)
        await child.begin("child")
        children = [(child.key, child.agent), (World(store).key, child.agent)]
        await store.delete(world.key, world.agent, children)
        expect(await child.traces() is None, "threads of its subagents go with it")
        world.born = EARLY + timedelta(seconds=1)
        new = (await world.send("new", run=world.run("r"), lease=60.0)).claimed
        if old is None or new is None:
            return
        expect(new.batch.last == 2, "its events are numbered from 1")
        expect([m.text for m in new.messages] == ["new"], "it has its own messages")
        before = await world.traces()
        await refuses(LeaseLost, world.append(old, "x"), "a run of the same id is another run")
        await refuses(LeaseLost, world.end(old), "a run of the same id is another run")
        expect(await world.traces() == before, "nothing is written")
        born = new.thread.created_at
        expect(len(await store.events(world.key, 0, born=born)) > 0, "its log can be asked for")
        stale = store.events(world.key, 0, born=old.thread.created_at)
        await refuses(ThreadNotFound, stale, "and is not taken for the first one's")


async def check_head(make: Make) -> None:
    """The head, the newest run and the last message can be asked for."""
    async with opened(make) as world:
        store = world.store
        expect(await store.head(world.key) is None, "there is none at first")
        expect(await store.latest(world.key) == Latest(None, None), "nor anything of it")
        accepted = await world.send()
        head = await store.head(world.key)
        expect(head is not None and head.created_at == EARLY == accepted.born, "when it was made")
        expect(head is not None and head.agent == world.agent, "and whose it is")
        claimed = await world.must_claim()
        message = await world.say(claimed, "hi")
        expect(await store.latest(world.key) == Latest(claimed.run.id, message.id), "the newest")
        queued = await world.send("waits")
        found = await store.latest(world.key)
        expect(found.run_id == queued.run.id, "also if it waits")


CHANGE_CHECKS = (
    check_update,
    check_update_is_whole,
    check_no_update_is_lost,
    check_events_show_what_became,
    check_delete,
    check_made_again,
    check_head,
)
