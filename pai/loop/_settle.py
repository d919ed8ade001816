"""How a run ends, and what is kept of a step that its end cuts short (R-14)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal

import anyio
import attrs

from pai.contexts import RunOutcome, ToolCallContext, ToolResultContext
from pai.errors import FatalToolError, ModelError, PluginError, StoreError, StructuredOutputError
from pai.loop._episode import Episode
from pai.loop._logs import run_ended
from pai.loop._observe import observe_end
from pai.protocol import (
    INTERRUPTED,
    CallError,
    CallOutcome,
    Commit,
    Event,
    MessagePart,
    RunEnd,
    RunFinished,
    StepFinished,
    ToolCallPart,
    settled_job,
)
from pai.schema import JsonObject

__all__ = ("end_of", "failure", "finished_event", "left_out", "settle", "tell_end", "unjudged")


def failure(error: BaseException, run_id: str) -> JsonObject:
    """What a client is told of an error: a code and a sentence of ours, none of its text (A-RUN-3)."""
    if isinstance(error, ModelError):
        code, message = error.code, "The model could not answer."
    elif isinstance(error, PluginError):
        code, message = "plugin_error", "A plugin failed."
    elif isinstance(error, StructuredOutputError):
        code, message = error.code, "The model's answer does not fit the output that was asked for."
    elif isinstance(error, FatalToolError):
        code, message = "fatal_tool_error", "A tool ended the run."
    else:
        code, message = "internal_error", "Something failed on the server."
    return {"code": code, "message": message, "id": run_id}


def end_of(
    episode: Episode,
    status: Literal["completed", "failed", "cancelled", "blocked"],
    *,
    outcome: str | None = None,
    reason: str | None = None,
    stop_reason: str | None = None,
    error: JsonObject | None = None,
) -> RunEnd:
    """The end of this run, with what it used."""
    return RunEnd(
        status,
        datetime.now(UTC),
        outcome or status,
        reason,
        stop_reason,
        episode.usage,
        error,
    )


def finished_event(episode: Episode, end: RunEnd) -> RunFinished:
    """The one terminal event."""
    context = getattr(episode, "context", None)
    metadata = episode.claimed.run.metadata if context is None else context.metadata
    return RunFinished(
        end.status,
        end.outcome,
        end.reason,
        end.stop_reason,
        end.usage,
        end.error,
        metadata.shown(),
        end.finished_at,
    )


def left_out(
    parts: list[MessagePart], outcome: CallOutcome, error: str, events: list[Event]
) -> list[MessagePart]:
    """The parts, with the calls that are open settled as *outcome*, and the events that say so."""
    out: list[MessagePart] = []
    for part in parts:
        if isinstance(part, ToolCallPart) and part.outcome is None:
            events.append(CallError(part.call_id, error, outcome))
            part = attrs.evolve(part, outcome=outcome, error=error)
        out.append(part)
    return out


async def settle(episode: Episode, end: RunEnd) -> RunEnd:
    """
    Commit the end, and with it what there is of the step under way.

    Open text is closed, and each open call gets an "interrupted" result (R-14, R-29).
    """
    change = Commit(end=end)
    draft = episode.draft
    interrupted: list[ToolCallPart] = []
    if draft.message is None:
        if draft.assembly is not None:
            change.events += draft.assembly.close()
        before = draft.parts()
        parts = left_out(before, "interrupted", INTERRUPTED, change.events)
        interrupted = _changed(before, parts)
        if parts:
            change.events = [*draft.begin(), *change.events]
            change.message = draft.as_message(parts)
            reason: Literal["error", "other"] = "error" if end.status == "failed" else "other"
            finish = None if draft.assembly is None else draft.assembly.finish
            usage = None if finish is None else finish.usage
            change.events.append(StepFinished(draft.index, reason, usage))
    else:
        interrupted = [
            part
            for part in draft.message.parts
            if isinstance(part, ToolCallPart) and part.call_id in episode.open_calls
        ]
        change.message = draft.take()
    settled = []
    for record in episode.open_calls.values():
        settled.append(
            attrs.evolve(record, status="settled", outcome="interrupted", error=INTERRUPTED)
        )
        change.events.append(CallError(record.call_id, INTERRUPTED, "interrupted"))
    for record in episode.questions.values():
        if record.status != "settled":
            settled.append(attrs.evolve(record, status="settled", outcome="interrupted"))
    change.calls = tuple(settled)
    change.events.append(finished_event(episode, end))
    await episode.commit(change)
    chain = episode.agent.chains.tool_settled
    if chain and hasattr(episode, "context"):  # a run that is given up has none
        for part in interrupted:
            await observe_end(episode, chain, unjudged(episode, part, "interrupted", INTERRUPTED))
    return end


def _changed(before: list[MessagePart], after: list[MessagePart]) -> list[ToolCallPart]:
    pairs = zip(before, after, strict=True)
    return [new for old, new in pairs if new is not old and isinstance(new, ToolCallPart)]


def unjudged(
    episode: Episode, part: ToolCallPart, outcome: CallOutcome, error: str
) -> ToolResultContext[Any]:
    """The result of a call that no hook had a say on: only observers are shown it."""
    call: ToolCallContext[Any] = ToolCallContext(
        episode.context, episode.draft.index, part.tool, part.call_id, part.input, part.input
    )
    return ToolResultContext(call, outcome, None, error)


async def tell_end(episode: Episode, end: RunEnd) -> None:
    """Tell the observers that the run has ended."""
    run_ended(episode, end)
    chain = episode.agent.chains.run_settled
    if not chain:
        return
    run_id = episode.claimed.run.id
    context = getattr(episode, "context", None)
    if context is None:
        # It ended before there was one: whoever takes up the job builds it.
        episode.journal.begin([settled_job(run_id)])
        return
    result = RunOutcome(
        end.status, end.outcome, end.reason, end.stop_reason, episode.usage, end.error
    )
    await observe_end(episode, chain, context, result)
    # They are told: from here on, nobody else is to do it (R-33a).
    with anyio.CancelScope(shield=True):
        try:
            await episode.journal.end_job(settled_job(run_id).id)
        except StoreError as error:
            episode.report(error, {"run_id": run_id})
