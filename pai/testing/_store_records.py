"""What a store promises of plugins' records."""

from __future__ import annotations

from pai.errors import LeaseLost
from pai.ports import RecordScope, RunHold
from pai.protocol import new_id
from pai.testing._store_world import Make, World, expect, opened, refuses

__all__ = ("RECORD_CHECKS",)

_KEYS = ("", "a", "a/", "a/1", "a/\x7f", "a/ä", "a/\uffff", "a/🙂", "a0", "b")
"""As they stand in order: by code point, where UTF-16 would put the last of ``a/`` before it."""


def _scope(world: World) -> RecordScope:
    return RecordScope(world.key.partition, "plugin", world.key.thread_id)


async def check_records(make: Make) -> None:
    """A record is what was written last, until it is deleted."""
    async with opened(make) as world:
        store, scope = world.store, _scope(world)
        expect(await store.get_record(scope, "k") is None, "nothing is there at first")
        expect(not await store.delete_record(scope, "k"), "nor to delete")
        await store.put_record(scope, "k", "1")
        await store.put_record(scope, "k", '{"ä":"🙂"}')
        expect(await store.get_record(scope, "k") == '{"ä":"🙂"}', "the last one written counts")
        big = f'"{"x" * 500_000}"'
        await store.put_record(scope, "big", big)
        expect(await store.get_record(scope, "big") == big, "a long one is kept whole")
        expect(await store.delete_record(scope, "k"), "what was there is deleted")
        expect(await store.get_record(scope, "k") is None, "and is gone")


async def check_records_listed(make: Make) -> None:
    """Records are listed by prefix, in the order of their keys' code points, in pages."""
    async with opened(make) as world:
        store, scope = world.store, _scope(world)
        for place, key in sorted(enumerate(_KEYS[1:]), key=lambda pair: str(pair[0] % 3)):
            await store.put_record(scope, key, str(place))
        all_of_it = [(key, str(place)) for place, key in enumerate(_KEYS[1:])]
        expect(await store.list_records(scope, "", "", 100) == all_of_it, "all, in order")
        some = await store.list_records(scope, "a/", "", 100)
        expect([key for key, _ in some] == list(_KEYS[2:8]), "those that begin so")
        page = await store.list_records(scope, "a/", "a/1", 2)
        expect([key for key, _ in page] == list(_KEYS[4:6]), "a page begins behind a key")
        expect(await store.list_records(scope, "a%", "", 9) == [], "a prefix is no pattern")


async def check_records_apart(make: Make) -> None:
    """R-7: a record belongs to one plugin, in one partition, of one thread or of none."""
    async with opened(make) as world:
        store, own = world.store, _scope(world)
        scopes = [
            own,
            own._replace(thread_id=""),
            own._replace(thread_id=new_id()),
            own._replace(partition=new_id()),
            own._replace(plugin="other"),
        ]
        for place, scope in enumerate(scopes):
            await store.put_record(scope, "k", str(place))
        await store.delete_record(scopes[2], "k")
        found = [await store.get_record(scope, "k") for scope in scopes]
        expect(found == ["0", "1", None, "3", "4"], "none is another's")
        expect(await store.list_records(own, "", "", 9) == [("k", "0")], "nor listed there")


async def check_records_fenced(make: Make) -> None:
    """R-42: a write within a run is refused when the run is not held any more."""
    async with opened(make) as world:
        store, scope = world.store, _scope(world)
        old = await world.begin(lease=0.0)
        stale = RunHold(world.key, old.run.id, old.fence)
        await store.put_record(scope, "k", "1", stale)
        taken = await world.must_claim()
        held = RunHold(world.key, taken.run.id, taken.fence)
        for hold, promise in (
            (stale, "after a takeover"),
            (held._replace(run_id=new_id()), "for another run"),
            (held._replace(key=World(store).key), "for another thread"),
        ):
            await refuses(LeaseLost, store.put_record(scope, "k", "2", hold), promise)
            await refuses(LeaseLost, store.put_record(scope, "new", "2", hold), promise)
            await refuses(LeaseLost, store.delete_record(scope, "k", hold), promise)
        expect(await store.list_records(scope, "", "", 9) == [("k", "1")], "nothing was written")
        await store.put_record(scope, "k", "3", held)
        expect(await store.delete_record(scope, "k", held), "who holds the run may")
        await world.end(taken)
        await refuses(LeaseLost, store.put_record(scope, "k", "4", held), "after the run's end")


async def check_records_durable(make: Make) -> None:
    """R-10: a record is there after the store was closed and opened."""
    async with opened(make) as world:
        scope = _scope(world)
        await world.store.put_record(scope, "k", "1")
        if not world.store.durable:
            return
    async with opened(make) as again:
        expect(await again.store.get_record(scope, "k") == "1", "it is kept")


RECORD_CHECKS = (
    check_records,
    check_records_listed,
    check_records_apart,
    check_records_fenced,
    check_records_durable,
)
