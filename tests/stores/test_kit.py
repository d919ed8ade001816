"""Every store keeps every promise of the port, on both event loops; and the kit finds liars."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from typing import Any

import anyio
import attrs
import pytest

from pai.errors import LeaseLost
from pai.ports import Store
from pai.protocol import Metadata, Stopped
from pai.stores import MemoryStore
from pai.testing._store_kit import STORE_CHECKS, Check, check_store

Make = Callable[[], Store]
pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
async def test_a_store_keeps_its_promises(make: Make, check: Check):
    await check(make)


async def test_the_whole_kit_passes_a_good_store():
    await check_store(MemoryStore)


class Unfenced(MemoryStore):
    """Takes writes of whoever knows the run."""

    async def append(self, key, run_id, fence, events, **more):
        here = self._threads.get(key)
        if here is None:
            raise LeaseLost("no")
        return here.log(run_id, events)


class Gullible(MemoryStore):
    """Takes one request for another."""

    async def accept(self, thread, run, message, events, **options):
        here = self._threads.get(thread.key)
        if here is not None and run.id in here.runs:
            run.digest = here.runs[run.id].digest
        return await super().accept(thread, run, message, events, **options)


class Stackwise(MemoryStore):
    """Starts the newest run first."""

    async def claim(self, key, owner, lease, started, takes=None):
        here = self._threads.get(key)
        if here is not None:
            here.queue = dict.fromkeys(reversed(here.queue))
        return await super().claim(key, owner, lease, started, takes)


class Gapped(MemoryStore):
    """Numbers an event twice."""

    async def append(self, key, run_id, fence, events, **more):
        batch = await super().append(key, run_id, fence, events, **more)
        self._threads[key].events += 1
        return batch


class Halfway(MemoryStore):
    """Writes a commit's events before it looks at the rest."""

    async def commit(self, key, run_id, fence, change, leaves=None):
        await self.append(key, run_id, fence, change.events)
        return await super().commit(key, run_id, fence, attrs.evolve(change, events=[]), leaves)


class Unscoped(MemoryStore):
    """Ignores the partition."""

    async def snapshot(self, key, agent):
        own = next((k for k in self._threads if k.thread_id == key.thread_id), key)
        return await super().snapshot(own, agent)


class Greedy(MemoryStore):
    """Gives a run to all who ask."""

    async def claim(self, key, owner, lease, started, takes=None):
        here = self._threads.get(key)
        if here is not None:
            here.ready = 0.0
        return await super().claim(key, owner, lease, started, takes)


class Torn(MemoryStore):
    """Can be cancelled between two writes."""

    async def accept(self, thread, run, message, events, **options):
        made = await super().accept(thread, run, None, events, **options)
        await anyio.lowlevel.checkpoint()
        if message is not None:
            self._threads[thread.key].put(message, 1)
        return made


class Deaf(MemoryStore):
    """Tells nobody that a run shall be cancelled."""

    async def renew(self, key, run_id, fence, lease):
        await super().renew(key, run_id, fence, lease)

    async def cancel(self, key, run_id, reason, leaves=None):
        here = self._threads.get(key)
        if here is not None and here.active is not None and here.active.id == run_id:
            return [Stopped(key, run_id, reason)]
        return await super().cancel(key, run_id, reason, leaves)


class Heartless(MemoryStore):
    """Leaves the runs of subagents to themselves."""

    def stop_subagents(self, key, run_id, calls, reason, leaves, found):
        pass


class Grudging(MemoryStore):
    """Counts a run that was given back as taken over."""

    async def release(self, key, run_id, fence, delay=0.0):
        batch = await super().release(key, run_id, fence, delay)
        self._threads[key].takeovers += 1
        return batch


class Agreeable(MemoryStore):
    """Takes each answer as the first."""

    async def answer(self, key, run_id, decisions, request=None):
        here = self._threads.get(key)
        for call_id, call in here.calls.get(run_id, {}).items() if here is not None else ():
            if call.status == "answered":
                here.calls[run_id][call_id] = attrs.evolve(call, status="waiting", decisions=())
        return await super().answer(key, run_id, decisions, request)


class Sleepless(MemoryStore):
    """Gives a run that waits to whoever asks."""

    async def commit(self, key, run_id, fence, change, leaves=None):
        committed = await super().commit(key, run_id, fence, change, leaves)
        if change.suspend is not None:
            self._threads[key].ready = 0.0
        return committed


class Rash(MemoryStore):
    """Gives a run to whoever can't work on it."""

    async def claim(self, key, owner, lease, started, takes=None):
        return await super().claim(key, owner, lease, started)


class Careless(MemoryStore):
    """Writes records for whoever says so."""

    async def put_record(self, scope, key, value, hold=None):
        await super().put_record(scope, key, value)


class Shared(MemoryStore):
    """Mixes a plugin's records of all threads."""

    async def put_record(self, scope, key, value, hold=None):
        await super().put_record(scope._replace(thread_id=""), key, value, hold)

    async def get_record(self, scope, key):
        return await super().get_record(scope._replace(thread_id=""), key)


class Jumbled(MemoryStore):
    """Sorts keys as UTF-16 does."""

    async def list_records(self, scope, prefix, after, limit):
        found = await super().list_records(scope, prefix, after, limit)
        return sorted(found, key=lambda row: row[0].encode("utf-16-be"))


class Forgetful(MemoryStore):
    """Writes over what others have patched meanwhile."""

    async def update(self, key, agent, change):
        here = self._threads.get(key)
        if here is not None and change.thread_metadata is not None:
            merge = change.thread_metadata
            change = attrs.evolve(change, thread_metadata=lambda _: merge(Metadata()))
        return await super().update(key, agent, change)


class Clinging(MemoryStore):
    """Keeps records of a thread that is deleted."""

    async def delete(self, key, agent, children=()):
        kept = dict(self._records)
        head = await super().delete(key, agent, children)
        self._records = kept
        return head


class Haunted(MemoryStore):
    """Numbers the fences of each thread alike."""

    async def accept(self, thread, run, message, events, **options):
        fresh = thread.key not in self._threads
        accepted = await super().accept(thread, run, message, events, **options)
        if fresh and accepted.claimed is not None:
            self._threads[thread.key].fence = 1
            accepted = attrs.evolve(accepted, claimed=attrs.evolve(accepted.claimed, fence=1))
        return accepted


class Stale(MemoryStore):
    """Shows in the log what a worker believed of metadata."""

    async def commit(self, key, run_id, fence, change, leaves=None):
        events = [copy(event) for event in change.events]
        committed = await super().commit(key, run_id, fence, change, leaves)
        committed.batch.events[:] = events
        return committed


class Mixing(MemoryStore):
    """Gives the log of any thread of a key."""

    async def events(self, key, after, limit=500, *, born=None):
        return await super().events(key, after, limit)


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        (Unfenced, "check_fence"),
        (Gullible, "check_same_request"),
        (Stackwise, "check_order"),
        (Gapped, "check_numbers"),
        (Halfway, "check_commit_is_whole"),
        (Unscoped, "check_partitions"),
        (Greedy, "check_one_claim_wins"),
        (Torn, "check_cancelled_caller"),
        (Deaf, "check_cancel_running"),
        (Heartless, "check_subagents_end"),
        (Grudging, "check_release"),
        (Agreeable, "check_answers"),
        (Sleepless, "check_suspended"),
        (Rash, "check_unwanted"),
        (Careless, "check_records_fenced"),
        (Shared, "check_records_apart"),
        (Jumbled, "check_records_listed"),
        (Forgetful, "check_no_update_is_lost"),
        (Clinging, "check_delete"),
        (Haunted, "check_made_again"),
        (Stale, "check_events_show_what_became"),
        (Mixing, "check_made_again"),
    ],
)
async def test_the_kit_finds_a_broken_promise(broken: Any, found: str):
    with pytest.raises(ExceptionGroup) as caught:
        await check_store(broken)
    notes = [note for error in caught.value.exceptions for note in error.__notes__]
    assert f"in {found}" in notes
