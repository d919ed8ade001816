"""What a client may see of a thread, with the step under way."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

import attrs

from pai.definition import AgentDefinition, MetadataSchemas, StoredMetadata
from pai.loop import last_step
from pai.ports import Store
from pai.protocol import (
    Diagnostic,
    Message,
    RunRecord,
    RunView,
    ThreadRecord,
    ThreadSnapshot,
    ThreadState,
    ThreadView,
    fold,
    message_view,
)

__all__ = ("thread_state",)

_UNSETTLED = ("running", "queued", "suspended")


async def thread_state(
    store: Store, snapshot: ThreadSnapshot, definition: AgentDefinition[Any]
) -> ThreadState:
    """
    The state that a snapshot shows, with what the step under way has streamed.

    That lies in the log alone (R-11). The events after the cursor go on in the middle of it, so a
    state without it would never become whole (R-25).
    """
    found: list[Diagnostic] = []
    id_ = snapshot.thread.key.thread_id
    thread = _read(definition.thread_metadata, "thread", id_, [snapshot.thread], found)[0]
    runs = _read(definition.run_metadata, "run", id_, snapshot.runs, found)
    messages = _read(definition.message_metadata, "message", id_, snapshot.messages, found)
    state = ThreadState(
        ThreadView(
            thread.key.thread_id,
            thread.title,
            thread.title_source,
            thread.metadata.shown(),
            thread.created_at,
            thread.updated_at,
        ),
        tuple([message_view(message) for message in messages]),
        tuple([_run_view(run) for run in runs]),
        tuple(snapshot.pending),
        snapshot.cursor,
        diagnostics=tuple(found),
    )
    # One that was given back waits for a worker, and is in the middle of its step all the same.
    begun = [run.id for run in snapshot.runs if run.started_at and run.status in _UNSETTLED]
    if not begun:
        return state
    events = await last_step(store, thread.key, snapshot.cursor, begun[0])
    folded = fold(attrs.evolve(state, cursor=0), events)
    # Only the step is taken: what is committed of it makes the same message at the same place once
    # more, and metadata may have changed since its events.
    stored = {message.id: message.metadata for message in state.messages}
    views = [
        attrs.evolve(message, metadata=stored.get(message.id, message.metadata))
        for message in folded.messages
    ]
    return attrs.evolve(state, messages=tuple(views), open_step=folded.open_step)


RecordT = TypeVar("RecordT", ThreadRecord, RunRecord, Message)


def _read(
    schemas: MetadataSchemas[Any, Any] | None,
    of: Literal["thread", "run", "message"],
    thread_id: str,
    records: list[RecordT],
    found: list[Diagnostic],
) -> list[RecordT]:
    """The records with their metadata as the schemas of today have it (A-META-10)."""
    if schemas is None:
        return records
    stored = StoredMetadata(schemas)
    out = []
    for record in records:
        read = stored.read(record.metadata)
        id_ = str(getattr(record, "id", "")) or thread_id
        for fault in read.shown:
            at = fault.under("metadata")
            found.append(Diagnostic(of, id_, at.path, at.message))
        same = read.bags is record.metadata
        out.append(record if same else attrs.evolve(record, metadata=read.bags))
    return out


def _run_view(run: RunRecord) -> RunView:
    return RunView(
        run.id,
        run.status,
        run.outcome,
        run.reason,
        run.stop_reason,
        run.operation,
        run.metadata.shown(),
        run.usage,
        run.error,
        run.parent_run_id,
        run.created_at,
        run.started_at,
        run.finished_at,
        run.after,
    )
