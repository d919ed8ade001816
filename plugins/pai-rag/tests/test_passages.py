"""Documents become passages, queries become terms, answers become citations."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st
from pai_rag import Passage
from pai_rag._chunks import cut, passages_of
from pai_rag._citations import cited_numbers
from pai_rag._sections import MEDIA_TYPES, sections_of
from pai_rag._tail import fitting
from pai_rag._terms import terms_of

WORDS = st.text("abc \n#-`*[]()<>&;.\t\u00e9\u65e5", max_size=400) | st.text(max_size=200)


@given(WORDS, st.integers(1, 80))
def test_cutting_loses_nothing(text: str, size: int):
    pieces = list(cut(text, size))
    assert all(0 < len(piece) <= size and piece.strip() for piece in pieces)
    assert "".join("".join(pieces).split()) == "".join(text.split())


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=20), max_size=60), st.integers(60, 100))
def test_words_stay_whole(words: list[str], size: int):
    assert " ".join(cut(" ".join(words), size)).split() == words


@given(WORDS, st.sampled_from(MEDIA_TYPES), st.integers(100, 300))
def test_any_document_can_be_cut(text: str, media_type: str, size: int):
    for title, piece in passages_of(text, media_type, size=size, title="T"):
        assert title.startswith("T")
        assert 0 < len(piece) <= size


BLOCKS = st.lists(
    st.one_of(
        st.builds(lambda level, word: f"{'#' * level} {word}", st.integers(1, 6), st.just("h")),
        st.text("abc ", min_size=1).map(str.strip).filter(bool),
        st.text("abc #\n", min_size=1).map(lambda text: f"```\n{text.strip()}\n```"),
    ),
    max_size=12,
)


@given(BLOCKS)
def test_markdown_keeps_every_line_below_its_headings(blocks: list[str]):
    sections = sections_of("\n\n".join(blocks), "text/markdown")
    written = "\n".join(block for block in blocks if not block.startswith("#"))
    kept = "\n".join(each.text for each in sections if each.text != "h")
    assert kept.split() == written.split()


def test_markdown():
    text = (
        "---\ntitle: x\n---\nBefore.\n\n# A `b`\n\nOne.\n\n```\n# no heading\n```\n\n"
        "Deep\n----\n\n### Deeper\nTwo.\n\n> # quoted\n\n## Next ##\n\n# Empty\n"
    )
    found = [(each.headings, each.text) for each in sections_of(text, "text/markdown")]
    assert found == [
        ((), "Before."),
        (("A b",), "One.\n\n```\n# no heading\n```"),
        (("A b", "Deep", "Deeper"), "Two.\n\n> # quoted"),
        (("A b", "Next"), "Next"),
        (("Empty",), "Empty"),
    ]


def test_html():
    text = (
        "<!DOCTYPE html><html><head><title>Site &amp; co</title><style>p { color: red }</style>"
        "<script>var a = '<p>no</p>'</script></head><body><nav>Home | <p>About</nav>"
        "<h1>Guide</h1><p>One   <b>two</b>\nthree.<p>Four&nbsp;five<br>six"
        "<h2>Code</h2><pre>if x:\n    y\n</pre><ul><li>a<li>b</ul>"
        "<table><tr><td>c<td>d</table><![CDATA[ <h2>odd</h2> ]]><svg><text>no</text></svg>"
    )
    found = [(each.headings, each.text) for each in sections_of(text, "text/html")]
    assert found[0] == (("Site & co", "Guide"), "One two three.\n\nFour five\nsix")
    assert found[1][0] == ("Site & co", "Guide", "Code")
    assert found[1][1].startswith("if x:\n    y\n\n- a\n- b\n\n c d")
    assert not re.search(r"\bno\b|red|Home|About", " ".join(text for _, text in found))


@given(st.text() | st.text('"*()-:^{}+ abc\u00e9\x00_'))
def test_terms_hold_no_syntax(query: str):
    terms = terms_of(query)
    assert len(terms) == len(set(terms)) <= 64
    for term in terms:
        assert re.fullmatch(r"\w+", term)
        assert term not in {"or", "and", "not"}


def test_terms():
    assert terms_of("How do I use define_agent() in Z\u00fcrich, 2024?") == (
        "use", "define_agent", "z\u00fcrich", "2024",
    )  # fmt: skip
    assert terms_of("What is it?") == ()
    assert len(terms_of(" ".join(map(str, range(1000))))) == 64


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("So it is [2], and so [1][3].", (2, 1, 3)),
        ("All of it [1, 3; 2].", (1, 3, 2)),
        ("Twice[1] the same [1].", (1,)),
        ("No such [0] [4] [99], no [x] [-1] [] [1.5].", ()),
        ("Code `items[1]` and\n```\na[2]\n```\nbut [3].", (3,)),
        ("```\nleft open [1]", ()),
        ("One ` alone [1].", (1,)),
    ],
)
def test_citations(text: str, numbers: tuple[int, ...]):
    assert cited_numbers(text, 3) == numbers


@given(st.text("[]0123456789,; `~\n"), st.integers(0, 5))
def test_only_given_numbers_are_cited(text: str, given: int):
    numbers = cited_numbers(text, given)
    assert len(set(numbers)) == len(numbers)
    assert all(1 <= number <= given for number in numbers)


def passage(text: str) -> Passage:
    return Passage("d", 0, "t", text, "text/plain")


@given(st.lists(st.text("a", min_size=1, max_size=20).map(passage)), st.integers(1, 50))
def test_what_fits(passages: list[Passage], most: int):
    kept = fitting(passages, most)
    assert sum(len(each.text) for each in kept) <= most
    assert len(kept) >= min(1, len(passages)), "something is always given"
    assert kept[1:] == tuple(passages[1 : len(kept)])
