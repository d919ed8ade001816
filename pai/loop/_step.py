"""One step: ask the model, plan its calls, commit, run them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import anyio
import attrs

from pai.contexts import Respond, StepContext, StepOutcome, StepPatch, Unset
from pai.definition import MetadataPatch
from pai.errors import IncompleteStream
from pai.loop._assemble import Assembly
from pai.loop._episode import Episode
from pai.loop._execute import run_calls
from pai.loop._history import INTERRUPTED
from pai.loop._observe import observe
from pai.loop._plan import PlannedCall, plan_call
from pai.loop._settle import end_of, finished_event
from pai.loop._stream import Layers
from pai.protocol import (
    CallError,
    CallRecord,
    Commit,
    Event,
    Message,
    MessagePart,
    RunEnd,
    StepFinished,
    StepStarted,
    StreamPart,
    ToolCall,
    ToolCallPart,
    Usage,
)

__all__ = ("metadata_of", "model_step", "partial_step")

TRUNCATED = "The call was cut off at the output limit and did not run. Write less and call again."
"""What the model is told of a call of a step that hit the output limit."""

_CUT_OFF = frozenset({"length", "content-filter"})


def metadata_of(patch: Any, field: str) -> MetadataPatch | None:
    """A metadata patch, where one is set."""
    value = None if patch is None else getattr(patch, field)
    return None if isinstance(value, Unset) else value


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
        The end of the run, if this was its last step.
    """
    assembly = await _stream(episode, step, source)
    finish = assembly.finish
    assert finish is not None
    cut_off = finish.reason in _CUT_OFF
    planned: list[PlannedCall] = []
    if not cut_off:
        for call in assembly.calls:
            planned.append(await plan_call(episode, step.index, call))

    change = Commit()
    parts = assembly.parts()
    if cut_off and assembly.calls:
        parts = _without_running(parts, assembly.calls, "truncated", TRUNCATED, change.events)
    elif planned:
        parts = _with_inputs(parts, planned, change.events)
        change.calls = tuple(
            [
                CallRecord(
                    item.call.call_id, episode.message_id, item.call.tool,
                    "started" if item.tool is not None else "requested",
                )
                for item in planned
            ]
        )  # fmt: skip
    usage = finish.usage
    if usage is not None:
        episode.usage = episode.usage + usage
    patch: StepPatch | None = step.patch
    episode.write_metadata(
        change,
        metadata_of(patch, "run_metadata"),
        metadata_of(patch, "thread_metadata"),
        metadata_of(patch, "message_metadata"),
    )
    message = Message(
        episode.message_id,
        "assistant",
        tuple(parts),
        episode.claimed.run.id,
        datetime.now(UTC),
        episode.message_metadata(),
    )
    change.message = message
    change.events.append(StepFinished(step.index, finish.reason, usage))
    end = None
    if not planned and not (cut_off and assembly.calls):
        end = _last(episode, finish.reason, respond)
        change.end = end
        change.events.append(finished_event(episode, end))
    episode.open_calls = {record.call_id: record for record in change.calls}
    await episode.journal.commit(change)
    episode.assembly = None
    episode.last_message = message
    episode.call_ids.update([call.call_id for call in assembly.calls])
    chains = episode.agent.chains
    if chains.step_finished:
        await observe(
            episode, chains.step_finished, step, StepOutcome(finish.reason, usage, message)
        )
    if planned:
        results = await run_calls(episode, planned, message.id)
        message = _settled(message, results)
        episode.last_message = message
    episode.messages.append(message)
    return end


async def _stream(
    episode: Episode, step: StepContext[Any], source: AsyncIterator[StreamPart] | None
) -> Assembly:
    """Read the canonical stream of the step into the journal and the message."""
    model = step.request.model
    provider = model if isinstance(model, str) else model.provider
    assembly = episode.assembly = Assembly(provider, episode.call_ids)
    journal = episode.journal
    journal.hold(StepStarted(step.index, episode.message_id))
    layers = Layers(episode, step)
    whole = False
    try:
        async for item in layers.open(source):
            events = assembly.feed(item if type(item) is list else [item])  # type: ignore[list-item]  # a part
            if events:
                await journal.put(events)
        whole = True
    finally:
        if whole:
            await layers.aclose()
        else:
            # The layers are told, whatever became of us; each has a moment to let go.
            with anyio.move_on_after(5, shield=True):
                await layers.aclose()
    if assembly.finish is None:
        raise IncompleteStream(
            "the stream of a step ended without saying that it had finished", provider=provider
        )
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
    return end_of(episode, "completed", stop_reason=reason)


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


def _without_running(
    parts: list[MessagePart],
    calls: list[ToolCall],
    outcome: Any,
    error: str,
    events: list[Event],
) -> list[MessagePart]:
    """The parts with these calls settled as *outcome*, and the events that say so."""
    ids = {call.call_id for call in calls}
    out: list[MessagePart] = []
    for part in parts:
        if isinstance(part, ToolCallPart) and part.outcome is None and part.call_id in ids:
            events.append(CallError(part.call_id, error, outcome))
            part = attrs.evolve(part, outcome=outcome, error=error)  # noqa: PLW2901  # the settled one
        out.append(part)
    return out


def _settled(message: Message, results: dict[str, Any]) -> Message:
    """The message with the results of its calls."""
    parts: list[MessagePart] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart) and part.call_id in results:
            result = results[part.call_id]
            parts.append(
                attrs.evolve(
                    part, outcome=result.outcome, output=result.output, error=result.error
                )
            )
        else:
            parts.append(part)
    return attrs.evolve(message, parts=tuple(parts))


def partial_step(episode: Episode, change: Commit) -> None:
    """
    Put what there is of an unfinished step into the change that ends the run (R-14, R-29).

    Open text is closed; each open call gets an "interrupted" result.
    """
    assembly: Assembly | None = episode.assembly
    if assembly is not None:
        change.events += assembly.close()
        parts = assembly.parts()
        open_calls = [
            ToolCall(part.call_id, part.tool)
            for part in parts
            if isinstance(part, ToolCallPart) and part.outcome is None
        ]
        parts = _without_running(parts, open_calls, "interrupted", INTERRUPTED, change.events)
        if parts:
            change.message = episode.last_message = Message(
                episode.message_id,
                "assistant",
                tuple(parts),
                episode.claimed.run.id,
                datetime.now(UTC),
                episode.message_metadata(),
            )
            reason = "error"
            change.events.append(StepFinished(episode.step_index, reason, Usage()))
    settled = []
    for record in episode.open_calls.values():
        settled.append(
            attrs.evolve(record, status="settled", outcome="interrupted", error=INTERRUPTED)
        )
        change.events.append(CallError(record.call_id, INTERRUPTED, "interrupted"))
    change.calls = (*change.calls, *settled)
