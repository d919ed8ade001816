"""From a URL to a store."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from pai.errors import DefinitionError
from pai.ports import Store
from pai.stores import MemoryStore, open_store


def test_memory_is_a_store():
    store: Store = open_store("memory:")
    assert isinstance(store, MemoryStore)
    assert not store.durable


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("nonsense", "memory:"),
        ("redis://localhost", "known: memory, postgresql, sqlite"),
        ("sqlite:///:memory:", "'memory:'"),
        ("sqlite://", "sqlite:///file.db"),
        ("sqlite:///", "memory"),
        ("sqlite:///a.db?sync=full", "known: synchronous"),
        ("sqlite:///a.db?synchronous=off", "'normal' or 'full'"),
        ("postgresql://u:s3cret%@h/d", "cannot be read"),
        ("memory:more", "no options"),
    ],
)
def test_a_wrong_url_says_what_would_be_right(url: str, words: str):
    with pytest.raises(DefinitionError) as caught:
        open_store(url)
    assert words in str(caught.value)
    assert "s3cret" not in str(caught.value)


def test_other_stores_come_by_entry_point(monkeypatch: pytest.MonkeyPatch):
    entry = EntryPoint("shelf", "tests_shelf:from_url", "pai.stores")
    module = type(sys)("tests_shelf")
    module.from_url = lambda url: ("shelf", url)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tests_shelf", module)
    _install(monkeypatch, entry)
    made: object = open_store("shelf://x")
    assert made == ("shelf", "shelf://x")


def test_a_store_that_cannot_be_loaded_says_why(monkeypatch: pytest.MonkeyPatch):
    _install(monkeypatch, EntryPoint("shelf", "no_such_module:from_url", "pai.stores"))
    with pytest.raises(DefinitionError, match="no_such_module"):
        open_store("shelf://x")


def _install(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> None:
    from stevedore import ExtensionManager

    monkeypatch.setattr(ExtensionManager, "list_entry_points", lambda _: list(entries))


def test_sqlalchemy_is_imported_only_for_a_database():
    code = (
        "import sys; from pai.stores import open_store; open_store('memory:');"
        "assert not {'sqlalchemy', 'psycopg', 'stevedore'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
