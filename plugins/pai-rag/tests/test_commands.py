"""``pai rag index`` and ``pai rag search``."""

from __future__ import annotations

from pathlib import Path

import pytest
from cyclopts import App
from pai_rag import Index
from pai_rag.plugin import register_cli

from pai import InvalidInput


@pytest.fixture
def app() -> App:
    app = App(name="pai")
    register_cli(app)
    return app


def test_index_and_search(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "guide.md").write_text(f"# Guide\n\nZebras {'run ' * 100}\n")
    (tmp_path / "docs" / "odd.txt").write_bytes(b"\xff")
    app(["rag", "index", "docs"], result_action="return_value")
    told = capsys.readouterr()
    assert told.out == "docs: 1 added, 0 changed, 0 removed, 0 unchanged, 1 skipped\n"
    assert told.err == "skipped odd.txt: it is no UTF-8\n"
    app(["rag", "index", "docs"], result_action="return_value")
    assert "0 added, 0 changed, 0 removed, 1 unchanged" in capsys.readouterr().out
    app(["rag", "search", "where", "are", "-zebras"], result_action="return_value")
    first, second = capsys.readouterr().out.splitlines()
    assert first == "[1] Guide (guide.md)"
    assert second.startswith("    Zebras run run")
    assert second.endswith("\u2026")
    app(["rag", "search", "lions"], result_action="return_value")
    assert capsys.readouterr().out == "Nothing was found.\n"
    app(["rag", "search", "zebras", "--partition", "b"], result_action="return_value")
    assert capsys.readouterr().out == "Nothing was found.\n"


def test_options(app: App, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "a.txt").write_text("Zebras")
    (tmp_path / "no.txt").write_text("Zebras")
    url = f"sqlite:///{tmp_path}/own.db"
    words = ["rag", "index", str(tmp_path), "--index", url, "--partition", "p", "--name", "n"]
    words += ["--exclude", "no*", "--exclude", "never"]
    app(words, result_action="return_value")
    with Index(url) as index:
        assert [hit.folder for hit in index.search("zebras", partition="p")] == ["n"]
    with pytest.raises(InvalidInput, match="there is no folder"):
        app(["rag", "index", str(tmp_path / "no"), "--index", url], result_action="return_value")


def test_no_index_yet(
    app: App, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        app(["rag", "search", "x"], result_action="return_value")
    assert ended.value.code == 1
    assert "pai rag index FOLDER" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
