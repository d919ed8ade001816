"""Prefixes: their hashes, and what is said when they break."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st
from pai_prompt_cache import fnv1a
from pai_prompt_cache._break import Break, find_break
from pai_prompt_cache._digest import of_message
from pai_prompt_cache._prefix import Chain, Head, Prefix

from pai import (
    DataPart,
    Message,
    ModelRequest,
    OutputPart,
    ProviderTool,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCallPart,
)
from pai.protocol import ToolSpec

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def message(*parts: Any, role: Any = "user") -> Message:
    made = tuple([TextPart(part) if isinstance(part, str) else part for part in parts])
    return Message("m", role, made, "r", NOW)


def tool(name: str, description: str = "d") -> ToolSpec:
    return ToolSpec(name, description, {"type": "object"})


def prefix(*texts: str, model: str = "p:m", **fields: Any) -> Prefix:
    request = ModelRequest(model, [message(text) for text in texts], **fields)
    return Prefix(Head.of(request), Chain.of(request.messages).hashes)


def broken(old: Prefix, new: Prefix) -> Break:
    found = find_break(old, new)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", "811c9dc5"), (b"a", "e40c292c"), (b"foobar", "bf9cf968"), (b"b", "e70c2de5")],
)
def test_the_hash_is_the_one_that_everybody_has(data: bytes, expected: str) -> None:
    """O-10: portable vectors."""
    assert f"{fnv1a(data):08x}" == expected


@given(st.binary(), st.binary())
def test_a_hash_goes_on_where_another_ended(left: bytes, right: bytes) -> None:
    assert fnv1a(right, fnv1a(left)) == fnv1a(left + right)


texts = st.lists(st.sampled_from("abc"), max_size=8)


@given(texts, texts)
@settings(deadline=None)
def test_a_break_is_always_at_the_first_message_that_differs(
    old: list[str], new: list[str]
) -> None:
    """O-12"""
    found = find_break(prefix(*old), prefix(*new))
    common = next((n for n, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), None)
    if common is None:
        assert found is None
    else:
        assert found is not None
        assert (found.at, found.kept, found.lost) == (
            f"message {common}", common, len(old) - common,
        )  # fmt: skip


@given(texts, texts)
@settings(deadline=None)
def test_a_chain_that_goes_on_is_the_chain_made_anew(old: list[str], new: list[str]) -> None:
    first = [message(text) for text in old]
    kept = [a for a, b in zip(first, new, strict=False) if a.text == b]
    messages = [*kept, *[message(text) for text in new]]
    assert Chain.of(messages, Chain.of(first)).hashes == Chain.of(messages).hashes


def test_a_message_that_was_seen_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step costs what is new in it."""
    from pai_prompt_cache import _prefix

    looked: list[Message] = []

    def look(seen: Message) -> bytes:
        looked.append(seen)
        return of_message(seen)

    messages = [message(str(n)) for n in range(50)]
    before = Chain.of(messages[:48])
    monkeypatch.setattr(_prefix, "of_message", look)
    assert Chain.of(messages, before).hashes == Chain.of(messages).hashes[:50]
    assert looked[:2] == messages[48:]
    assert len(looked) == 52


def test_what_is_new_at_the_end_is_no_break() -> None:
    assert find_break(prefix("a"), prefix("a", "b")) is None
    assert find_break(prefix("a", "b"), prefix("a")) is None
    assert find_break(prefix(), prefix("a")) is None


@pytest.mark.parametrize(
    ("old", "new", "at", "details"),
    [
        ({"model": "p:m"}, {"model": "p:n"}, "model", {"before": "p:m", "after": "p:n"}),
        (
            {"instructions": (SystemMessage("a"), SystemMessage("b"))},
            {"instructions": (SystemMessage("a"), SystemMessage("b", {"p": {"cache": True}}))},
            "instructions",
            [1],
        ),
        ({"instructions": (SystemMessage("a"),)}, {}, "instructions", [0]),
        (
            {"tools": (tool("a"), tool("b"), tool("c"))},
            {"tools": (tool("b"), tool("a", "other"), tool("d"))},
            "tools",
            {"added": ["d"], "removed": ["c"], "changed": ["a"], "moved": True},
        ),
        (
            {"tools": (tool("a"), tool("b"))},
            {"tools": (tool("b"), tool("a"))},
            "tools",
            {"added": [], "removed": [], "changed": [], "moved": True},
        ),
        (
            {},
            {"provider_tools": (ProviderTool("p", "web_search"),)},
            "tools",
            {"added": ["p:web_search"], "removed": [], "changed": [], "moved": False},
        ),
        ({}, {"output": {"type": "object"}}, "output", True),
    ],
)
def test_a_break_says_what_changed(old: Any, new: Any, at: str, details: Any) -> None:
    """O-12"""
    found = broken(prefix("x", "y", **old), prefix("x", "y", "z", **new))
    assert (found.at, found.changed, found.details) == (at, (at,), {at: details})
    assert (found.kept, found.lost) == (0, 2)
    assert found.before != found.after


def test_the_first_of_several_changes_is_where_it_broke() -> None:
    old = prefix("x", "y", tools=(tool("a"),))
    found = broken(old, prefix("x", "other", instructions=(SystemMessage("new"),)))
    assert found.at == "instructions"
    assert found.changed == ("instructions", "tools", "message 1")


def test_what_a_model_is_not_told_does_not_count() -> None:
    call = ToolCallPart("c", "add", {"a": 1, "b": [2]}, "completed", 3)
    plain = message("hi", ReasoningPart("why"), call, role="assistant")
    told = of_message(plain)
    assert of_message(attrs.evolve(plain, id="other", run_id="other")) == told
    assert of_message(message("hi", DataPart("x", 1), *plain.parts[1:], role="assistant")) == told
    labelled = ReasoningPart("why", "a label")
    assert of_message(message("hi", labelled, call, role="assistant")) == told
    # An output is told by its text, unless it came as a value.
    read, given = (OutputPart(1, in_text=in_text) for in_text in (True, False))
    assert of_message(message("hi", *plain.parts[1:], read, role="assistant")) == told
    assert of_message(message("hi", *plain.parts[1:], given, role="assistant")) != told


@given(
    st.sampled_from(["text", "reasoning", "tool", "input", "output", "error", "outcome", "role"])
)
def test_what_a_model_is_told_counts(field: str) -> None:
    call = ToolCallPart("c", "add", {"a": 1}, "completed", 3)
    other: dict[str, Any] = {
        "tool": {"tool": "sub"},
        "input": {"input": {"a": 2}},
        "output": {"output": 4},
        "error": {"error": "no"},
        "outcome": {"outcome": "failed"},
    }
    told = of_message(message("hi", ReasoningPart("why"), call, role="assistant"))
    changed = message(
        "ho" if field == "text" else "hi",
        ReasoningPart("how" if field == "reasoning" else "why"),
        attrs.evolve(call, **other.get(field, {})),
        role="user" if field == "role" else "assistant",
    )
    assert of_message(changed) != told


def test_texts_are_told_apart_from_where_they_end() -> None:
    assert of_message(message("ab", "c")) != of_message(message("a", "bc"))
