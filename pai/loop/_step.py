"""One step: ask the model, plan its calls, commit, run them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Literal

import anyio
import attrs

from pai.contexts import Respond, StepContext, StepOutcome
from pai.loop._aside import check_stream_data
from pai.loop._assemble import Assembly
from pai.loop._episode import Episode
from pai.loop._execute import run_calls
from pai.loop._for_driver import fill_for_driver
from pai.loop._labels import LabelWatch
from pai.loop._layers import Layers
from pai.loop._observe import observe, observe_end
from pai.loop._output import read_output
from pai.loop._parallel import at_once
from pai.loop._plan import PlannedCall, plan_call
from pai.loop._settle import end_of, finished_event, left_out, unjudged
from pai.loop._suspend import add_waiting, stop_with, suspend, waits
from pai.protocol import (
    CallRecord,
    Commit,
    Event,
    MessagePart,
    RunEnd,
    StepFinished,
    StreamPart,
    ToolCall,
    ToolCallPart,
)

__all__ = ("model_step",)

TRUNCATED = "The call was cut off at the output limit and did not run. Write less and call again."
"""What the model is told of a call of a step that hit the output limit."""

_CUT_OFF = frozenset({"length", "content-filter"})
_LETTING_GO = 5.0
"""Seconds that the layers of a failed step have to close."""


async def model_step(
    episode: Episode,
    step: StepContext[Any],
    *,
    source: AsyncIterator[StreamPart] | None = None,
    respond: Respond | None = None,
) -> RunEnd | None:
    """
    Make a step and commit it.

    Args:
        episode: The run.
        step: The step, its request final.
        source: A synthetic answer in place of the model's.
        respond: What made the answer; the run ends with it.

    Returns:
        The end of the run, if this was its last step; the episode says whether it waits now.
    """
    episode.overridden = None
    assembly = await _stream(episode, step, source)
    output = None
    if episode.output is not None and respond is None:

        async def ask_again(again: StepContext[Any]) -> None:
            await episode.journal.put(assembly.restart("output"))
            await _stream(episode, again, None, assembly)

        output = await read_output(episode, step, assembly, ask_again)
    finish = assembly.finish
    assert finish is not None
    episode.finish_reason = finish.reason
    usage = finish.usage
    if usage is not None:
        # At once: a run that is cancelled from here on has used it all the same.
        episode.usage = episode.usage + usage
    await episode.go_on()
    truncated = finish.reason in _CUT_OFF and bool(assembly.calls)
    planned: list[PlannedCall] = []
    if not truncated:
        for call in assembly.calls:
            planned.append(await plan_call(episode, step, call))
        await episode.go_on()

    change = Commit()
    parts = assembly.parts()
    if truncated:
        parts = left_out(parts, "truncated", TRUNCATED, change.events)
    elif planned:
        parts = _with_inputs(parts, planned, change.events)
    draft = episode.draft
    if output is not None:
        parts.append(output)
    message = change.message = draft.as_message(parts)
    change.events.append(StepFinished(step.index, finish.reason, usage, output, episode.overridden))
    if planned:
        _add_calls(episode, planned, change)
    end = None
    if not planned and not truncated and episode.closing is None:
        end = change.end = _last(episode, finish.reason, respond)
        change.events.append(finished_event(episode, end))
    runs = [item for item in planned if item.wait is None]
    if planned and not runs:
        stop_with(episode, change)
    await episode.commit(change)
    draft.committed(message)
    episode.call_ids.update([call.call_id for call in assembly.calls])
    chains = episode.agent.chains
    if chains.step_finished:
        outcome = StepOutcome(finish.reason, usage, message)
        tell = observe if end is None else observe_end
        await tell(episode, chains.step_finished, step, outcome)
    if runs:
        await episode.go_on()
        await run_calls(episode, runs)
        await episode.go_on()
        if waits(episode):
            await suspend(episode)
    elif truncated and chains.tool_settled:
        for part in parts:
            if isinstance(part, ToolCallPart) and part.outcome == "truncated":
                result = unjudged(episode, part, "truncated", TRUNCATED)
                await observe(episode, chains.tool_settled, result)
    if draft.changed:
        await episode.commit(Commit(message=draft.take()))
    episode.end_step()
    return end


async def _stream(
    episode: Episode,
    step: StepContext[Any],
    source: AsyncIterator[StreamPart] | None,
    assembly: Assembly | None = None,
) -> Assembly:
    """Read the canonical stream of the step into the journal and the message."""
    model = step.request.model
    provider = model if isinstance(model, str) else model.provider
    journal, draft = episode.journal, episode.draft
    for event in draft.begin():
        journal.hold(event)
    if assembly is None:
        assembly = draft.open(
            provider, episode.call_ids, lambda data: check_stream_data(episode, data)
        )
        if episode.agent.definition.reasoning_summary is not None:
            assembly.labels = LabelWatch(journal, draft.id)
    if source is None:
        await fill_for_driver(episode, step)
    layers = Layers(episode, step)
    try:
        async for item in layers.open(source):
            events = assembly.feed(item if type(item) is list else [item])  # type: ignore[list-item]  # a part
            if events:
                await journal.put(events)
    except BaseException:
        # The layers are told, whatever became of us; each has a moment to let go.
        with anyio.move_on_after(_LETTING_GO, shield=True):
            await layers.abandon()
        raise
    if assembly.finish is None:
        raise layers.unfinished(provider)
    events = assembly.close()
    if events:
        await journal.put(events)
    return assembly


def _last(episode: Episode, reason: str, respond: Respond | None) -> RunEnd:
    if respond is not None:
        return end_of(
            episode, respond.status, outcome=respond.outcome, reason=respond.reason,
            stop_reason="respond",
        )  # fmt: skip
    return end_of(episode, "completed", stop_reason=episode.stopped or reason)


def _add_calls(episode: Episode, planned: list[PlannedCall], change: Commit) -> None:
    """The rows of the calls: *started* is committed before a body runs (R-12)."""
    room = at_once(episode) or len(planned)
    rows: list[CallRecord] = []
    for item in planned:
        call = item.call
        starts = item.wait is None and item.tool is not None and room > 0
        room -= starts
        status: Literal["started", "requested"] = "started" if starts else "requested"
        row = CallRecord(call.call_id, episode.draft.id, call.tool, status)
        if item.wait is not None:
            row = add_waiting(episode, change, row, item.stored_input, item.wait)
        rows.append(row)
    change.calls = (*change.calls, *rows)
    episode.open_calls = {row.call_id: row for row in rows}


def _with_inputs(
    parts: list[MessagePart], planned: list[PlannedCall], events: list[Event]
) -> list[MessagePart]:
    """The parts with inputs as they are executed; the log is told where one was rewritten."""
    rewritten = {
        item.call.call_id: item for item in planned if item.stored_input is not item.call.input
    }
    if not rewritten:
        return parts
    out: list[MessagePart] = []
    for part in parts:
        item = rewritten.get(part.call_id) if isinstance(part, ToolCallPart) else None
        if item is None or not isinstance(part, ToolCallPart):
            out.append(part)
            continue
        out.append(attrs.evolve(part, input=item.stored_input))
        events.append(ToolCall(part.call_id, part.tool, item.stored_input))
    return out
