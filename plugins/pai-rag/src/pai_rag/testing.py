"""A conformance kit for searchers: what :class:`~pai_rag.Searcher` guarantees, checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pai_rag._document import Change, Document, Gone, Known, Seen, Stamp
from pai_rag._index import Index
from pai_rag._passage import Passage
from pai_rag._searcher import Searcher

__all__ = ("SEARCHER_CHECKS", "check_searcher")

_ODD = (
    '"',
    '""',
    '"office" OR "',
    "office NEAR(",
    "NEAR(office, 2)",
    "*",
    "office*",
    "-office",
    "office AND NOT",
    "title:office",
    "scope:office",
    "{title text} : office",
    "^office + (",
    "office) OR partition:(",
    "'; DROP TABLE passage; --",
    "office\\",
    "% _ office",
    "& | ! <-> office",
    "office:* & a",
    "\ud800 office",
    "office\x00",
    "\u202eeciffo",
    "caf\u00e9 \u65e5\u672c\u8a9e \U0001f600",
    "or or or",
    "_ __ ___",
    "x" * 5000,
    "word " * 5000,
)


def check_searcher(make: Callable[[], Searcher]) -> None:
    """
    Check a searcher.

    Args:
        make: Makes one that is not open, over a database without an index, each time another.

    Raises:
        AssertionError: It does not keep what it promises.
    """
    for check in SEARCHER_CHECKS:
        check(make())


def _opens(searcher: Searcher) -> None:
    """There is no index until one is made; closing twice does no harm."""
    assert not searcher.open(create=False)
    searcher.close()
    assert searcher.open(create=True)
    assert searcher.open(create=False)
    searcher.close()
    searcher.close()
    assert searcher.open(create=False)
    searcher.close()


def _finds(searcher: Searcher) -> None:
    """Words are found by their stems, titles count more than text, the best comes first."""
    with _index(searcher) as index:
        index.add(
            [
                {"id": "dogs", "text": "Dogs are welcome in the garden of the office."},
                {"id": "hours", "text": "It opens at nine.", "title": "Offices"},
                {"id": "menu", "text": "Soup and bread."},
            ]
        )
        assert _found(index, "When does the office open?") == ["hours", "dogs"]
        assert _found(index, "gardens") == ["dogs"]
        assert _found(index, "What is this?") == []
        assert _found(index, "helicopter") == []
        assert len(index.search("office", 1)) == 1
        hit = index.search("soup")[0]
        assert (hit.number, hit.title, hit.text) == (0, "menu", "Soup and bread.")
        assert hit.score > 0


def _separates(searcher: Searcher) -> None:
    """A partition neither finds nor changes what is in another (R-7)."""
    odd = "b' OR partition <> '"
    with _index(searcher) as index:
        for partition in ("a", "b", odd):
            index.add([{"id": "1", "text": f"Secret of {partition}"}], partition=partition)
        for partition in ("a", "b", odd):
            texts = [hit.text for hit in index.search("secret", 10, partition=partition)]
            assert texts == [f"Secret of {partition}"]
        assert index.search("secret", partition="c") == []
        assert index.remove(["1"], partition="b").removed == 1
        assert _found(index, "secret", "a") == ["1"]
        assert _found(index, "secret", "b") == []
        assert index.remove(["1"], partition="b").removed == 0


def _replaces(searcher: Searcher) -> None:
    """A document indexed again leaves nothing of what it was; another folder's stays."""
    with _index(searcher) as index:
        long = "\n\n".join([f"Chapter {number} on zebras." * 20 for number in range(5)])
        first = index.add([{"id": "1", "text": long}, {"id": "2", "text": "Lions."}])
        assert (first.added, first.changed) == (2, 0)
        again = index.add([{"id": "1", "text": "On lions."}, {"id": "2", "text": "Lions."}])
        assert (again.added, again.changed, again.unchanged) == (0, 1, 1)
        assert _found(index, "zebras") == []
        assert sorted(_found(index, "lions")) == ["1", "2"]
    searcher.open(create=False)
    searcher.write("default", "folder", [_document("1", "On lions, too.")])
    assert len(searcher.search("default", ["lions"], 10)) == 3
    searcher.write("default", "folder", [Gone("1"), Gone("never")])
    assert len(searcher.search("default", ["lions"], 10)) == 2
    searcher.close()


def _knows(searcher: Searcher) -> None:
    """It gives back what it was told of a document, and a new stamp changes nothing else."""
    searcher.open(create=True)
    first, second = _document("1", "One."), _document("2", "Two.")
    searcher.write("p", "f", [first, second])
    assert searcher.known("p", "f") == {"1": first.known, "2": second.known}
    assert searcher.known("p", "f", ["2", "3"]) == {"2": second.known}
    assert searcher.known("p", "") == searcher.known("q", "f") == {}
    stamp = Stamp(7, 2**62, 2**62 + 1)
    searcher.write("p", "f", [Seen("2", stamp)])
    assert searcher.known("p", "f", ["2"]) == {"2": Known(second.known.digest, stamp)}
    assert [hit.text for hit in searcher.search("p", ["two"], 5)] == ["Two."]
    searcher.close()


def _is_atomic(searcher: Searcher) -> None:
    """Changes that break off in the middle have changed nothing."""

    def changes() -> Iterator[Change]:
        yield Gone("1")
        yield _document("2", "Two.")
        raise KeyError("broken off")

    searcher.open(create=True)
    searcher.write("p", "", [_document("1", "One.")])
    try:
        searcher.write("p", "", changes())
    except KeyError:
        pass
    else:
        raise AssertionError("what the changes raise goes through")
    assert list(searcher.known("p", "")) == ["1"]
    assert searcher.search("p", ["two"], 5) == []
    assert len(searcher.search("p", ["one"], 5)) == 1
    searcher.close()


def _takes_no_syntax(searcher: Searcher) -> None:
    """Nothing of a query is syntax: it neither fails nor finds more than its words."""
    with _index(searcher) as index:
        index.add([{"id": "mine", "text": "The office."}, {"id": "apples", "text": "Apples."}])
        index.add([{"id": "theirs", "text": "The office."}], partition="other")
        for query in _ODD:
            found = _found(index, query)
            assert found == (["mine"] if "office" in query else []), query


SEARCHER_CHECKS: tuple[Callable[[Searcher], None], ...] = (
    _opens,
    _finds,
    _separates,
    _replaces,
    _knows,
    _is_atomic,
    _takes_no_syntax,
)
"""Each takes a searcher that is not open, over a database without an index, and closes it."""


def _index(searcher: Searcher) -> Index:
    return Index(searcher=searcher)


def _found(index: Index, query: str, partition: str = "default") -> list[str]:
    hits: list[Passage] = index.search(query, 10, partition=partition)
    return [hit.document for hit in hits]


def _document(id: str, text: str) -> Document:
    known = Known(f"digest of {text}", Stamp(1, 2, 3))
    return Document(id, known, "text/plain", None, (("Title", text),))
