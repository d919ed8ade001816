"""SQLite keeps every promise of a searcher, on both drivers; and the kit finds liars."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pai_rag import Index, Searcher
from pai_rag._searcher import searcher_for
from pai_rag._sqlite import SqliteSearcher
from pai_rag.testing import SEARCHER_CHECKS, check_searcher

from pai import DefinitionError, StoreError


@pytest.fixture(params=["pysqlite3", "stdlib"])
def driver(request: pytest.FixtureRequest) -> Any:
    return sqlite3 if request.param == "stdlib" else pytest.importorskip("pysqlite3.dbapi2")


@pytest.mark.parametrize("check", SEARCHER_CHECKS, ids=lambda check: check.__name__)
def test_sqlite(check: Callable[[Searcher], None], tmp_path: Path, driver: Any):
    check(SqliteSearcher(str(tmp_path / "index.db"), driver))


class Leaky(SqliteSearcher):
    """Looks into the default partition, whatever it is asked for."""

    def search(self, partition, terms, limit):
        return super().search("default", terms, limit)


def test_the_kit_finds_a_liar(tmp_path: Path):
    names = iter("abcdefgh")
    with pytest.raises(AssertionError):
        check_searcher(lambda: Leaky(str(tmp_path / f"{next(names)}.db")))


def test_deletes_are_deletes(tmp_path: Path, driver: Any):
    """Neither the text nor its words can be found in the files, also beside a reader."""
    path = tmp_path / "index.db"
    reader = Index(searcher=SqliteSearcher(str(path), driver))
    secrets = [b"xylophone", b"quartzite"]
    with Index(searcher=SqliteSearcher(str(path), driver)) as index:
        index.add([{"id": "1", "text": "A xylophone."}, {"id": "2", "text": "It stays."}])
        index.add([{"id": "3", "text": "Some quartzite. " * 500}])
        reader.open(create=False)
        assert len(reader.search("xylophone")) == 1
        assert any(secrets[0] in data for data in contents(tmp_path))
        index.remove(["1", "3"])
        for data in contents(tmp_path):
            assert not any(secret in data for secret in secrets)
            assert b"xylophon" not in data, "nor the stem"
        assert reader.search("xylophone") == []
        assert len(reader.search("stays")) == 1
    reader.close()


def contents(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in folder.iterdir()]


def test_only_an_index_is_opened(tmp_path: Path):
    path = tmp_path / "other.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE t (a)")
    other.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"other\.db is another program's database"):
        Index(f"sqlite:///{path}").open()
    assert path.read_bytes() == before
    path.write_text("no database at all, but long enough for a header of one" * 10)
    with pytest.raises(StoreError, match="cannot be used"):
        Index(f"sqlite:///{path}").open(create=False)


def test_another_version(tmp_path: Path):
    path = tmp_path / "index.db"
    with Index(f"sqlite:///{path}"):
        pass
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(StoreError, match="version 99"):
        Index(f"sqlite:///{path}").open()


def test_a_folder_nobody_writes_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """An index can be part of an image."""
    url = f"sqlite:///{tmp_path}/index.db"
    with Index(url) as index:
        index.add([{"id": "1", "text": "Zebras."}])
    monkeypatch.setattr("os.access", lambda *_: False)
    index = Index(url)
    assert index.open(create=False)
    assert len(index.search("zebra")) == 1
    assert [file.name for file in tmp_path.iterdir()] == ["index.db"]
    index.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "index.db",
        "sqlite://",
        "sqlite:///",
        "sqlite:///:memory:",
        "sqlite:///a.db?x=1",
        "mysql://h",
    ],
)
def test_urls(url: str):
    with pytest.raises(DefinitionError, match="index"):
        searcher_for(url)


def test_a_password_is_not_told():
    pytest.importorskip("psycopg")
    with pytest.raises(DefinitionError) as caught:
        searcher_for("postgresql://me:geheim@host:port:port/?nonsense=1")
    assert "geheim" not in str(caught.value)


def test_it_says_that_it_is_not_open(tmp_path: Path):
    with pytest.raises(StoreError, match=r"call open\(\)"):
        Index(f"sqlite:///{tmp_path}/index.db").search("x")
