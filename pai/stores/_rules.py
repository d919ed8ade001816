"""What every store does alike: cursors, calls in messages, cancelled runs, the words of a refusal."""

from __future__ import annotations

from datetime import UTC, datetime

import attrs

from pai.errors import AnswerConflict, Fault, InvalidInput, LeaseLost, StoreError
from pai.protocol import (
    CallRecord,
    Event,
    Message,
    Metadata,
    RunEnd,
    RunFinished,
    RunRecord,
    RunStarted,
    ToolCallPart,
)

__all__ = (
    "cancelled_end",
    "digest_conflict",
    "finished_event",
    "lease_lost",
    "merge_call",
    "message_taken",
    "no_message",
    "page_cursor",
    "page_start",
    "settled_call",
    "stamp",
)


def lease_lost(run_id: str) -> LeaseLost:
    return LeaseLost(f"run {run_id!r} has ended, or another worker holds it: nothing was written")


def digest_conflict(run_id: str) -> AnswerConflict:
    return AnswerConflict(run_id, "this run id is taken by another request (O-18)")


def message_taken(message_id: str) -> AnswerConflict:
    return AnswerConflict(message_id, "this message id is taken in the thread: make a new one")


def no_message(message_id: str) -> StoreError:
    return StoreError(f"the thread has no message {message_id!r}: nothing was written")


def settled_call(call_id: str) -> StoreError:
    return StoreError(f"call {call_id!r} has settled and stays as it is: nothing was written")


def stamp(started: list[Event], run: RunRecord) -> None:
    """Put into the events of a claim what only the store knows of the run."""
    for event in started:
        if isinstance(event, RunStarted):
            event.attempt, event.episode = run.attempt, run.episode
            event.started_at = run.started_at


def cancelled_end(reason: str) -> RunEnd:
    """How a run ends that was cancelled before it began."""
    return RunEnd("cancelled", datetime.now(UTC), outcome="cancelled", reason=reason)


def finished_event(end: RunEnd, metadata: Metadata) -> RunFinished:
    """The terminal event of a run that no worker held."""
    return RunFinished(
        end.status,
        outcome=end.outcome,
        reason=end.reason,
        stop_reason=end.stop_reason,
        usage=end.usage,
        error=end.error,
        metadata=metadata.shown(),
        finished_at=end.finished_at,
    )


def merge_call(message: Message, call: CallRecord) -> Message:
    """The message with the end of one of its calls in the call's part."""
    parts = [
        _merged(part, call) if type(part) is ToolCallPart and part.call_id == call.call_id else part
        for part in message.parts
    ]
    return attrs.evolve(message, parts=tuple(parts))


def _merged(part: ToolCallPart, call: CallRecord) -> ToolCallPart:
    return ToolCallPart(
        part.call_id,
        part.tool,
        call.input if call.rewritten else part.input,
        call.outcome,
        call.output,
        call.error,
        part.raw,
        part.provider_executed,
        part.provider_data,
    )


def page_cursor(updated_at: datetime, thread_id: str) -> str:
    """Where the next page of threads begins: after this one."""
    return f"{updated_at.timestamp()!r}~{thread_id}"


def page_start(cursor: str) -> tuple[float, str]:
    """
    What :func:`page_cursor` made.

    Raises:
        InvalidInput: It is no cursor of ours.
    """
    stamp, mark, thread_id = cursor.partition("~")
    try:
        if not mark:
            raise ValueError
        return float(stamp), thread_id
    except ValueError:
        fault = Fault("after", "not a cursor of this list: give what the page before returned")
        raise InvalidInput([fault], subject="threads") from None
