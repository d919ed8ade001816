"""A log that was made short tells what it told before, from wherever one begins (R-25)."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any

import attrs
import pytest
from hypothesis import given, settings, strategies as st

from pai.protocol import (
    Batch,
    CallOutput,
    Data,
    DataPart,
    Event,
    MessageView,
    QuestionAsked,
    RunFinished,
    RunQueued,
    RunStarted,
    RunSuspended,
    StepFinished,
    StepReset,
    StepStarted,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ThreadState,
    ThreadUpdated,
    ToolCall,
    ToolProgress,
    compact,
    fold,
)

from .test_fold import QUEUED, THEN, numbered, scripts, story


def cut(events: list[Event], sizes: list[int]) -> list[Batch]:
    """Batches of these sizes, though each is of one run; *events* are numbered."""
    batches: list[Batch] = []
    left = 0
    for at, event in enumerate(events):
        if not left or batches[-1].run_id != event.run_id:
            batches.append(Batch(at + 1, event.run_id, []))
            left = sizes[len(batches) % len(sizes)]
        batches[-1].events.append(copy(event))
        batches[-1].size += 1
        left -= 1
    return batches


def shortened(batches: list[Batch], ended: set[str]) -> list[Batch]:
    """The log with what is compact in place of what it stands for."""
    log = {batch.last: batch for batch in batches}
    for new, first_last in compact(batches, ended):
        for last in [last for last in log if first_last <= last <= new.last]:
            assert log[last].run_id == new.run_id
            del log[last]
        # It is read back from the store.
        log[new.last] = Batch(
            new.first, new.run_id, body=new.body, size=new.size, compact=new.compact
        )
    found = [log[last] for last in sorted(log)]
    at = 1
    for batch in found:
        assert batch.first == at
        at = batch.last + 1
    return found


def after(batches: list[Batch], cursor: int) -> list[Event]:
    return [event for batch in batches for event in batch.numbered(cursor)]


def check(events: list[Event], sizes: list[int], ended: set[str]) -> list[Batch]:
    """All that holds of a shortened log."""
    batches = cut(events, sizes)
    end = fold(None, events)
    short = shortened(batches, ended)
    # Shortening again finds nothing to do.
    assert compact(short, ended) == []
    told = after(short, 0)
    assert fold(None, told) == end
    # Whoever saw the long log up to somewhere goes on with the short one.
    for at in range(len(events) + 1):
        state = fold(None, events[:at]) if at else None
        rest = after(short, at)
        numbers = [event.seq for event in rest if event.seq]
        assert numbers == sorted(set(numbers))
        assert all(number > at for number in numbers)
        assert fold(state, rest) == end if rest or state else True
    # So does who saw the short one up to somewhere.
    for at in range(1, len(told) + 1):
        state = fold(None, told[:at])
        assert fold(state, after(short, state.cursor)) == end
    return short


@settings(max_examples=50)
@given(
    script=scripts,
    plain=st.booleans(),
    sizes=st.lists(st.integers(1, 6), min_size=1, max_size=5),
    strange=st.lists(st.integers(0, 60), max_size=4),
    both=st.booleans(),
)
def test_a_short_log_tells_the_same(
    script: list[Any], plain: bool, sizes: list[int], strange: list[int], both: bool
) -> None:
    """R-25: over real runs, with events of the thread and of other runs between theirs."""
    events, _ = asyncio.run(story(script, "memory:", plain))
    runs = list(dict.fromkeys(event.run_id for event in events if event.run_id))
    log = [copy(event) for event in events]
    for number, at in enumerate(strange):
        title = ThreadUpdated(f"title {number}", "manual")
        log.insert(min(max(at, 1), len(log)), title)
    for at, event in enumerate(log, 1):
        event.seq = at
    check(log, sizes, set(runs if both else runs[:1]))


def finished(*events: Event) -> list[Event]:
    return [*events, RunFinished("completed", finished_at=THEN)]


def begun() -> list[Event]:
    return [attrs.evolve(QUEUED), RunStarted("t", started_at=THEN)]


def words(*texts: str) -> list[Event]:
    return [TextStart("a"), *[TextDelta("a", text) for text in texts], TextEnd("a")]


def bodies(batches: list[Batch]) -> list[list[str]]:
    return [[event.type for event in batch.events] for batch in batches]


def test_a_text_is_one_delta() -> None:
    log = numbered(
        *finished(*begun(), StepStarted(0, "m", THEN), *words(*"Hello"), StepFinished(0, "stop"))
    )
    (batch,) = check(log, [2], {"r"})
    assert (batch.first, batch.last) == (1, len(log))
    assert bodies([batch]) == [
        ["run-queued", "run-started", "step-started", "text-start", "text-delta", "text-end",
         "step-finished", "run-finished"],
    ]  # fmt: skip
    assert [event.seq for event in batch.numbered()] == [1, 2, 3, 4, 5, 6, 7, len(log)]
    assert [event.seq for event in batch.numbered(9)] == [0, 0, 0, 0, 0, 10, 11, 12]
    assert list(batch.numbered(12)) == []


def test_what_is_of_no_use_later_goes() -> None:
    log = numbered(
        *finished(
            *begun(), StepStarted(0, "m", THEN), *words("lost"), StepReset("again"),
            Data("a", 1, None, transient=True), *words("kept"), StepFinished(0, "stop"),
            ToolProgress("c", 1), StepStarted(1, "n", THEN), *words("cut off"),
            StepReset("takeover"), StepStarted(1, "o", THEN), *words("x"),
            StepFinished(1, "stop"),
        )
    )  # fmt: skip
    (batch,) = check(log, [3], {"r"})
    texts = [event.text for event in batch.events if isinstance(event, TextDelta)]
    assert texts == ["kept", "x"]
    assert not {"step-reset", "tool-progress", "data"} & {event.type for event in batch.events}


def other(at: int) -> list[Event]:
    """Another message comes in."""
    message = MessageView("v", "user", (TextPart("ho"),), {}, "s", THEN)
    (event,) = numbered(attrs.evolve(QUEUED, message=message), run="s", first=at)
    return [event]


def test_a_run_that_others_come_between() -> None:
    """A step stands whole where it was committed, and its message where it was."""
    first = numbered(*begun(), StepStarted(0, "m", THEN), TextStart("a"), TextDelta("a", "He"))
    rest = finished(TextDelta("a", "llo"), TextEnd("a"), StepFinished(0, "stop"))
    log = [*first, *other(6), *numbered(*rest, first=7)]
    one, two, three = check(log, [5], {"r"})
    assert bodies([one, two]) == [["run-queued", "run-started"], ["run-queued"]]
    assert bodies([three])[0][0] == "step-started"
    # The other run may still be at work.
    assert two.run_id == "s"


def test_data_of_a_tool_behind_its_message() -> None:
    """It is not added twice for who has it: the message is told again."""
    step: list[Event] = [
        StepStarted(0, "m", THEN),
        ToolCall("c", "add", 1),
        StepFinished(0, "tool-calls"),
    ]
    first = numbered(*begun(), *step, Data("n", 1))
    rest = numbered(*finished(CallOutput("c", 2), Data("n", 2), Data("n", 3)), first=8)
    *_, last = check([*first, *other(7), *rest], [9], {"r"})
    # But not to who comes from before.
    assert last.retold == 4
    assert [event.type for event in last.numbered()] == [
        "tool-output", "data", "data", "run-finished",
    ]  # fmt: skip
    assert [event.seq for event in last.numbered(9)] == [0, 0, 0, 0, 0, 0, 10, 11]
    message = fold(None, [*first, *other(7), *rest]).messages[1]
    assert [part.value for part in message.parts if isinstance(part, DataPart)] == [1, 2, 3]


def test_a_run_that_waited() -> None:
    asked = QuestionAsked("q", {"message": "Sure?"}, "t", {}, "d")
    log = numbered(
        *finished(
            *begun(), StepStarted(0, "m", THEN), *words(*"abc"), ToolCall("c", "t", {}),
            StepFinished(0, "tool-calls"), asked, RunSuspended(1),
            RunQueued("resume", answered=["q"]), RunStarted("t", 1, 2), CallOutput("c", 1),
            StepStarted(1, "n", THEN), *words(*"de"), StepFinished(1, "stop"),
        )
    )  # fmt: skip
    assert len(check(log, [3], {"r"})) == 1


def test_a_run_that_has_not_ended_stays() -> None:
    log = numbered(*begun(), StepStarted(0, "m", THEN), *words(*"Hello"))
    assert bodies(check(log, [4], set())) == bodies(cut(log, [4]))


@pytest.mark.parametrize("size", [1, 3])
def test_who_knows_it_all_is_told_nothing(size: int) -> None:
    batch = Batch(5, "r", [RunFinished("completed")], size=size, compact=1)
    state: ThreadState | None = None
    assert [event.seq for event in batch.numbered(0)] == [4 + size]
    assert list(batch.numbered(4 + size)) == []
    assert state is None
