"""
What a client may see of a thread: heads, messages, runs, and all of it as one state.

No private metadata and no provider data has a place in these shapes (A-META-6).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

from pai.protocol._answers import PendingKind
from pai.protocol._codec import from_time
from pai.protocol._messages import Message, Role
from pai.protocol._parts import (
    DataPart,
    MessagePart,
    OutputPart,
    ReasoningPart,
    part_from_json,
    part_to_json,
)
from pai.protocol._stream import EventBase
from pai.protocol._usage import Usage
from pai.schema import JsonObject, JsonValue

__all__ = (
    "Diagnostic",
    "MessageView",
    "PendingCall",
    "RunStatus",
    "RunView",
    "ThreadState",
    "ThreadSummary",
    "ThreadView",
    "message_view",
)

RunStatus = Literal["queued", "running", "suspended", "completed", "failed", "cancelled", "blocked"]
"""The status of a run (R-3)."""


class _MessageCodec:
    """The JSON form of a client's message."""

    def to_json(self, value: MessageView) -> JsonObject:
        return {
            "id": value.id,
            "role": value.role,
            "parts": [part_to_json(part) for part in value.parts],
            "metadata": dict(value.metadata),
            "runId": value.run_id,
            "createdAt": from_time(value.created_at),
        }

    def from_json(self, value: Mapping[str, Any]) -> MessageView:
        return MessageView(
            id=value["id"],
            role=value["role"],
            parts=tuple([part_from_json(part) for part in value["parts"]]),
            metadata=value["metadata"],
            run_id=value["runId"],
            created_at=datetime.fromisoformat(value["createdAt"]),
        )


@attrs.frozen
class MessageView:
    """
    A message as clients see it.

    ``metadata`` is the public bag beside the reserved key ``pai`` (A-META-7).
    """

    codec: ClassVar[_MessageCodec] = _MessageCodec()

    id: str
    role: Role
    parts: tuple[MessagePart, ...]
    metadata: JsonObject
    run_id: str
    created_at: datetime


def _shown(part: MessagePart) -> MessagePart | None:
    """The part without what only its provider may see; ``None`` if nothing else is in it."""
    if isinstance(part, (DataPart, OutputPart)) or part.provider_data is None:
        return part
    if isinstance(part, ReasoningPart) and not part.text and part.summary is None:
        return None
    return attrs.evolve(part, provider_data=None)


def message_view(message: Message) -> MessageView:
    """What a client may see of *message*."""
    return MessageView(
        message.id,
        message.role,
        tuple([shown for part in message.parts if (shown := _shown(part)) is not None]),
        message.metadata.shown(),
        message.run_id,
        message.created_at,
    )


@attrs.frozen
class ThreadView:
    """The head of a thread; ``metadata`` is the public bag."""

    id: str
    title: str | None
    title_source: str | None
    metadata: JsonObject
    created_at: datetime
    updated_at: datetime


@attrs.frozen
class ThreadSummary:
    """A thread in a list."""

    id: str
    title: str | None
    title_source: str | None
    metadata: JsonObject
    created_at: datetime
    updated_at: datetime


@attrs.frozen
class RunView:
    """
    A run as clients see it.

    Args:
        outcome: What a ``Respond`` said, else the status; ``None`` before the end.
        reason: Why it was blocked or cancelled.
        stop_reason: Why the loop ended (O-2).
        metadata: The public bag.
        error: ``{"code": ..., "message": ...}`` of a failed run.
        after: The message that a *regenerate* goes on from; empty: from the beginning.
    """

    id: str
    status: RunStatus
    outcome: str | None
    reason: str | None
    stop_reason: str | None
    operation: str
    metadata: JsonObject
    usage: Usage | None
    error: JsonObject | None
    parent_run_id: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    after: str | None = None


@attrs.frozen
class PendingCall:
    """
    A call that waits for an answer from outside.

    Args:
        call_id: The call, or the id of a question.
        kind: What it waits for.
        tool: Its tool; ``None`` for a question that no call raised.
        input: What it is to run with.
        payload: ``{"reason": ...}`` of an approval, what the tool gave to ``ctx.suspend``, or
            ``{"schema": ..., "message": ...}`` of a question.
        expires_at: When it fails, unanswered.
        run_id: Its run.
        digest: What an answer may name, to be one to just this.
    """

    call_id: str
    kind: PendingKind
    tool: str | None
    input: JsonValue
    payload: JsonValue
    expires_at: datetime | None
    run_id: str = ""
    digest: str | None = None


@attrs.frozen
class Diagnostic:
    """
    Something that was stored under an older schema and is not shown as it was (A-META-10).

    Args:
        of: What it was stored with.
        id: The id of that thread, run or message.
        path: Where it is: ``metadata.stars``.
        message: What is wrong with it.
    """

    of: Literal["thread", "run", "message"]
    id: str
    path: str
    message: str


@attrs.frozen
class ThreadState:
    """
    A thread at one moment: this and the events after *cursor* are all there is (R-25).

    Args:
        thread: Its head.
        messages: All messages, oldest first.
        runs: All runs, oldest first.
        pending: Calls that wait for an answer.
        cursor: The number of the last event that this state holds.
        open_step: The step under way, as the shortest events that make it: from here
            :func:`~pai.protocol.fold` goes on with it. Its message is the last of *messages*.
        diagnostics: Public metadata that does not fit its schema any more, and is left out.
    """

    thread: ThreadView
    messages: tuple[MessageView, ...]
    runs: tuple[RunView, ...]
    pending: tuple[PendingCall, ...]
    cursor: int
    open_step: tuple[EventBase, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
