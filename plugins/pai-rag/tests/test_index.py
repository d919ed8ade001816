"""Folders and records in the index."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pai_rag import Changes, Index, Record

from pai import DefinitionError, InvalidInput

LONG_AGO = 1_000_000_000


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index(f"sqlite:///{tmp_path}/index.db") as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    write(folder / "guide.md", "# Guide\n\n## Zebras\nThey have stripes.\n\n## Lions\nThey roar.\n")
    write(folder / "deep" / "page.html", "<title>Page</title><p>An <b>ost</b>rich runs.")
    write(folder / "notes.txt", "Penguins swim.")
    write(folder / "code.py", "# Zebras")
    write(folder / ".git" / "zebra.md", "Zebras")
    write(folder / ".hidden.md", "Zebras")
    return folder


def write(path: Path, text: str, when: int = LONG_AGO) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (when, when))


def found(index: Index, query: str, **options: Any) -> list[str]:
    return [hit.id for hit in index.search(query, 10, **options)]


def test_a_folder(index: Index, folder: Path):
    assert index.add_folder(folder) == Changes(added=3)
    assert found(index, "zebras") == ["guide.md#0"]
    assert found(index, "ostrich") == ["deep/page.html#0"]
    assert found(index, "penguins") == ["notes.txt#0"]
    hit = index.search("lions")[0]
    assert (hit.title, hit.text) == ("Guide > Lions", "They roar.")
    assert (hit.media_type, hit.folder) == ("text/markdown", str(folder.resolve()))


def test_again_only_what_has_changed_is_read(
    index: Index, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    index.add_folder(folder)
    read: list[str] = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(
        Path, "read_bytes", lambda path: [read.append(path.name), read_bytes(path)][1]
    )
    assert index.add_folder(folder) == Changes(unchanged=3)
    assert read == []
    os.utime(folder / "notes.txt", (LONG_AGO + 1, LONG_AGO + 1))
    assert index.add_folder(folder) == Changes(unchanged=3)
    assert read == ["notes.txt"], "its time is another one"
    assert index.add_folder(folder) == Changes(unchanged=3)
    assert read == ["notes.txt"], "and that is known now"
    write(folder / "notes.txt", "Walruses sleep", LONG_AGO + 2)
    assert index.add_folder(folder) == Changes(changed=1, unchanged=2)
    assert found(index, "penguins") == []
    assert found(index, "walruses") == ["notes.txt#0"]


def test_a_file_written_twice_within_a_tick(index: Index, folder: Path):
    """Same size, same time, just now: it may have changed, so it is read."""
    now = (folder / "notes.txt").stat().st_ctime_ns
    os.utime(folder / "notes.txt", ns=(now, now))
    index.add_folder(folder)
    (folder / "notes.txt").write_text("Penguins sleep")
    os.utime(folder / "notes.txt", ns=(now, now))
    assert index.add_folder(folder) == Changes(changed=1, unchanged=2)
    assert found(index, "sleep") == ["notes.txt#0"]


def test_what_is_gone_leaves_the_index(index: Index, folder: Path):
    index.add_folder(folder)
    (folder / "guide.md").unlink()
    write(folder / "deep" / "other.md", "Zebras again")
    assert index.add_folder(folder) == Changes(added=1, removed=1, unchanged=2)
    assert found(index, "zebras lions") == ["deep/other.md#0"]


def test_folders_and_records_do_not_meet(index: Index, folder: Path, tmp_path: Path):
    index.add([Record("guide.md", "Zebras in a record.")])
    index.add_folder(folder)
    write(tmp_path / "other" / "guide.md", "Zebras elsewhere.")
    index.add_folder(tmp_path / "other")
    assert len(found(index, "zebras")) == 3
    assert index.remove_folder(folder) == Changes(removed=3)
    assert len(found(index, "zebras")) == 2
    assert index.remove(["guide.md"]) == Changes(removed=1)
    assert [hit.text for hit in index.search("zebras")] == ["Zebras elsewhere."]


def test_a_named_folder_may_move(index: Index, folder: Path):
    index.add_folder(folder, name="docs")
    moved = folder.rename(folder.parent / "moved")
    assert index.add_folder(moved, name="docs") == Changes(unchanged=3)
    assert index.remove_folder("docs") == Changes(removed=3)


def test_partitions(index: Index, folder: Path):
    """R-7."""
    index.add_folder(folder, partition="a")
    assert found(index, "zebras") == []
    assert index.add_folder(folder, partition="b") == Changes(added=3)
    (folder / "guide.md").unlink()
    assert index.add_folder(folder, partition="b") == Changes(removed=1, unchanged=2)
    assert found(index, "zebras", partition="a") == ["guide.md#0"]
    assert found(index, "zebras", partition="b") == []
    assert index.remove_folder(folder, partition="c") == Changes()


def test_what_cannot_be_indexed_is_named(index: Index, folder: Path):
    index.add_folder(folder)
    (folder / "notes.txt").write_bytes(b"Penguins \xff")
    with (folder / "large.md").open("wb") as large:
        large.truncate(10_000_001)
    changes = index.add_folder(folder)
    assert changes.skipped["notes.txt"] == "is no UTF-8"
    assert "10000001 bytes" in changes.skipped["large.md"]
    assert (changes.removed, changes.unchanged) == (1, 2)
    assert found(index, "penguins") == [], "what it was is no more"
    assert str(changes) == "0 added, 0 changed, 1 removed, 2 unchanged, 2 skipped"


def test_what_is_excluded(index: Index, folder: Path):
    write(folder / "_build" / "guide.html", "Zebras built")
    index.add_folder(folder)
    changes = index.add_folder(folder, exclude=["_build", "*.txt", "deep/p*"])
    assert changes == Changes(removed=3, unchanged=1)


def test_links_lead_nowhere_else(index: Index, folder: Path, tmp_path: Path):
    write(tmp_path / "secret.md", "Zebras of others")
    (folder / "link.md").symlink_to(tmp_path / "secret.md")
    (folder / "inside.md").symlink_to(folder / "guide.md")
    (folder / "loop").symlink_to(folder)
    (folder / "broken.md").symlink_to(folder / "nothing.md")
    assert index.add_folder(folder) == Changes(added=4)
    assert sorted(found(index, "zebras")) == ["guide.md#0", "inside.md#0"]


def test_a_folder_that_is_not_there(index: Index, folder: Path):
    index.add_folder(folder)
    with pytest.raises(InvalidInput, match="there is no folder"):
        index.add_folder(folder / "nothing")
    assert found(index, "zebras") == ["guide.md#0"]


def test_records(index: Index):
    changes = index.add(
        [
            Record("1", "# Top\n\nZebras", url="https://example.org/1", media_type="text/markdown"),
            {"id": "2", "text": "<p>Lions", "media_type": "text/html", "title": "Cats"},
            {
                "id": "2",
                "text": "<h1>Big</h1><p>Tigers",
                "media_type": "text/html",
                "title": "Cats",
            },
        ]
    )
    assert changes == Changes(added=2)
    hit = index.search("zebras")[0]
    assert (hit.title, hit.url, hit.folder) == ("Top", "https://example.org/1", "")
    assert found(index, "lions") == []
    assert index.search("tigers")[0].title == "Cats > Big"
    assert index.add([Record("1", "Zebras")]) == Changes(changed=1)
    assert index.add([]) == Changes()


def test_all_that_is_wrong_with_records_is_said(index: Index):
    with pytest.raises(InvalidInput) as caught:
        index.add(
            [
                Record("good", "Zebras"),
                {"id": "", "text": 3, "color": "red"},
                Record("bad\x00", "text", media_type="text/xml"),
            ]
        )
    assert [fault.path for fault in caught.value.faults] == [
        "records[1].color",
        "records[1].id",
        "records[1].text",
        "records[2].id",
        "records[2].media_type",
    ]
    assert found(index, "zebras") == []


@pytest.mark.parametrize("partition", ["", "a\x00b", "\ud800", None])
def test_partitions_that_can_be_none(index: Index, partition: Any):
    for call in (
        lambda: index.search("x", partition=partition),
        lambda: index.add([], partition=partition),
        lambda: index.remove([], partition=partition),
    ):
        with pytest.raises(InvalidInput, match="partition"):
            call()


def test_another_size_cuts_anew(index: Index, tmp_path: Path):
    record = Record("1", "Zebras run. " * 50)
    index.add([record])
    assert len(found(index, "zebras")) == 1
    with Index(f"sqlite:///{tmp_path}/index.db", chunk=200) as other:
        assert other.add([record]) == Changes(changed=1)
        assert len(found(other, "zebras")) > 1
    with pytest.raises(DefinitionError, match="chunk"):
        Index(chunk=10)


@pytest.mark.anyio
async def test_searching_beside_an_event_loop(index: Index):
    index.add([Record("1", "Zebras")])
    assert [hit.id for hit in await index.asearch("zebras", 1)] == ["1#0"]
    with pytest.raises(InvalidInput, match="limit"):
        await index.asearch("zebras", 0)
