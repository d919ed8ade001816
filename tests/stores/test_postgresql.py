"""What is PostgreSQL's own: whose database it is, its clock, its errors."""

from __future__ import annotations

import time
from typing import Any

import anyio
import pytest

from pai.errors import MigrationNeeded, StoreError
from pai.ports import Store
from pai.stores import open_store
from pai.stores._sql import SqlStore
from pai.stores._sql.tables import VERSION
from pai.testing._store_world import World

pytestmark = pytest.mark.anyio


def run(url: str, *statements: str) -> Any:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else None


async def opened(url: str) -> SqlStore:
    store = open_store(url)
    assert isinstance(store, SqlStore)
    await store.open()
    return store


async def test_tables_of_others_are_left_alone(postgres: str):
    run(postgres, "create table orders (id int)")
    await (await opened(postgres)).close()
    assert run(postgres, "select count(*) from orders") == [(0,)]


async def test_a_table_of_others_with_our_name_is_refused(postgres: str):
    run(postgres, "create table events (id int)")
    with pytest.raises(StoreError, match="something else"):
        await opened(postgres)
    tables = "select relname from pg_class where relnamespace = 'public'::regnamespace"
    assert run(postgres, tables) == [("events",)]


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [(0, MigrationNeeded, "pai db upgrade"), (VERSION + 1, StoreError, "newer pai")],
)
async def test_another_version_is_refused(
    postgres: str, version: int, error: type[Exception], words: str
):
    await (await opened(postgres)).close()
    run(postgres, f"update meta set version = {version}")
    with pytest.raises(error, match=words):
        await opened(postgres)


async def test_many_may_begin_at_once(postgres: str):
    stores: list[Store] = [open_store(postgres) for _ in range(6)]
    async with anyio.create_task_group() as tasks:
        for store in stores:
            tasks.start_soon(store.open)
    for store in stores:
        await store.close()


async def test_leases_end_by_the_database_s_clock(postgres: str, monkeypatch: pytest.MonkeyPatch):
    store = await opened(postgres)
    world = World(store)
    await world.begin(lease=60.0)
    # A worker whose clock is a day ahead.
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86_400)
    assert await world.claim() is None
    assert await store.waiting() == []
    await store.close()


async def test_who_claims_while_a_run_is_accepted_gets_it_or_nothing(postgres: str):
    # A subquery of an UPDATE that waited for a row would not see what was written meanwhile.
    first, second = await opened(postgres), await opened(postgres)
    one = World(first)
    other = World(second, one.key)
    for _ in range(30):
        taken: list[Any] = []

        async def claim(taken: list[Any] = taken) -> None:
            claimed = await other.claim()
            if claimed is not None:
                taken.append(claimed)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(one.send)
            tasks.start_soon(claim)
        if not taken:
            await claim()
        (claimed,) = taken
        await other.end(claimed)
    runs = (await one.snapshot()).runs
    assert [run.status for run in runs] == ["completed"] * 30
    await first.close()
    await second.close()


async def test_a_server_that_does_not_answer_is_named_without_the_password():
    store = open_store("postgresql://somebody:s3cret@127.0.0.1:1/nowhere")
    with pytest.raises(StoreError, match="cannot be reached") as caught:
        await store.open()
    assert "s3cret" not in str(caught.value)
    with pytest.raises(StoreError, match="not open"):
        await store.waiting()


async def test_an_error_of_the_server_is_told_and_rolls_back(postgres: str):
    store = await opened(postgres)

    def broken(connection: Any) -> None:
        connection.execute("update meta set version = 7")
        connection.execute("select nothing")

    with pytest.raises(StoreError, match="42703"):
        await store.tx(broken)
    world = World(store)
    for odd in ("a\x00b", "\ud83d"):
        with pytest.raises(StoreError):
            await world.send(run=world.run(odd))
    await world.send()
    await store.close()
    assert run(postgres, "select version from meta") == [(VERSION,)]


async def test_a_lost_connection_is_replaced(postgres: str):
    store = await opened(postgres)
    world = World(store)
    await world.send()
    run(
        postgres,
        "select pg_terminate_backend(pid) from pg_stat_activity"
        " where datname = current_database() and pid <> pg_backend_pid()",
    )
    await world.send()
    assert len((await world.snapshot()).runs) == 2
    await store.close()


async def test_a_connection_lost_in_a_transaction_fails_it(postgres: str):
    store = await opened(postgres)

    def suicide(connection: Any) -> None:
        connection.execute("update meta set version = 7")
        connection.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(StoreError, match="57P01"):
        await store.tx(suicide)
    await World(store).send()
    await store.close()
    assert run(postgres, "select version from meta") == [(VERSION,)]
