"""What must be true of a store when all is over."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import attrs

from pai import Pai, create_pai
from pai.protocol import (
    Event,
    ReasoningPart,
    ReasoningSummary,
    RunFinished,
    RunQueued,
    RunStarted,
    RunSuspended,
    TextPart,
    ThreadState,
    ThreadUpdated,
    ToolCallPart,
    child_id,
    fold,
)

from .answering import answer_faults, answers_in, provided_in
from .scripts import content, kind_of, number_of, thread_of
from .watcher import thread_ids
from .worker import all_sends
from .workload import LABEL, Marks, agent, faults

__all__ = ("Figures", "check", "events_of", "log_faults")


@attrs.define
class Figures:
    """What a campaign came to."""

    runs: int = 0
    threads: int = 0
    events: int = 0
    takeovers: int = 0
    calls: int = 0
    interrupted: int = 0
    answers: int = 0
    answered_at_work: int = 0
    bodies: int = 0
    subagents: int = 0
    subagents_cancelled: int = 0
    statuses: Counter[str] = attrs.Factory(Counter)
    findings: list[str] = attrs.Factory(list)


async def check(url: str, folder: Path, seed: int) -> Figures:
    """Look at every thread; what is wrong stands in the findings."""
    figures = Figures()
    chance = random.Random(seed)
    sends = all_sends(folder)
    marks = Marks(folder / "marks").lines()
    ran: dict[str, Counter[str]] = defaultdict(Counter)
    for words in marks:
        if words[0] == "ran":
            ran[words[1]][words[2]] += 1
    figures.bodies = sum([counter.total() for counter in ran.values()])
    figures.findings += list(_mark_faults(marks))
    told = {int(words[1].partition("-")[2]) for words in marks if words[0] == "settled"}
    figures.findings += [
        " ".join(words) for words in marks if words[0] == "error" and words[1] not in _STOPPED
    ]
    async with create_pai(
        agents={"a": agent(Marks(folder / "late"))}, store=url, work=False
    ) as app:
        found: set[int] = set()
        children: dict[str, tuple[int, ToolCallPart]] = {}
        begun: set[int] = set()
        provided: Counter[str] = Counter()
        for thread_id in sorted(await thread_ids(app)):
            handle = app.thread("a", thread_id=thread_id)
            state = await handle.state()
            events = await events_of(handle, state.cursor)
            figures.threads += 1
            figures.events += len(events)
            provided += provided_in(state.messages)
            answers, at_work = answers_in(events)
            figures.answers += answers
            figures.answered_at_work += at_work
            for fault in (*log_faults(state, events, chance), *answer_faults(events)):
                figures.findings.append(f"{thread_id}: {fault}")
            late = chance.randrange(len(events))
            if await events_of(handle, state.cursor, late) != events[late:]:
                figures.findings.append(f"{thread_id}: one who joins at {late} sees other events")
            async for fault in _run_faults(app, thread_id, state, events, ran, figures):
                figures.findings.append(f"{thread_id}: {fault}")
            found.update([number_of(run.id) for run in state.runs])
            # One that was cancelled in the queue has no observers.
            begun.update([number_of(run.id) for run in state.runs if run.started_at])
            children |= {own: call for call, own in _helpers(state)}
        for own in await thread_ids(app, "a/helper"):
            handle = app.thread("a/helper", thread_id=own)
            async for fault in _child_faults(
                handle, children.pop(own, None), ran[own], chance, figures
            ):
                figures.findings.append(f"{own}: {fault}")
        figures.findings += [
            f"{call} of {number} has completed without its subagent"
            for number, call in children.values()
            if call.outcome != "interrupted"
        ]
    figures.findings += [
        f"{value} was provided once and is there {times} times"
        for value, times in provided.items() if times > 1
    ]  # fmt: skip
    if missing := sends["accepted"] - found:
        figures.findings.append(f"accepted and lost: {sorted(missing)}")
    if strange := found - sends["asked"]:
        figures.findings.append(f"never asked for: {sorted(strange)}")
    if untold := begun - told:
        figures.findings.append(f"run_settled was not told of: {sorted(untold)}")
    return figures


def _mark_faults(marks: list[list[str]]) -> Iterator[str]:
    """What worked on a call whose end had been told, or what a model was shown twice."""
    # Who was stopped behind its last look at its lease begins what others have ended meanwhile.
    stopped = {words[1] for words in marks if words[0] == "stopped"}
    finished: set[tuple[str, ...]] = set()
    for what, *words in marks:
        if what == "finished":
            finished.add(tuple(words))
        elif what == "ran" and (words[0], words[1]) in finished and words[2] not in stopped:
            yield f"{words[0]}: {words[1]} ran again when its end was known"
        elif what == "shown":
            yield f"a model was shown {' '.join(words)}"


async def events_of(thread: Any, until: int, after: int = 0) -> list[Event]:
    found: list[Event] = []
    with anyio.fail_after(30):
        while after < until:
            async for event in thread.events(after):
                after = event.seq
                found.append(event)
                if after >= until:
                    break
    return found


def log_faults(state: ThreadState, events: list[Event], chance: random.Random) -> Iterator[str]:
    if [event.seq for event in events] != list(range(1, state.cursor + 1)):
        yield "the log has a gap"
    if fold(None, events) != state:
        yield "fold(events) is not the state"
    for _ in range(3):
        cut = chance.randrange(1, len(events))
        if fold(fold(None, events[:cut]), events[cut:]) != state:
            yield f"folded in two at {cut}, the events are not the state"
    # One that was handed back is queued again.
    queued = list(dict.fromkeys([e.run_id for e in events if isinstance(e, RunQueued)]))
    started = [e for e in events if isinstance(e, RunStarted)]
    ended = [event.run_id for event in events if isinstance(event, RunFinished)]
    ids = [run.id for run in state.runs]
    if queued != ids:
        yield "queued otherwise than there are runs"
    if sorted(ended) != sorted(ids):
        yield f"{len(ended)} ends of {len(ids)} runs"
    order = list(dict.fromkeys([event.run_id for event in started]))
    if order != [run_id for run_id in queued if run_id in set(order)]:
        yield "started in another order than queued"
    attempts: Counter[tuple[str, int]] = Counter()
    active: str | None = None
    at_work = False
    for event in events:
        if isinstance(event, RunStarted):
            attempts[event.run_id, event.episode] += 1
            place = attempts[event.run_id, event.episode]
            if event.attempt != place:
                yield f"{event.run_id}: attempt {event.attempt} is the {place}."
            if active not in (None, event.run_id):
                yield f"{event.run_id} started while {active} was active"
            active, at_work = event.run_id, True
        elif isinstance(event, RunFinished) and active == event.run_id:
            active = None
        elif isinstance(event, RunSuspended) and active == event.run_id:
            at_work = False
        elif isinstance(event, RunQueued) and active == event.run_id:
            if not (event.answered and at_work):
                active = None  # handed back, or answered when it waited
        elif not isinstance(event, _BESIDE) and event.run_id != active:
            yield f"{event.type} of {event.run_id}, which is not active"


async def _run_faults(
    app: Pai,
    thread_id: str,
    state: ThreadState,
    events: list[Event],
    ran: dict[str, Counter[str]],
    figures: Figures,
) -> Any:
    records = app.records("Ledger", thread_id=thread_id)
    marks: Any = state.thread.metadata["marks"]
    numbers = [number_of(run.id) for run in state.runs]
    edits = [number for number in numbers if number % 4 == 0]
    if state.thread.metadata["edited"] not in (edits or [-1]):
        yield f"the thread lost what was written beside runs: {state.thread.metadata['edited']}"
    titles = [f"title {number}" for number in edits]
    titles += [f"after {run.id}" for run in state.runs if run.status == "completed"]
    if (state.thread.title or "") not in (titles or [""]):
        yield f"the thread's title is {state.thread.title!r}"
    if len({message.id for message in state.messages}) < len(state.messages):
        yield "a message stands there twice"
    figures.takeovers += sum([isinstance(e, RunStarted) and e.attempt > 1 for e in events])
    for run in state.runs:
        number = number_of(run.id)
        figures.runs += 1
        lost = run.error is not None and run.error["code"] == "worker_lost"
        figures.statuses["worker_lost" if lost else run.status] += 1
        if thread_of(number) != thread_id:
            yield f"{run.id} is on the wrong thread"
        expected = run.status in _ENDS.get(kind_of(number), ("completed",))
        if run.status == "failed" and run.error is not None:
            expected = expected and run.error["code"] == "model_error"
        if not (lost or expected):
            yield f"{run.id} ({kind_of(number)}) is {run.status}: {run.error}"
        own = [message for message in state.messages if message.run_id == run.id]
        asked = [message.parts for message in own if message.role == "user"]
        if asked != [(TextPart(content(number)),)]:
            yield f"{run.id} was asked {asked}"
        said = [message for message in own if message.role == "assistant"]
        for fault in faults(kind_of(number), number, run.status, said, ran[run.id]):
            yield f"{run.id} ({kind_of(number)}, {run.status}): {fault}"
        calls = [p for message in said for p in message.parts if isinstance(p, ToolCallPart)]
        figures.calls += len(calls)
        figures.interrupted += sum([part.outcome == "interrupted" for part in calls])
        if not said:
            continue
        # Written before the step was, by each door.
        if run.metadata != {"marks": {"run": 1}, "edited": -1}:
            yield f"{run.id} lost its metadata: {run.metadata}"
        if marks.get(run.id, -1) not in (len(said) - 1, len(said)):
            yield f"the thread lost the mark of {run.id}: {marks.get(run.id)}"
        for index in range(len(said)):
            if await records.get(f"{run.id}/{index}") != index:
                yield f"{run.id} lost the record of step {index}"
        labels = {p.summary for m in said for p in m.parts if isinstance(p, ReasoningPart)}
        if labels - {LABEL} and run.status == "completed":
            yield f"{run.id} has the labels {labels}"
        for part in calls:
            kept = await records.get(f"{run.id}/{part.call_id}")
            if part.outcome in ("completed", "failed") and kept != part.outcome:
                yield f"{run.id} lost the record of {part.call_id}: {kept}"


def _helpers(state: ThreadState) -> Iterator[tuple[tuple[int, ToolCallPart], str]]:
    """Calls of the subagent with the numbers of their runs, and the id of its run and thread."""
    for message in state.messages:
        for part in message.parts:
            if isinstance(part, ToolCallPart) and part.tool == "helper":
                own = child_id(state.thread.id, message.run_id, part.call_id, 0)
                yield (number_of(message.run_id), part), own


async def _child_faults(
    handle: Any,
    parent: tuple[int, ToolCallPart] | None,
    ran: Counter[str],
    chance: random.Random,
    figures: Figures,
) -> AsyncIterator[str]:
    state = await handle.state()
    events = await events_of(handle, state.cursor)
    (run,) = state.runs
    figures.subagents += 1
    figures.events += len(events)
    figures.subagents_cancelled += run.status == "cancelled"
    for fault in (*log_faults(state, events, chance), *answer_faults(events)):
        yield fault
    if parent is None:
        # The step that called it was made anew, or its run was given up, before it was committed.
        yield f"is {run.status}, and no call has started it"
        return
    number, call = parent
    lost = run.error is not None and run.error["code"] == "worker_lost"
    wanted = {"completed": ("completed",), "failed": ("failed",)}
    if run.status not in wanted.get(call.outcome or "", ("completed", "cancelled")) and not lost:
        yield f"is {run.status}: {run.error}, and the call that has started it is {call.outcome}"
    said = [message for message in state.messages if message.role == "assistant"]
    for fault in faults("help", number, run.status, said, ran):
        yield f"({run.status}): {fault}"


# What a stopped worker may meet: its lease is gone, or SQLite's lock was held by another.
_STOPPED = ("StoreError", "LeaseLost")
# A run that was answered stays the thread's active one; labels and titles come when they come.
_BESIDE = (RunQueued, RunFinished, RunSuspended, ThreadUpdated, ReasoningSummary)
_ENDS = {"fails": ("failed",), "cancelled": ("cancelled", "completed")}
_ENDS["undone"] = _ENDS["cancelled"]
