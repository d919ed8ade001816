"""What every store does alike: cursors, calls in messages, cancelled runs, the words of a refusal."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Sequence
from datetime import UTC, datetime

import attrs

from pai.errors import AnswerConflict, Fault, InvalidInput, LeaseLost, StoreError
from pai.protocol import (
    Batch,
    CallError,
    CallOutcome,
    CallRecord,
    Decision,
    Event,
    Message,
    Metadata,
    RunEnd,
    RunFinished,
    RunQueued,
    RunRecord,
    RunStarted,
    ToolCallPart,
    Usage,
)

__all__ = (
    "SUPERSEDED",
    "again",
    "cancelled_end",
    "check_goes_on",
    "compacted_to",
    "digest_conflict",
    "ended_before",
    "ended_calls",
    "fence_before",
    "finished_event",
    "lease_lost",
    "leaves_subagents",
    "merge_call",
    "message_taken",
    "no_message",
    "not_shown",
    "page_cursor",
    "page_start",
    "plain",
    "ruled",
    "settled_call",
    "stamp",
)


def ended_before(run: RunRecord, before: datetime) -> bool:
    """Whether a run has ended before a time."""
    return run.finished_at is not None and run.finished_at <= before


def compacted_to(batches: Sequence[Batch], ended: Container[str], cursor: int) -> int:
    """The number up to which a log is compact: before the first run that has not ended."""
    for batch in batches:
        if batch.run_id and batch.run_id not in ended:
            return batch.first - 1
        cursor = batch.last
    return cursor


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


def fence_before(created_at: datetime) -> int:
    """
    From where a thread's fences count.

    Not from 0: a worker that still holds a run of a deleted thread must not be taken for one of
    the thread that was made under the same key later (R-16).
    """
    return int(created_at.timestamp() * 1_000_000)


def stamp(started: list[Event], run: RunRecord) -> None:
    """Put into the events of a claim what only the store knows of the run."""
    for event in started:
        if isinstance(event, RunStarted):
            event.attempt, event.episode = run.attempt, run.episode
            event.started_at = run.started_at


def not_shown(message_id: str) -> InvalidInput:
    fault = Fault("message_id", f"the thread shows no message {message_id!r}")
    return InvalidInput([fault], subject="regenerate")


SUPERSEDED = "The call was denied: another message came in place of an answer."
"""What the model is told of a pending call that nobody answered before the next message (R-3a)."""


def again(answered: list[str] | None) -> RunQueued:
    """The event of a run that waits for a worker again; with the calls that were answered."""
    return RunQueued("resume", answered=answered)


def ruled(call: CallRecord | None, decision: Decision) -> CallRecord | None:
    """
    A pending call with an answer; ``None`` if it has this very answer already.

    Raises:
        AnswerConflict: It can't have it (R-20).
    """
    name = decision.call_id
    if call is None:
        raise AnswerConflict(name, "this run has no such call")
    if call.status != "waiting":
        if any(decision.same(stored) for stored in call.decisions):
            return None
        if call.decisions:
            raise AnswerConflict(name, "it was answered otherwise")
        raise AnswerConflict(name, "it waits for no answer")
    if call.kind not in decision.kinds:
        raise AnswerConflict(name, f"it waits for another kind of answer: {call.kind}")
    if decision.digest is not None and decision.digest != call.digest:
        raise AnswerConflict(name, "the answer is to another input")
    if call.expired:
        raise AnswerConflict(name, "it has expired")
    return attrs.evolve(call, status="answered", decisions=(*call.decisions, decision.value))


def check_goes_on(run: RunRecord, call_id: str) -> None:
    """
    See that a run can still take an answer.

    Raises:
        AnswerConflict: It has ended.
    """
    if run.status not in ("queued", "running", "suspended"):
        raise AnswerConflict(call_id, "its run has ended")


def ended_calls(
    calls: Iterable[CallRecord], outcome: CallOutcome, error: str
) -> tuple[list[CallRecord], list[Event]]:
    """The rows of open calls as they end with their run, and the events of it."""
    records, events = [], list[Event]()
    for call in calls:
        if call.status == "settled":
            continue
        records.append(attrs.evolve(call, status="settled", outcome=outcome, error=error))
        if call.kind != "question":
            events.append(CallError(call.call_id, error, outcome))
    return records, events


def leaves_subagents(call: CallRecord) -> bool:
    """Whether a call has ended so that runs of its subagents may be left."""
    own = bool(call.message_id) and call.kind != "question"
    return own and call.status == "settled" and call.outcome not in ("completed", "skipped")


def cancelled_end(reason: str, usage: Usage | None = None) -> RunEnd:
    """How a run ends that no worker holds."""
    return RunEnd("cancelled", datetime.now(UTC), outcome="cancelled", reason=reason, usage=usage)


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
        part.approval,
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


_UNKEPT = re.compile("[\x00\ud800-\udfff]")


def plain(text: str | None) -> str | None:
    """Text of a column that is no JSON, without what a database would refuse."""
    if text is None or (text.isascii() and "\x00" not in text):
        return text
    return _UNKEPT.sub("\ufffd", text)
