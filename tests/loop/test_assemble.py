"""A step's stream becomes the parts of its message, however it comes in and wherever it ends."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pai import (
    DataPart,
    ModelError,
    ReasoningPart,
    TextPart,
    ToolCallPart,
)
from pai.loop._assemble import Assembly
from pai.protocol import (
    Data,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StepFinish,
    StepReset,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)

USED = {"c0"}


provider_data: st.SearchStrategy[Any] = st.sampled_from([None, {"p": 1}])


@st.composite
def streams(draw: st.DrawFn) -> list[Any]:
    """Well-formed streams: parts that are open at the same time, resets, data, sources."""
    parts: list[Any] = []
    open_: dict[str, str] = {}
    number = 0
    for kind in draw(st.lists(st.sampled_from("trcdsfRDDDEEE"), max_size=25)):
        number += 1
        id_ = f"{kind}{number}"
        if kind == "t":
            open_[id_] = kind
            parts.append(TextStart(id_))
        elif kind == "r":
            open_[id_] = kind
            parts.append(ReasoningStart(id_))
        elif kind == "c":
            # Some servers count from 0 again in each answer.
            id_ = draw(st.sampled_from([id_, "c0"]))
            if id_ in open_ or any(getattr(part, "call_id", "") == id_ for part in parts):
                continue
            open_[id_] = kind
            parts.append(ToolInputStart(id_, "look"))
        elif kind == "d":
            parts.append(Data("note", number, draw(st.sampled_from([None, "one", "two"])),
                              draw(st.booleans())))  # fmt: skip
        elif kind == "s":
            parts.append(Source(id_, f"https://example.com/{id_}"))
        elif kind == "f":
            parts.append(File("image/png", data="AA=="))
        elif kind == "R":
            if draw(st.integers(0, 4)) == 0:
                open_.clear()
                parts.append(StepReset("again"))
        elif open_:
            id_ = draw(st.sampled_from(sorted(open_)))
            text = draw(st.text(max_size=3))
            if kind == "D":
                delta = {"t": TextDelta, "r": ReasoningDelta, "c": ToolInputDelta}[open_[id_]]
                parts.append(delta(id_, text))
            else:
                end = open_.pop(id_)
                if end == "t":
                    parts.append(TextEnd(id_))
                elif end == "r":
                    parts.append(ReasoningEnd(id_, draw(provider_data)))
                else:
                    parts.append(ToolCall(id_, "look", {"n": number}))
    for id_, kind in open_.items():
        ends = {"t": TextEnd(id_), "r": ReasoningEnd(id_), "c": ToolCall(id_, "look", {})}
        parts.append(ends[kind])
    parts.append(StepFinish("stop"))
    return parts


def fed(parts: list[Any], sizes: list[int]) -> tuple[Assembly, list[Any]]:
    """An assembly that was fed these parts in lists of these sizes."""
    parts = copy.deepcopy(parts)
    assembly = Assembly("p", set(USED))
    events: list[Any] = []
    turn = 0
    while parts:
        size = sizes[turn % len(sizes)]
        turn += 1
        events += assembly.feed(parts[:size])
        parts = parts[size:]
    return assembly, events


def known(parts: list[Any]) -> list[Any]:
    """The parts without the ids that were made fresh."""
    return [
        (part.tool, part.input, part.outcome, part.raw) if isinstance(part, ToolCallPart) else part
        for part in parts
    ]


sizes = st.lists(st.integers(1, 7), min_size=1, max_size=5)


@given(streams(), sizes)
def test_any_chunking_gives_the_same_parts(stream: list[Any], chunks: list[int]) -> None:
    whole, all_at_once = fed(stream, [1000])
    other, events = fed(stream, chunks)
    assert known(other.parts()) == known(whole.parts())
    assert [event.type for event in events] == [event.type for event in all_at_once]
    assert [event.type for event in events] == [part.type for part in stream[:-1]]
    assert other.close() == []


@given(streams(), sizes)
def test_the_parts_are_what_the_stream_said(stream: list[Any], chunks: list[int]) -> None:
    """Told by a model of it that is as plain as can be."""
    resets = [index for index, part in enumerate(stream) if isinstance(part, StepReset)]
    kept = stream[resets[-1] + 1 if resets else 0 :]
    expected: list[Any] = []
    for part in kept:
        if isinstance(part, (TextStart, ReasoningStart)):
            same = [other for other in kept if getattr(other, "id", None) == part.id]
            text = "".join([other.text for other in same if hasattr(other, "text")])
            data = next((x.provider_data for x in same if hasattr(x, "provider_data")), None)
            if text or (data and isinstance(part, ReasoningStart)):
                expected.append((part.type.split("-")[0], text))
        elif isinstance(part, ToolInputStart):
            call = next(x for x in kept if isinstance(x, ToolCall) and x.call_id == part.call_id)
            expected.append(("tool-call", call.input))
        elif isinstance(part, (Source, File)):
            expected.append((part.type, None))
        elif isinstance(part, Data) and not part.transient:
            entry = [part.id, part.value]
            earlier = [x for x in expected if isinstance(x, list) and part.id and x[0] == part.id]
            if earlier:
                earlier[0][1] = part.value
            else:
                expected.append(entry)

    def short(part: Any) -> Any:
        if isinstance(part, DataPart):
            return [part.id, part.value]
        if isinstance(part, ToolCallPart):
            return (part.type, part.input)
        return (part.type, getattr(part, "text", None))

    assembly, _ = fed(stream, chunks)
    assert [short(part) for part in assembly.parts()] == expected
    own = [part.call_id for part in assembly.parts() if isinstance(part, ToolCallPart)]
    assert not USED.intersection(own)
    assert own == [call.call_id for call in assembly.calls] or set(own) == {
        call.call_id for call in assembly.calls
    }


@given(streams(), st.integers(0, 40), sizes)
def test_a_cut_at_any_point_gives_a_whole_message(
    stream: list[Any], at: int, chunks: list[int]
) -> None:
    """R-14: open text is closed, a call that is not whole keeps its text."""
    assembly, events = fed(stream[:at], chunks)
    closing = assembly.close()
    assert assembly.close() == []
    opened: set[str] = set()
    for event in [*events, *closing]:
        if event.type in ("text-start", "reasoning-start"):
            opened.add(event.id)
        elif event.type == "tool-input-start":
            opened.add(event.call_id)
        elif event.type in ("text-end", "reasoning-end"):
            opened.remove(event.id)
        elif event.type == "tool-call":
            opened.remove(event.call_id)
        elif event.type == "step-reset":
            opened.clear()
    assert opened == set()
    for part in assembly.parts():
        if isinstance(part, (TextPart, ReasoningPart)):
            assert part.text or part.provider_data
        if isinstance(part, ToolCallPart):
            assert (part.input is None) == (part.raw is not None)


def test_a_model_error_names_the_provider_and_no_content() -> None:
    assembly = Assembly("acme", set())
    with pytest.raises(ModelError, match="text-delta came out of place") as caught:
        assembly.feed([TextDelta("nobody", "hunter2")])
    assert (caught.value.provider, caught.value.code) == ("acme", "malformed_stream")
    assert "hunter2" not in str(caught.value)


def test_a_renamed_call_s_deltas_follow_it_and_others_do_not() -> None:
    assembly = Assembly("p", {"c"})
    events = assembly.feed([ToolInputStart("c", "look"), ToolInputDelta("c", "{}")])
    assert events[0].call_id == events[1].call_id != "c"
    assembly.feed([StepReset("again")])
    with pytest.raises(ModelError):
        assembly.feed([ToolInputDelta("c", "{}")])
