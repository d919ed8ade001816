"""What is SQLite's own: files, locks, the writer, and what survives."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from pai.errors import MigrationNeeded, StoreError
from pai.protocol import CallRecord, Commit, ThreadKey
from pai.stores import open_store
from pai.stores._sql import SqlStore, sqlite as sqlite_module
from pai.stores._sql.sqlite import SqliteDatabase, default_driver
from pai.stores._sql.tables import VERSION
from pai.testing._store_world import World

pytestmark = pytest.mark.anyio
SAFE = default_driver().sqlite_version_info >= (3, 51, 3)


def store_at(path: Path, driver: Any = None) -> SqlStore:
    return SqlStore(SqliteDatabase(str(path), driver=driver))


def look(path: Path, sql: str) -> Any:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchone()[0]
    finally:
        connection.close()


@pytest.fixture
async def store(tmp_path: Path):
    made = store_at(tmp_path / "pai.db")
    await made.open()
    yield made
    await made.close()


# ------------------------------------------------------------------------ files


async def test_an_empty_database_gets_its_tables(tmp_path: Path):
    store = open_store(f"sqlite:///{tmp_path / 'new.db'}")
    await store.open()
    await World(store).send()
    await store.close()
    assert look(tmp_path / "new.db", "select version from meta") == VERSION
    assert look(tmp_path / "new.db", "pragma journal_mode") == "wal"


@pytest.mark.parametrize(("option", "level"), [("", 1), ("?synchronous=full", 2)])
async def test_full_waits_for_the_disk(tmp_path: Path, option: str, level: int):
    #
    store = open_store(f"sqlite:///{tmp_path / 'a.db'}{option}")
    assert isinstance(store, SqlStore)
    await store.open()
    found = await store.tx(lambda c: c.execute("pragma synchronous").fetchone()[0])
    keys = await store.tx(lambda c: c.execute("pragma foreign_keys").fetchone()[0])
    await store.close()
    assert (found, keys) == (level, 1)


async def refused(
    path: Path, words: str, error: type[Exception] = StoreError, driver: Any = None
) -> None:
    """Opening is refused with these words, and leaves the folder as it was."""
    before = contents(path.parent)
    with pytest.raises(error) as caught:
        await store_at(path, driver).open()
    assert words in str(caught.value)
    assert contents(path.parent) == before


def contents(folder: Path) -> dict[str, bytes | None]:
    if not folder.exists():
        return {}
    return {p.name: p.read_bytes() if p.is_file() else None for p in sorted(folder.iterdir())}


async def test_a_missing_folder_is_named(tmp_path: Path):
    await refused(tmp_path / "no" / "pai.db", "there is no folder")


async def test_a_folder_is_no_database(tmp_path: Path):
    (tmp_path / "pai.db").mkdir()
    await refused(tmp_path / "pai.db", "is a folder")


async def test_a_file_that_is_no_database_stays_as_it_is(tmp_path: Path):
    (tmp_path / "pai.db").write_text("Dear diary, " * 1000)
    await refused(tmp_path / "pai.db", "no SQLite database")


@pytest.mark.parametrize("table", ["moz_places", "meta", "threads"])
async def test_a_foreign_database_stays_as_it_is(tmp_path: Path, table: str):
    connection = sqlite3.connect(tmp_path / "pai.db")
    connection.execute(f"create table {table} (app text, version int)")
    connection.commit()
    connection.close()
    await refused(tmp_path / "pai.db", "of something else")


@pytest.mark.parametrize(
    ("version", "error", "words"),
    [(0, MigrationNeeded, "pai db upgrade"), (VERSION + 1, StoreError, "newer pai")],
)
async def test_another_version_is_refused(
    tmp_path: Path, version: int, error: type[Exception], words: str
):
    path = tmp_path / "pai.db"
    store = store_at(path)
    await store.open()
    await store.tx(lambda c: c.execute(f"update meta set version = {version}"))
    await store.close()
    await refused(path, words, error)


@contextmanager
def unprivileged() -> Iterator[None]:
    """Root may write everywhere: be somebody else for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are others there")
@pytest.mark.parametrize(("file_mode", "folder_mode"), [(0o666, 0o555), (0o444, 0o777)])
def test_a_file_that_cannot_be_written_is_named(file_mode: int, folder_mode: int):
    # Not in pytest's own folder, which is closed to others.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "pai.db"
        anyio.run(opened_and_closed, path)
        (folder / "pai.db-lock").unlink()
        path.chmod(file_mode)
        folder.chmod(folder_mode)
        before = contents(folder)
        with unprivileged(), pytest.raises(StoreError, match="permissions"):
            anyio.run(opened_and_closed, path)
        assert contents(folder) == before
        folder.chmod(0o777)


async def opened_and_closed(path: Path) -> None:
    store = store_at(path)
    await store.open()
    await store.close()


# ------------------------------------------------------------------- two at once

OPEN = """
import sqlite3, sys, anyio
from pai.errors import StoreError
from pai.stores._sql import SqlStore
from pai.stores._sql.sqlite import SqliteDatabase
from pai.testing._store_world import World
path, driver, then = sys.argv[1:]
async def main():
    store = SqlStore(SqliteDatabase(path, driver=sqlite3 if driver == "stdlib" else None))
    try:
        await store.open()
    except StoreError as error:
        print(error)
        return
    world = World(store)
    claimed = await world.begin(lease=0.0)
    await world.say(claimed, "kept")
    await world.send("queued")
    print("ready", *world.key, flush=True)
    if then == "wait":
        await anyio.sleep(60)
    if then == "close":
        await store.close()
anyio.run(main)
"""


def process(path: Path, driver: str, then: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", OPEN, str(path), driver, then],
        stdout=subprocess.PIPE,
        text=True,
    )


def first_line(running: subprocess.Popen[str]) -> str:
    assert running.stdout is not None
    return running.stdout.readline()


@contextmanager
def held(path: Path, driver: str) -> Iterator[subprocess.Popen[str]]:
    """Another process has the file open."""
    running = process(path, driver, "wait")
    try:
        assert first_line(running).startswith("ready")
        yield running
    finally:
        running.kill()
        running.communicate()


@pytest.mark.skipif(sqlite3.sqlite_version_info >= (3, 51, 3), reason="this SQLite is safe")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_old_sqlite_has_the_file_alone(tmp_path: Path):
    path = tmp_path / "pai.db"
    with held(path, "stdlib"):
        for driver in (sqlite3, None) if SAFE else (sqlite3,):
            with pytest.raises(StoreError, match="open elsewhere"):
                await store_at(path, driver).open()
    # The lock died with its process, and a second store of one process is refused alike.
    first = store_at(path, sqlite3)
    await first.open()
    with pytest.raises(StoreError, match=r"3\.51\.3"):
        await store_at(path, sqlite3).open()
    await first.close()
    await first.open()
    await first.close()


@pytest.mark.skipif(not SAFE, reason="this SQLite is not safe with two processes")
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_processes_share_a_file_and_may_begin_at_once(tmp_path: Path):
    path = tmp_path / "pai.db"
    others = [process(path, "best", "close") for _ in range(3)]
    store = store_at(path)
    await store.open()
    keys = []
    for other in others:
        out, _ = other.communicate(timeout=60)
        assert out.startswith("ready"), out
        keys.append(tuple(out.split()[1:]))
    for partition, thread_id in keys:
        world = World(store, ThreadKey(partition, thread_id))
        assert await world.texts() == ["hello", "kept", "queued"]
    await store.close()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
@pytest.mark.parametrize("driver", ["best", "stdlib"])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_kill_9_loses_nothing_committed(tmp_path: Path, driver: str):
    #
    path = tmp_path / "pai.db"
    with held(path, driver) as running:
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
    running = process(path, driver, "close")  # Also: the lock is free again.
    assert first_line(running).startswith("ready")
    running.communicate()
    store = store_at(path)
    await store.open()
    keys = await store.waiting()
    assert len(keys) == 2
    for key in keys:
        world = World(store, key)
        assert await world.texts() == ["hello", "kept", "queued"]
        assert (await world.must_claim()).run.attempt == 2
    await store.close()


@pytest.mark.parametrize("then", ["leave", "close"])
def test_a_store_that_nobody_closed_lets_the_interpreter_end(tmp_path: Path, then: str):
    running = process(tmp_path / "pai.db", "best", then)
    out, _ = running.communicate(timeout=60)
    assert out.startswith("ready")
    assert running.returncode == 0


# -------------------------------------------------------------------- the writer


class Gate:
    """Keeps the writer busy, so that what comes next waits together."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.open = threading.Event()

    def __call__(self, connection: object) -> None:
        self.begun.set()
        self.open.wait(10)


def insert(connection: Any, app: str) -> str:
    connection.execute(f"insert into meta (app, version) values ('{app}', {VERSION})")
    return app


def insert_and_fail(connection: Any, app: str) -> None:
    insert(connection, app)
    raise LookupError(app)


def orphan(connection: Any) -> None:
    """Breaks a foreign key, which only the COMMIT finds."""
    connection.execute("pragma defer_foreign_keys = 1")
    names = "partition, thread_id, last, size, run_id, body"
    connection.execute(
        f"insert into events ({names}) values ('p', 'none', 1, 1, 'r', '[]')"
    )  # constants


def apps(connection: Any) -> set[str]:
    return {row[0] for row in connection.execute("select app from meta").fetchall()} - {"pai"}


async def together(store: SqlStore, *jobs: tuple[Any, ...]) -> list[Any]:
    """Results or errors of jobs that wait for the writer at the same time."""
    gate = Gate()
    results: dict[int, Any] = {}

    async def run(place: int, job: tuple[Any, ...]) -> None:
        try:
            results[place] = await store.tx(*job)
        except Exception as error:
            results[place] = error

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.tx, gate)
        await anyio.to_thread.run_sync(gate.begun.wait, 10)
        for place, job in enumerate(jobs):
            tasks.start_soon(run, place, job)
        await anyio.wait_all_tasks_blocked()
        gate.open.set()
    return [results[place] for place in range(len(jobs))]


async def test_one_that_fails_in_a_group_takes_back_its_own_only(store: SqlStore):
    one, two, three = await together(store, (insert, "a"), (insert_and_fail, "b"), (insert, "c"))
    assert (one, three) == ("a", "c")
    assert isinstance(two, LookupError)
    assert await store.read(apps) == {"a", "c"}


async def test_a_failed_commit_fails_all_of_its_group(store: SqlStore):
    results = await together(store, (insert, "a"), (orphan,), (insert, "c"))
    assert [type(result) for result in results] == [StoreError] * 3
    assert len({id(result) for result in results}) == 3
    assert await store.read(apps) == set()
    assert await store.tx(insert, "d") == "d"


async def test_alone_too(store: SqlStore):
    with pytest.raises(LookupError):
        await store.tx(insert_and_fail, "a")
    with pytest.raises(StoreError, match="FOREIGN KEY"):
        await store.tx(orphan)
    assert await store.read(apps) == set()


async def test_a_busy_file_does_not_kill_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(sqlite_module, "_PATIENCE", 0.05)
    store = store_at(tmp_path / "pai.db")
    await store.open()
    other = default_driver().connect(tmp_path / "pai.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked for too long"):
        await store.tx(insert, "a")
    other.execute("ROLLBACK")
    other.close()
    assert await store.tx(insert, "b") == "b"
    await store.close()


async def test_a_job_whose_caller_left_never_begins(store: SqlStore):
    gate = Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.tx, gate)
        await anyio.to_thread.run_sync(gate.begun.wait, 10)
        with anyio.move_on_after(0):
            await store.tx(insert, "a")
        gate.open.set()
    assert await store.tx(apps) == set()


async def test_a_caller_who_leaves_under_way_breaks_nothing(store: SqlStore):
    gate = Gate()

    def slow(connection: Any) -> None:
        gate(connection)
        insert(connection, "a")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.tx, slow)
        await anyio.to_thread.run_sync(gate.begun.wait, 10)
        tasks.cancel_scope.cancel()
    gate.open.set()
    assert await store.tx(apps) == {"a"}


async def test_reads_go_on_beside_a_writer(store: SqlStore):
    await store.tx(insert, "a")
    gate = Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.tx, gate)
        await anyio.to_thread.run_sync(gate.begun.wait, 10)
        async with anyio.create_task_group() as readers:
            for _ in range(20):
                readers.start_soon(store.read, apps)
        gate.open.set()
    with pytest.raises(StoreError, match="cannot be written"):
        await store.read(insert, "b")


async def test_closing_finishes_what_waits(tmp_path: Path):
    store = store_at(tmp_path / "pai.db")
    await store.open()
    gate = Gate()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(store.tx, gate)
        await anyio.to_thread.run_sync(gate.begun.wait, 10)
        tasks.start_soon(store.tx, insert, "a")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(store.close)
        await anyio.wait_all_tasks_blocked()
        gate.open.set()
    for work in (store.tx(apps), store.read(apps)):
        with pytest.raises(StoreError, match="not open"):
            await work
    await store.close()
    await store.open()
    assert await store.read(apps) == {"a"}
    with pytest.raises(StoreError, match="already"):
        await store.open()
    await store.close()


async def test_the_database_itself_refuses_a_second_active_run(store: SqlStore):
    #
    world = World(store)
    await world.begin()
    await world.send()
    with pytest.raises(StoreError, match="UNIQUE"):
        await store.tx(lambda c: c.execute("update runs set status = 'running'"))


async def test_deleting_a_thread_deletes_every_row_of_it(store: SqlStore):
    #
    world, other = World(store), World(store)
    for each in (world, other):
        claimed = await each.begin()
        message = await each.say(claimed, "x")
        call = CallRecord("c", message.id, "add", "started")
        await each.commit(claimed, Commit(calls=(call,)))
    await store.tx(lambda c: c.execute("delete from threads where id = ?", [world.key[1]]))
    left = await store.read(
        lambda c: [
            c.execute(f"select count(distinct thread_id) from {name}").fetchone()[0]
            for name in ("messages", "runs", "actions", "events")
        ]
    )
    assert left == [1, 1, 1, 1]


async def test_a_file_system_without_wal_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    # SQLite's "memory-like" answer where shared memory is missing: the mode stays as it was.
    class Driver:
        def __getattr__(self, name: str) -> Any:
            return getattr(default_driver(), name)

        def connect(self, *args: Any, **options: Any) -> Any:
            options["factory"] = Plain
            return default_driver().connect(*args, **options)

    class Plain(default_driver().Connection):  # type: ignore[misc]
        def execute(self, sql: str, *rest: Any) -> Any:
            return super().execute(sql.replace("journal_mode=WAL", "journal_mode"), *rest)

    await refused(tmp_path / "pai.db", "local disk", driver=Driver())


async def test_a_key_that_no_database_takes_is_refused(store: SqlStore):
    world = World(store)
    with pytest.raises(StoreError, match="Unicode"):
        await world.send(run=world.run("\ud83d"))
    assert await world.traces() is None


# ------------------------------------------------------- another library in the process

SEVERAL = sys.platform == "linux" and SAFE


def rows_of(path: Path) -> int:
    """Messages, as Python's own SQLite sees them: opened and closed."""
    connection = sqlite3.connect(path)
    (count,) = connection.execute("SELECT count(*) FROM messages").fetchone()
    connection.close()
    return int(count)


@pytest.mark.skipif(not SEVERAL, reason="one SQLite library, or no locks of open files")
@pytest.mark.parametrize("stores", [1, 2])
async def test_a_look_by_another_library_loses_nothing(stores: int, tmp_path: Path):
    path = tmp_path / "pai.db"
    first, *others = [store_at(path) for _ in range(stores)]
    for store in (first, *others):
        await store.open()
    world = World(first)
    for number in range(1, 6):
        await world.send(f"m{number}")
        assert rows_of(path) == number
    for store in others:  # one that leaves takes nothing along
        await store.close()
        await world.send("more")
        assert rows_of(path) == 6
        await world.send("and more")
    expected = await world.texts()
    await first.close()
    assert len(expected) == 5 + 2 * len(others)
    # The last one has cleared up: all is in the one file.
    assert not path.with_name("pai.db-wal").exists()
    again = store_at(path)
    await again.open()
    assert await World(again, world.key).texts() == expected
    await again.close()
    assert rows_of(path) == len(expected)
