"""What a client may see of a thread, with the step under way."""

from __future__ import annotations

import attrs

from pai.loop import last_step
from pai.ports import Store
from pai.protocol import (
    RunRecord,
    RunView,
    ThreadSnapshot,
    ThreadState,
    ThreadView,
    fold,
    message_view,
)

__all__ = ("thread_state",)

_UNSETTLED = ("running", "queued", "suspended")


async def thread_state(store: Store, snapshot: ThreadSnapshot) -> ThreadState:
    """
    The state that a snapshot shows, with what the step under way has streamed.

    That lies in the log alone (R-11). The events after the cursor go on in the middle of it, so a
    state without it would never become whole (R-25).
    """
    thread = snapshot.thread
    state = ThreadState(
        ThreadView(
            thread.key.thread_id,
            thread.title,
            thread.title_source,
            thread.metadata.shown(),
            thread.created_at,
            thread.updated_at,
        ),
        tuple([message_view(message) for message in snapshot.messages]),
        tuple([_run_view(run) for run in snapshot.runs]),
        tuple(snapshot.pending),
        snapshot.cursor,
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
    messages = [
        attrs.evolve(message, metadata=stored.get(message.id, message.metadata))
        for message in folded.messages
    ]
    return attrs.evolve(state, messages=tuple(messages), open_step=folded.open_step)


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
