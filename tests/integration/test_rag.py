"""pai-rag on real SQLite and PostgreSQL, and the demo model answering from pai's own docs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pai_rag import Index, Searcher, rag
from pai_rag._searcher import searcher_for
from pai_rag.testing import SEARCHER_CHECKS

from pai import RunResult, SourcePart, StoreError, define_agent, run_once
from pai.testing import ScriptedModel

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Name a database without an index."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/index.db"
    return str(request.getfixturevalue("postgres"))


@pytest.mark.parametrize("check", SEARCHER_CHECKS, ids=lambda check: check.__name__)
def test_postgresql_keeps_its_promises(check: Callable[[Searcher], None], postgres: str) -> None:
    check(searcher_for(postgres))


def test_folders(url: str, tmp_path: Path) -> None:
    """Incremental, per partition; what is gone is gone (R-7)."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Zebras\n\nThey run.\n\n## Food\n\nGrass.\n")
    (folder / "b.txt").write_text("Lions sleep.")
    with Index(url) as index:
        assert index.add_folder(folder, partition="p").added == 2
        again = index.add_folder(folder, partition="p")
        assert (again.added, again.changed, again.removed, again.unchanged) == (0, 0, 0, 2)
        (folder / "a.md").write_text("# Zebras\n\nThey run.\n")
        (folder / "b.txt").unlink()
        changes = index.add_folder(folder, partition="p")
        assert (changes.changed, changes.removed) == (1, 1)
        assert index.search("grass lions", partition="p") == []
        assert [hit.id for hit in index.search("do zebras run?", partition="p")] == ["a.md#0"]
        assert index.search("zebras") == []


def test_several_index_at_once(url: str, tmp_path: Path) -> None:
    """Nobody fails, and each document is there once."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for number in range(20):
        (folder / f"{number}.txt").write_text(f"Zebra {number}")
    errors: list[BaseException] = []

    def work() -> None:
        try:
            with Index(url) as index:
                index.add_folder(folder)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    with Index(url) as index:
        assert len(index.search("zebra", 100)) == 20


def test_a_schema_of_another_version(postgres: str) -> None:
    import psycopg

    with Index(postgres):
        pass
    with psycopg.connect(postgres) as connection:
        connection.execute("UPDATE pai_rag.version SET number = 99")
    with pytest.raises(StoreError, match="another version"):
        Index(postgres).open()


def test_a_server_that_is_not_there() -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(StoreError) as caught:
        Index("postgresql://me:geheim@127.0.0.1:1/nothing").open()
    assert "geheim" not in str(caught.value)


@pytest.mark.anyio
async def test_a_run(url: str) -> None:
    """Nothing where there is no index; then a passage, and its source."""
    model = ScriptedModel(["Nobody knows.", "At nine [1]."])
    agent = define_agent(name="a", model=model, lifecycle=rag(url))
    before = await run_once(agent, "When does the office open?")
    with Index(url) as index:
        index.add([{"id": "office", "text": "The office opens at nine.", "title": "Hours"}])
    after = await run_once(agent, "When does the office open?")
    assert sources(before) == []
    assert sources(after) == ["1:office#0"]
    assert "opens at nine" in model.requests[1].messages[-1].text


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("question", "answer", "document"),
    [
        ("Which entry point is an installed plugin found by?", "entry point", "plugins/writing.md"),
        (
            "What does a worker hold a run by?",
            "a lease with a fencing token",
            "concepts/runtime.md",
        ),
        ("What holds the truth?", "store holds the truth", "concepts/stores.md"),
    ],
)
async def test_the_demo_answers_from_our_docs(
    url: str, question: str, answer: str, document: str
) -> None:
    """Offline, without a key, in the words of the docs, and it says where they stand."""
    with Index(url) as index:
        index.add_folder(DOCS, exclude=["_build"])
    agent = define_agent(name="docs", model="demo", lifecycle=rag(url))
    result = await run_once(agent, question)
    assert result.text.startswith("From what I was given: ")
    assert answer in result.text
    assert any(f":{document}#" in each for each in sources(result)), result
    assert len(sources(result)) <= 2, "what it quotes, not all that it was given"


def sources(result: RunResult) -> list[str]:
    """Give the ids of the answer's sources."""
    assert result.message is not None
    return [part.id for part in result.message.parts if isinstance(part, SourcePart)]
