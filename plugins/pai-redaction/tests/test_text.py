"""The invariant: however a text is cut, what leaves is the whole text redacted."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, strategies as st
from pai_redaction import Rule
from pai_redaction._hider import Hider
from pai_redaction._marks import Marks
from pai_redaction._packs import packs
from pai_redaction._pattern import read_pattern
from pai_redaction._scanner import decoded

LETTERS = "ab1- é"
MASK = Marks("mask", None)


# ---------------------------------------------------------------------- what it means, slowly


def longest(rule: Rule, text: str, place: int) -> int:
    """Where the longest match at *place* that is not too long ends; -1 if there is none."""
    for end in range(min(len(text), place + rule.max_length), place, -1):
        exactly = rf"(?:{rule.pattern})(?s:(?=.{{{len(text) - end}}}\Z))"
        if re.compile(exactly, re.ASCII).match(text, place):
            if rule.check is None:
                return end
            counts = rule.check(text[place:end])
            return end if counts is True else place + counts if counts else -1
    return -1


def redacted(rules: Sequence[Rule], text: str) -> str:
    """Everything that any rule matches anywhere, overlapping matches as one."""
    out: list[str] = []
    covered = 0
    for place in range(len(text)):
        found = [(longest(rule, text, place), -index) for index, rule in enumerate(rules)]
        end, index = max(found, default=(-1, 0))
        if end > 0 and place >= covered:
            out.append(f"[{rules[-index].name}]")
        covered = max(covered, end)
        if place >= covered:
            out.append(text[place])
    return "".join(out)


# ---------------------------------------------------------------------- rules and texts at random


LITERALS = ("a", "b", "1", "-", "é", ".", "[ab]", "[^a]", r"\w", r"\d", r"\W", "[a1-]")
EDGES = (r"\b", r"\B")


def patterns(*repeats: str, edges: tuple[str, ...] = EDGES) -> st.SearchStrategy[str]:
    letters = st.sampled_from(LITERALS + edges)
    return st.recursive(
        letters,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner, inner).map("".join),
            st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
            st.tuples(inner, st.sampled_from(repeats)).map(lambda two: f"(?:{two[0]}){two[1]}"),
            inner.map(lambda one: f"(?i:{one.replace('a', 'A')})"),
        ),
        max_leaves=6,
    )


BOUNDED = ("?", "{2}", "{1,3}", "{0,2}?")
CHECKS = (None, None, lambda text: "b" in text, lambda text: len(text) - 1)


def not_empty(pattern: str) -> str:
    try:
        read_pattern(pattern)
    except ValueError:
        return f"a{pattern}"
    return pattern


@st.composite
def rule(draw: st.DrawFn, name: str = "r") -> Rule:
    pattern = not_empty(draw(patterns(*BOUNDED, "*", "+", "{2,}", "*?", "+?")))
    shortest = read_pattern(pattern).shortest
    length = shortest + draw(st.integers(0, 8))
    return Rule(name, pattern, length, check=draw(st.sampled_from(CHECKS)))


@st.composite
def rule_sets(draw: st.DrawFn) -> list[Rule]:
    return [draw(rule(f"r{index}")) for index in range(draw(st.integers(1, 3)))]


TEXTS = st.text(LETTERS, max_size=30)


@st.composite
def pieces(draw: st.DrawFn, text: str) -> list[str]:
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in itertools.pairwise([0, *cuts, len(text)])]


# ---------------------------------------------------------------------- the invariant


@given(st.data(), rule_sets(), TEXTS)
def test_a_stream_is_the_whole_redacted_in_every_cut(data: Any, rules: Any, text: Any) -> None:
    """A-LIFE-5, A-LIFE-6"""
    hider = Hider(rules, MASK)
    expected = redacted(rules, text)
    assert hider.text(text) == expected
    stream = hider.pieces()
    out = [stream.feed(piece) for piece in data.draw(pieces(text))]
    assert "".join([*out, stream.flush()]) == expected
    # It can be used again, and remembers nothing.
    letter_by_letter = [stream.feed(letter) for letter in text]
    assert "".join([*letter_by_letter, stream.flush()]) == expected


EXTENSIONS = ["".join(some) for n in range(5) for some in itertools.product(LETTERS, repeat=n)]


# Of a pattern such as a\bb, which nothing matches, a beginning is held back all the same.
@given(patterns(*BOUNDED, edges=()), TEXTS)
def test_it_holds_back_only_what_may_still_become_a_match(pattern: Any, text: Any) -> None:
    """A-LIFE-5"""
    width = read_pattern(not_empty(pattern)).width
    assume(width is not None and width <= 5)
    one = Rule("r", not_empty(pattern), 5)
    stream = Hider([one], MASK).pieces()
    stream.feed(text)
    if held := decoded(stream._tail[1:]):
        place = len(text) - len(held)
        assert any(longest(one, text + more, place) >= len(text) for more in EXTENSIONS), held


@given(rule_sets(), TEXTS)
def test_no_more_is_held_back_than_the_longest_rule_says(rules: Any, text: Any) -> None:
    stream = Hider(rules, MASK).pieces()
    for letter in text:
        stream.feed(letter)
        most = max([rule.max_length for rule in rules])
        assert len(decoded(stream._tail[1:])) <= most


@pytest.mark.parametrize("mode", ["mask", "hash", "remove"])
@given(data=st.data(), rules=rule_sets(), text=TEXTS)
def test_modes_hide_the_same(mode: Any, data: Any, rules: Any, text: Any) -> None:
    hider = Hider(rules, Marks(mode, "key"))
    whole = hider.text(text)
    stream = hider.pieces()
    out = [stream.feed(piece) for piece in data.draw(pieces(text))]
    assert "".join([*out, stream.flush()]) == whole
    bare = re.sub(r"\[r\d(:[0-9a-f]{12})?\]", "", whole)
    assert bare == re.sub(r"\[r\d\]", "", redacted(rules, text))


RULES = [rule for found in packs().values() for rule in found]
ALL = Hider(RULES, MASK)
SECRETS = (
    "alice@example.com", "4111 1111 1111 1111", "DE89 3704 0044 0532 0130 00", "10.1.2.3",
    "+49 30 1234567", "AKIAIOSFODNN7EXAMPLE", "2001:db8::ff00:42:8329",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF-123", "ghp_0123456789abcdefghijABCDEFGHIJ456789",
    "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\n-----END PRIVATE KEY-----",
    "password=hunter22", "https://u:pw@host/",
)  # fmt: skip


@given(data=st.data())
def test_all_packs_in_every_cut(data: Any) -> None:
    """A-LIFE-5"""
    words = st.one_of(st.sampled_from(SECRETS), st.text(max_size=6), st.text("0123456789 .:-@+e"))
    text = data.draw(st.lists(words, max_size=8).map(data.draw(st.sampled_from(["", " "])).join))
    whole = ALL.text(text)
    stream = ALL.pieces()
    out = [stream.feed(piece) for piece in data.draw(pieces(text))]
    assert "".join([*out, stream.flush()]) == whole


def test_nothing_hidden_is_hidden_again() -> None:
    """Marks hold nothing that a pack would find."""
    for rule in RULES:
        for mode in ("mask", "hash"):
            mark = Marks(mode, None).begin(rule.name).made().decode()
            assert ALL.text(f"a {mark}{mark} b") == f"a {mark}{mark} b"


# ---------------------------------------------------------------------- by hand


def said(text: str, *rules: Rule) -> str:
    return Hider(rules, MASK).text(text)


def test_overlapping_matches_are_hidden_as_one() -> None:
    first, second = Rule("first", "abc", 3), Rule("second", "cde", 3)
    assert said("xabcdex", first, second) == said("xabcdex", second, first) == "x[first]x"
    assert said("abcabc", first) == "[first][first]"
    assert said("abc", Rule("short", "ab", 2), first) == "[first]"
    assert said("abc", first, Rule("same", "ab.", 3)) == "[first]"


def test_its_own_output_is_not_looked_at_again() -> None:
    loud = Rule("x1", "[a-z]{2,8}", 8), Rule("y", r"\[x1\]|x", 8)
    assert said("[ab]", *loud) == "[[x1]]"
    stream = Hider(loud, MASK).pieces()
    assert "".join([*[stream.feed(letter) for letter in "ab]x1]"], stream.flush()]) == "[x1]][y]1]"


def test_a_longer_match_is_hidden_as_far_as_the_rule_goes() -> None:
    digits = Rule("ticket", r"T-\d+", 8)
    assert said("T-1234567890", digits) == "[ticket]7890"
    # Every place may begin one, so all of it goes.
    assert said("x1234567890x", Rule("digits", r"\d{2,}", 4)) == "x[digits]x"


def test_a_stream_does_not_wait_longer_than_a_rule_says() -> None:
    stream = Hider([Rule("ticket", r"T-\d+", 8)], MASK).pieces()
    assert stream.feed("a T-123") == "a "
    assert stream.feed("4567890 and") == "[ticket]7890 and"
    assert stream.feed(" T-") == " "
    assert stream.feed("x") == "T-x"
    assert stream.flush() == ""


def test_what_stands_behind_a_match_of_full_length_is_waited_for() -> None:
    rule = Rule("r", r"a+\b", 3)
    assert said("aaaaa", rule) == "aa[r]"
    stream = Hider([rule], MASK).pieces()
    assert [stream.feed(text) for text in ("aaa", "a", "a")] == ["", "a", "a"]
    assert stream.flush() == "[r]"


def test_own_rules_are_matched_in_linear_time() -> None:
    """A pattern on which a backtracking matcher would not come back."""
    evil = Hider([Rule("evil", r"(?:a+)+b", 1000)], MASK)
    assert evil.text("a" * 20_000) == "a" * 20_000
    assert evil.text("a" * 900 + "b") == "[evil]"


def test_half_a_surrogate_pair_goes_through() -> None:
    stream = ALL.pieces()
    out = stream.feed("x \ud83d") + stream.feed("\ude00 y") + stream.flush()
    assert out == "x \ud83d\ude00 y"


def test_without_rules_nothing_is_hidden_or_held_back() -> None:
    nothing = Hider([], MASK)
    assert nothing.text("alice@example.com") == "alice@example.com"
    assert nothing.pieces().feed("alice") == "alice"
