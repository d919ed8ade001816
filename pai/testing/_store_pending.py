"""What a store promises of runs that wait for answers, are given back, or replace others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import attrs

from pai.errors import AnswerConflict, CallsPending, InvalidInput, LeaseLost, ThreadNotFound
from pai.protocol import (
    CallRecord,
    Claimed,
    Commit,
    Decision,
    PendingCall,
    RunQueued,
    RunSuspended,
    Suspension,
    ToolCallPart,
    Usage,
)
from pai.testing._store_world import Make, World, expect, opened, refuses

__all__ = ("PENDING_CHECKS",)


def _waiting(call_id: str, *, seconds: float | None = None) -> CallRecord:
    expires = None if seconds is None else datetime.now(UTC) + timedelta(seconds=seconds)
    return CallRecord(
        call_id, "m", "tool", "waiting", input={"of": call_id}, rewritten=True, kind="approval",
        payload={"reason": "why"}, digest="digest", expires_at=expires,
    )  # fmt: skip


def _approve(call_id: str, *, digest: str | None = None, actor: str = "x") -> Decision:
    return Decision(call_id, ("approval",), {"type": "approve", "actor": actor}, digest)


def _deny(call_id: str) -> Decision:
    return Decision(call_id, ("approval",), {"type": "deny"})


async def _suspend(world: World, claimed: Claimed, *calls: CallRecord) -> bool:
    """Suspend a run at these calls; whether it is queued again at once."""
    ends = [call.expires_at for call in calls if call.expires_at is not None]
    how = Suspension(Usage(1, 2), 1, min(ends, default=None))
    parts = [ToolCallPart(call.call_id, call.tool, call.input) for call in calls]
    change = Commit(
        [RunSuspended(claimed.run.episode)],
        world.message(claimed.run.id, *parts) if parts else None,
        calls,
        suspend=how,
    )
    return (await world.commit(claimed, change)).more


async def check_suspended(make: Make) -> None:
    """R-1, R-22: it is the active run, nobody holds it, and what it waits for can be read."""
    async with opened(make) as world:
        claimed = await world.begin()
        run_id = claimed.run.id
        more = await _suspend(world, claimed, _waiting("a"), _waiting("b"))
        expect(not more, "it waits")
        expect(await world.claim() is None, "there is nothing to take")
        expect(world.key not in await world.store.waiting(10_000), "and no thread to wake")
        found = await world.snapshot()
        run = found.runs[0]
        expect(run.status == "suspended" and run.usage == Usage(1, 2), "its row says so")
        wanted = [
            PendingCall(
                name, "approval", "tool", {"of": name}, {"reason": "why"}, None, run_id, "digest"
            )
            for name in ("a", "b")
        ]
        expect(found.pending == wanted, "the snapshot has what it waits for")
        rows = await world.store.calls(world.key, run_id)
        expect([row.call_id for row in rows] == ["a", "b"], "and so have the rows of its calls")
        before = await world.traces()
        await refuses(LeaseLost, world.append(claimed, "x"), "its worker writes nothing more")
        renewed = world.store.renew(world.key, run_id, claimed.fence, 60.0)
        await refuses(LeaseLost, renewed, "and holds it no more")
        expect(await world.traces() == before, "nothing was written")


async def check_answers(make: Make) -> None:
    """R-3, R-20, O-16: answers are stored all or none; the run goes on before those that wait."""
    async with opened(make) as world:
        claimed = await world.begin()
        run_id, store, key = claimed.run.id, world.store, world.key
        await _suspend(world, claimed, _waiting("a"), _waiting("b"))
        before = await world.traces()
        for wrong in (
            [_approve("a"), _approve("c")],
            [_approve("a"), Decision("b", ("question",), {"type": "answer"})],
            [_approve("b", digest="another"), _approve("a")],
        ):
            await refuses(AnswerConflict, store.answer(key, run_id, wrong), "all or none")
        await refuses(ThreadNotFound, store.answer(key, "none", [_approve("a")]), "of no run")
        elsewhere = World(store)
        lost = store.answer(elsewhere.key, run_id, [_approve("a")])
        await refuses(ThreadNotFound, lost, "a thread of another partition is none")
        expect(await world.traces() == before, "nothing was written")
        answered = await store.answer(key, run_id, [_approve("a", digest="digest")], {"new": 1})
        expect(answered.batch is not None, "the log is told")
        expect(answered.run.status == "queued", "and the run is queued")
        expect([call.call_id for call in (await world.snapshot()).pending] == ["b"], "one is left")
        again = await store.answer(key, run_id, [_approve("a", actor="y")])
        expect(again.batch is None, "the same answer again changes nothing")
        await refuses(AnswerConflict, store.answer(key, run_id, [_deny("a")]), "another is none")
        expect(key in await store.waiting(10_000), "the thread is to be taken")
        taken = await world.must_claim()
        expect((taken.run.id, taken.run.episode, taken.run.attempt) == (run_id, 2, 1), "the run")
        expect(taken.run.request == {"new": 1}, "with its new request")
        expect(taken.takeovers == 0 and taken.fence > claimed.fence, "as no takeover")
        rows = {call.call_id: call for call in taken.calls}
        expect([row.status for row in rows.values()] == ["answered", "waiting"], "with its calls")
        expect(rows["a"].decisions[0]["actor"] == "x", "and the answers")


async def check_answer_before_it_suspends(make: Make) -> None:
    """R-21: one that is answered while it is worked on is queued when it suspends."""
    async with opened(make) as world:
        claimed = await world.begin()
        calls = (_waiting("a"), _waiting("b"))
        parts = [ToolCallPart(call.call_id, "tool", call.input) for call in calls]
        message = world.message(claimed.run.id, *parts)
        await world.commit(claimed, Commit([], message, calls))
        later = await world.send("later")
        answered = await world.store.answer(world.key, claimed.run.id, [_approve("a")])
        expect(answered.run.status == "running", "it goes on")
        expect(await world.claim() is None, "and stays with its worker")
        more = await _suspend(world, claimed)
        expect(more, "it is told to go on")
        taken = await world.must_claim()
        expect((taken.run.id, taken.run.episode) == (claimed.run.id, 2), "before those that wait")
        types = [kind for _, run_id, kind in await world.log() if run_id == claimed.run.id]
        expect(types[-3:] == ["run-suspended", "run-queued", "run-started"], "and the log says so")
        settled = attrs.evolve(_waiting("a"), status="settled", outcome="completed", output=1)
        await world.commit(taken, Commit([], calls=(settled,)))
        await world.end(taken)
        late = world.store.answer(world.key, claimed.run.id, [_approve("b")])
        await refuses(AnswerConflict, late, "an ended run takes no answer")
        expect((await world.must_claim()).run.id == later.run.id, "then comes the next")


async def check_expiry(make: Make) -> None:
    """R-21: a call that expires wakes its run, and is answered no more."""
    async with opened(make) as world:
        claimed = await world.begin()
        await _suspend(world, claimed, _waiting("a", seconds=-1.0), _waiting("b", seconds=3600.0))
        expect(world.key in await world.store.waiting(10_000), "the thread is to be taken")
        late = world.store.answer(world.key, claimed.run.id, [_approve("a")])
        await refuses(AnswerConflict, late, "it has expired")
        taken = await world.must_claim()
        expect((taken.run.episode, taken.run.attempt) == (2, 1), "in an episode of its own")
        expect([call.expired for call in taken.calls] == [True, False], "it says which")


async def check_cancel_suspended(make: Make) -> None:
    """R-3, R-14: it ends at once with its calls, and the queue goes on."""
    async with opened(make) as world:
        claimed = await world.begin()
        await _suspend(world, claimed, _waiting("a"))
        await refuses(CallsPending, world.send("x"), "nothing is sent behind it (R-3a)")
        (stopped,) = await world.store.cancel(world.key, claimed.run.id, "why")
        expect(stopped.batch is not None, "the log is told")
        found = await world.snapshot()
        expect((found.runs[0].status, found.runs[0].reason) == ("cancelled", "why"), "it ended")
        expect(found.runs[0].usage == Usage(1, 2), "with what it used")
        part = found.messages[1].parts[0]
        expect(isinstance(part, ToolCallPart) and part.outcome == "interrupted", "and its call")
        expect(found.pending == [], "nothing is pending")
        late = world.store.answer(world.key, claimed.run.id, [_approve("a")])
        await refuses(AnswerConflict, late, "and nothing is answered")
        expect((await world.begin("next")).run.status == "running", "the next one begins")


async def check_supersede(make: Make) -> None:
    """R-3a: its calls are denied and it ends, as the new run is accepted."""
    async with opened(make) as world:
        claimed = await world.begin()
        await _suspend(world, claimed, _waiting("a"))
        run = world.run()
        accepted = await world.store.accept(
            world.head(),
            run,
            world.message(run.id, "instead", role="user"),
            [RunQueued("send")],
            when_pending="supersede",
            claim=("worker", 60.0),
            started=[],
        )
        expect(accepted.claimed is not None, "the thread is free")
        (stopped,) = accepted.stopped
        expect(
            stopped.run_id == claimed.run.id and stopped.batch, "and the log has the other's end"
        )
        found = await world.snapshot()
        expect([run.status for run in found.runs] == ["cancelled", "running"], "both rows say so")
        part = found.messages[1].parts[0]
        expect(isinstance(part, ToolCallPart) and part.outcome == "denied", "its call is denied")


async def check_replace(make: Make) -> None:
    """A-RUN-2: a regenerate hides what stood behind its message, when it is claimed."""
    async with opened(make) as world:
        first = await world.begin("one")
        await world.say(first, "answer")
        await world.end(first)
        asked = (await world.snapshot()).messages[0]
        run = attrs.evolve(world.run(), operation="regenerate", after=asked.id)
        await world.store.accept(world.head(), run, None, [RunQueued("regenerate")])
        expect(await world.texts() == ["one", "answer"], "nothing is hidden before it starts")
        taken = await world.must_claim()
        expect([message.text for message in taken.messages] == ["one"], "then it is")
        await world.say(taken, "again")
        await world.end(taken)
        expect(await world.texts() == ["one", "again"], "for everybody")
        own = await world.store.run_messages(world.key, first.run.id)
        expect([message.text for message in own] == ["answer"], "but for its own run")
        gone = attrs.evolve(world.run(), after=own[0].id)
        before = await world.traces()
        refused = world.store.accept(world.head(), gone, None, [])
        await refuses(InvalidInput, refused, "what is hidden can't be gone on from")
        expect(await world.traces() == before, "nothing was written")


async def check_unwanted(make: Make) -> None:
    """A-DEF-7: a run that the caller can't work on stays as it is."""
    async with opened(make) as world:
        await world.send()
        before = await world.traces()
        seen: list[str] = []

        def takes(run: object) -> bool:
            seen.append(getattr(run, "version", ""))
            return False

        found = await world.store.claim(world.key, "other", 60.0, [], takes)
        expect(found is None and seen == ["1.0.0"], "it is asked, and left")
        expect(await world.traces() == before, "nothing was written")
        expect((await world.must_claim()).run.attempt == 1, "somebody else takes it")


PENDING_CHECKS = (
    check_suspended,
    check_answers,
    check_answer_before_it_suspends,
    check_expiry,
    check_cancel_suspended,
    check_supersede,
    check_replace,
    check_unwanted,
)
