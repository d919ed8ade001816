"""What a call waits for, and how it is stored and told (R-20, R-22)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pai.contexts import Ask
from pai.errors import DefinitionError, Fault, InvalidInput
from pai.lifecycle import Hook, broken_hook
from pai.loop._aside import suspend_payload
from pai.loop._episode import Episode
from pai.protocol import (
    CallRecord,
    Event,
    PendingKind,
    QuestionAsked,
    ToolApprovalRequested,
    ToolSuspended,
)
from pai.schema import JsonObject, JsonValue, compile_schema, digest

__all__ = ("CallSuspended", "Wait", "asked", "waiting")


class CallSuspended(BaseException):
    """Ends the body of a tool that called ``ctx.suspend``; no ``except Exception`` holds it."""


class Wait(NamedTuple):
    """
    What a call waits for.

    Args:
        kind: See :data:`~pai.protocol.PendingKind`.
        payload: What is shown.
        expires_after: Seconds until it fails, unanswered.
        question_id: The question, if it is one.
    """

    kind: PendingKind
    payload: JsonValue = None
    expires_after: float | None = None
    question_id: str | None = None


def asked(episode: Episode, hook: Hook, ask: Ask) -> Wait | None:
    """
    What is waited for where a hook asks; ``None`` if that is answered already.

    Raises:
        PluginError: The question is none.
    """
    faults: list[Fault] = []
    name: object = ask.question_id
    if not isinstance(name, str) or not name:
        faults.append(Fault("question_id", "expected a text"))
    elif name in episode.call_ids:
        faults.append(Fault("question_id", f"{name!r} is the id of a call"))
    elif name in episode.context.answers:
        return None
    message: object = ask.message
    if not isinstance(message, str):
        faults.append(Fault("message", "expected a text"))
    schema: JsonObject = {}
    try:
        schema = compile_schema(ask.schema).json_schema
    except DefinitionError as error:
        faults += [fault.under("schema") for fault in error.faults]
    if faults:
        refusal = InvalidInput(faults, subject="Ask")
        raise broken_hook(hook, refusal) from refusal
    return Wait("question", {"schema": schema, "message": ask.message}, None, ask.question_id)


def waiting(
    episode: Episode, record: CallRecord, stored_input: JsonValue, wait: Wait
) -> tuple[CallRecord, Event]:
    """
    The row of a call that waits from now on, and the event that tells of it.

    Args:
        episode: The run.
        record: The call's row so far; for a question, the row of the call that it is about.
        stored_input: The input, as JSON.
        wait: What it waits for.
    """
    payload = wait.payload
    if payload is not None:
        payload = suspend_payload(episode, payload, record.tool)
    expires_at = None
    if wait.expires_after is not None:
        expires_at = datetime.now(UTC) + timedelta(seconds=wait.expires_after)
    # An answer is to this very input, or to the n-th question of its body.
    mark = digest({"input": stored_input, "payload": payload, "answers": len(record.decisions)})
    call_id, decisions = record.call_id, record.decisions
    event: Event
    if wait.kind == "question":
        assert wait.question_id is not None
        call_id, decisions = wait.question_id, ()
        event = QuestionAsked(call_id, payload, record.tool or None, stored_input, mark)
    elif wait.kind == "approval":
        event = ToolApprovalRequested(call_id, record.tool, stored_input, payload, expires_at, mark)
    else:
        event = ToolSuspended(
            call_id, record.tool, wait.kind, stored_input, payload, expires_at, mark
        )
    row = CallRecord(
        call_id, record.message_id, record.tool, "waiting", input=stored_input, rewritten=True,
        kind=wait.kind, payload=payload, digest=mark, decisions=decisions, expires_at=expires_at,
    )  # fmt: skip
    return row, event
