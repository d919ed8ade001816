"""From an older version to the present one: `pai db`, on both databases and both drivers."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import MigrationNeeded, StoreError, ToolContext, create_pai, define_agent, tool
from pai.cli._db import print_current, print_upgrade
from pai.errors import DefinitionError
from pai.protocol import ToolCallPart
from pai.stores import open_store, store_versions, upgrade_store
from pai.stores._sql import SqlStore, migrations, postgresql, tables
from pai.stores._sql.sqlite import SqliteDatabase
from pai.stores._sql.upgrade import upgrade_tables, versions
from pai.testing import ScriptedModel

from .shape import postgresql_shape, sqlite_shape

HERE = Path(__file__).parent / "version1"


@attrs.define
class Place:
    """A database of one kind, empty at first."""

    dialect: str
    database: Any
    connect: Callable[[], Any]

    def store(self) -> SqlStore:
        return SqlStore(self.database)

    @contextmanager
    def connected(self) -> Iterator[Any]:
        connection = self.connect()
        try:
            yield connection
            connection.commit()
        finally:
            connection.close()

    def shape(self) -> Any:
        with self.connected() as connection:
            if self.dialect == "sqlite":
                return sqlite_shape(connection)
            return postgresql_shape(connection, self.database.found(connection))

    def dump(self) -> dict[str, Any]:
        """Every row of every table."""
        with self.connected() as connection:
            return {
                name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}").fetchall()))
                for name in self.database.found(connection)
            }

    def clear(self) -> None:
        with self.connected() as connection:
            for name in self.database.found(connection) - {"threads"}:
                connection.execute(f"DROP TABLE {name}")
            connection.execute("DROP TABLE threads")


@pytest.fixture(params=["pysqlite3", "stdlib", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if request.param == "postgresql":
        import psycopg

        url = request.getfixturevalue("postgres")
        return Place("postgresql", postgresql.PostgresDatabase(url), lambda: psycopg.connect(url))
    driver: Any = sqlite3
    if request.param == "pysqlite3":
        driver = pytest.importorskip("pysqlite3.dbapi2")
    path = str(tmp_path / "pai.db")
    database = SqliteDatabase(path, driver=driver)
    return Place("sqlite", database, lambda: driver.connect(path))


@pytest.fixture
def old(place: Place) -> Place:
    """A database as version 1 left it."""
    with place.connected() as connection:
        made = (HERE / f"{place.dialect}.sql").read_text(), (HERE / "rows.sql").read_text()
        for text in made:
            getattr(connection, "executescript", connection.execute)(text)
    return place


async def fresh(place: Place) -> Any:
    store = place.store()
    await store.open()
    await store.close()
    return place.shape()


# ---------------------------------------------------------------------------- what it makes


@pytest.mark.anyio
async def test_an_upgraded_database_is_as_a_fresh_one(old: Place) -> None:
    """Names, types, defaults, keys and indexes."""
    upgrade_tables(old.database)
    upgraded = old.shape()
    old.clear()
    made = await fresh(old)
    assert set(upgraded) == set(made) == set(tables.metadata.tables)
    for name, shape in made.items():
        assert upgraded[name] == shape, name


def test_there_is_a_step_to_each_version() -> None:
    assert sorted(migrations.STEPS) == list(range(2, tables.VERSION + 1))


def test_upgrading_again_does_nothing(old: Place) -> None:
    assert versions(old.database) == (1, tables.VERSION)
    assert upgrade_tables(old.database) == (1, tables.VERSION)
    before = old.dump()
    assert upgrade_tables(old.database) == (tables.VERSION, tables.VERSION)
    assert versions(old.database) == (tables.VERSION, tables.VERSION)
    assert old.dump() == before


def test_what_is_empty_is_not_upgraded(place: Place) -> None:
    assert versions(place.database) == (None, tables.VERSION)
    with pytest.raises(StoreError, match="is empty"):
        upgrade_tables(place.database)
    assert versions(place.database) == (None, tables.VERSION)


def agent(asked: list[str]) -> Any:
    @tool
    def add(ctx: ToolContext[Any], a: int, b: int = 1) -> int:
        """Add."""
        asked.append("add")
        return a + b

    @tool(idempotent=True)
    def look(ctx: ToolContext[Any], word: str) -> str:
        """Look something up."""
        asked.append(ctx.idempotency_key)
        return f"{word}!"

    model = ScriptedModel(lambda request: request.messages[-1].role + ".")
    return define_agent(name="main", model=model, tools={"add": add, "look": look})


@pytest.mark.anyio
async def test_what_was_there_goes_on(old: Place) -> None:
    """Threads, messages and records stay; runs that waited or were under way come to their end."""
    upgrade_tables(old.database)
    asked: list[str] = []
    async with create_pai(agents={"main": agent(asked)}, store=old.store()) as app:
        done = app.thread("main", thread_id="done", identity={"user": "u1"})
        state = await done.state()
        texts = [[getattr(part, "text", None) for part in m.parts] for m in state.messages]
        assert texts == [
            ["What is 2 + 3?"], ["It's ", None], ["2 + 3", "It is 5; 'five'."],
            ["And again?"], ["Again."],
        ]  # fmt: skip
        (call,) = [p for m in state.messages for p in m.parts if isinstance(p, ToolCallPart)]
        assert (call.outcome, call.output) == ("completed", 5)
        assert [run.status for run in state.runs] == ["completed", "completed"]
        assert await app.records("notes").get("note") == {"kept": True}
        assert (await (await done.send("more")).result()).text == "user."
        with anyio.fail_after(60):  # until the lease of the worker that died has ended
            for thread_id, run_id in (("queued", "q1"), ("queued", "q2"), ("running", "w1")):
                run = await app.thread("main", thread_id=thread_id).run(run_id)
                assert (await run.result()).status == "completed"
        (first, second) = [
            part
            for message in (await app.thread("main", thread_id="running").state()).messages
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
    assert (first.outcome, first.output) == ("completed", 2)
    assert (second.outcome, second.output) == ("completed", "hi!")
    assert len(asked) == 1


# ---------------------------------------------------------------------------- all of it, or nothing


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step fails when it has changed all kinds of things."""

    def step(operations: Any) -> None:
        import sqlalchemy as sa

        operations.add_column("runs", sa.Column("extra", sa.Text))
        operations.create_table("more", sa.Column("id", sa.Text))
        with operations.batch_alter_table("threads") as batch:
            batch.drop_column("takeovers")
        operations.execute("UPDATE runs SET extra = 'x'")
        operations.execute("DELETE FROM messages")
        operations.execute("INSERT INTO nowhere VALUES (1)")

    monkeypatch.setattr(tables, "VERSION", tables.VERSION + 1)
    monkeypatch.setitem(migrations.STEPS, tables.VERSION, step)


@pytest.mark.usefixtures("broken")
def test_a_failed_upgrade_changes_nothing(old: Place) -> None:
    shape, rows = old.shape(), old.dump()
    for _ in range(2):  # and holds nothing
        with pytest.raises(StoreError, match="nowhere"):
            upgrade_tables(old.database)
        assert (old.shape(), old.dump()) == (shape, rows)
    assert versions(old.database) == (1, tables.VERSION)


def test_an_upgrade_that_loses_a_thread_is_taken_back(
    old: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    if old.dialect != "sqlite":
        return  # PostgreSQL keeps foreign keys meanwhile
    monkeypatch.setattr(tables, "VERSION", tables.VERSION + 1)
    monkeypatch.setitem(
        migrations.STEPS, tables.VERSION, lambda op: op.execute("DELETE FROM threads")
    )
    rows = old.dump()
    with pytest.raises(StoreError, match="lost its thread"):
        upgrade_tables(old.database)
    assert old.dump() == rows


@pytest.fixture
def next_version(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let there be a newer pai, whose tables are the same."""

    def raise_it() -> None:
        monkeypatch.setattr(tables, "VERSION", tables.VERSION + 1)
        monkeypatch.setitem(migrations.STEPS, tables.VERSION, lambda op: None)

    return raise_it


@pytest.mark.anyio
async def test_an_old_database_is_not_opened(old: Place, next_version: Callable[[], None]) -> None:
    next_version()
    shape, rows = old.shape(), old.dump()
    with pytest.raises(MigrationNeeded, match="pai db upgrade"):
        async with create_pai(agents={"main": agent([])}, store=old.store()):
            pass
    assert (old.shape(), old.dump()) == (shape, rows)


# ---------------------------------------------------------------------------- nobody else meanwhile


@pytest.mark.anyio
async def test_a_database_in_use_is_not_upgraded(
    place: Place, next_version: Callable[[], None]
) -> None:
    store = place.store()
    await store.open()
    next_version()
    with pytest.raises(StoreError, match=r"open in another process.*: stop all that"):
        upgrade_tables(place.database)
    await store.close()
    assert upgrade_tables(place.database) == (tables.VERSION - 1, tables.VERSION)


@pytest.mark.anyio
async def test_nobody_opens_a_database_that_is_being_upgraded(place: Place) -> None:
    store = place.store()
    await store.open()
    await store.close()
    with place.database.alone(), pytest.raises(StoreError, match=r"elsewhere|upgrad"):
        await place.store().open()
    await store.open()
    await store.close()


@pytest.mark.anyio
async def test_who_was_away_meanwhile_does_not_write(
    postgres: str, next_version: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that lost its connections looks at the version again when it comes back."""
    import psycopg

    monkeypatch.setattr(postgresql, "_PATIENCE", 1.0)
    store = SqlStore(postgresql.PostgresDatabase(postgres))
    await store.open()
    try:
        with psycopg.connect(postgres, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute(f"UPDATE meta SET version = {tables.VERSION + 1}")
        with pytest.raises(StoreError):
            await store.waiting()
    finally:
        await store.close()


# ---------------------------------------------------------------------------- at the command line


def pai(*words: str, cwd: Path) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "pai", *words], cwd=cwd, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_the_command_line(tmp_path: Path) -> None:
    """The URL stands in the command, or in the configuration file."""
    (tmp_path / "pai.toml").write_text('store = "sqlite:///pai.db"\n')
    connection = sqlite3.connect(tmp_path / "pai.db")
    for name in ("sqlite", "rows"):
        connection.executescript((HERE / f"{name}.sql").read_text())
    connection.close()
    newest = tables.VERSION
    code, text = pai("db", "current", cwd=tmp_path)
    assert (code, f"version 1, and this pai needs {newest}" in text) == (1, True)
    done = pai("db", "upgrade", "sqlite:///pai.db", cwd=tmp_path)
    assert done == (0, f"upgraded from version 1 to {newest}\n")


def test_what_the_commands_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefinitionError, match="store: which one"):
        print_current(None)
    (tmp_path / "pai.toml").write_text('store = "sqlite:///pai.db"\n')
    assert print_current(None) == 0
    assert "empty" in capsys.readouterr().out
    assert not (tmp_path / "pai.db").exists()
    with pytest.raises(StoreError, match="is empty"):
        print_upgrade(None)
    anyio.run(made, "sqlite:///pai.db")
    newest = tables.VERSION
    print_upgrade(None)
    assert print_current("sqlite:///pai.db") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"version {newest}: nothing to do"
    assert said[1].startswith(f"version {newest}: ")
    (tmp_path / "pai.toml").write_text("store = 1\n")
    with pytest.raises(DefinitionError, match="expected the URL"):
        print_current(None)


async def made(url: str) -> None:
    store = open_store(url)
    await store.open()
    await store.close()


@pytest.mark.parametrize("url", ["memory:", "pai.db", "s3cret", "sqlite://"])
def test_a_url_of_no_database(url: str) -> None:
    for ask in (store_versions, upgrade_store):
        with pytest.raises(DefinitionError) as caught:
            ask(url)
        assert "s3cret" not in str(caught.value)


def test_alembic_is_imported_only_for_a_migration() -> None:
    code = (
        "import sys, pai.cli, pai.stores._sql.sqlite, pai.stores._sql.upgrade;"
        "assert 'alembic' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
