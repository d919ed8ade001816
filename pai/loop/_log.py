"""Reading back what a run has written into the log."""

from __future__ import annotations

from collections.abc import AsyncIterator

from pai.ports import Store
from pai.protocol import (
    Batch,
    Event,
    RunFinished,
    RunQueued,
    StepFinished,
    StepStarted,
    ThreadKey,
    ToolProgress,
    Usage,
    event_from_json,
)

__all__ = ("last_step", "used_before")

FIRST_LOOK = 64
"""Events that are read back at once to find where a step began; twice as many each further time."""

FAR_LOOK = 2000
"""Events that are read back at once to the beginning of a run."""


_TELLING = ("step-finished", "run-queued", '"parentRunId"')
"""What is in a batch that tells of usage, or of a run's beginning."""


async def last_step(store: Store, key: ThreadKey, cursor: int, run_id: str) -> list[Event]:
    """
    A run's events from those that began its last step on.

    Args:
        store: Where they are.
        key: The thread.
        cursor: The number of the last event to look at.
        run_id: The run.
    """
    size = FIRST_LOOK
    while True:
        after = max(cursor - size, 0)
        found: list[Event] = []
        async for batch in _batches(store, key, run_id, after, cursor):
            found += [event for event in batch.numbered(after) if event.seq <= cursor]
        for index in range(len(found) - 1, -1, -1):
            if type(found[index]) is StepStarted:
                return found[index:]
            if _begins(found[index]):
                return []
        if size >= cursor:
            return []
        size *= 2


async def used_before(store: Store, key: ThreadKey, cursor: int, run_id: str) -> Usage:
    """What the steps used that a run had committed up to *cursor*."""
    usage, begun = Usage(), False
    while cursor > 0 and not begun:
        after = max(cursor - FAR_LOOK, 0)
        async for batch in _batches(store, key, run_id, after, cursor):
            # Most batches are deltas, and need not be decoded.
            if not any(word in batch.body for word in _TELLING):
                continue
            for event in batch.numbered(after):
                if event.seq > cursor:
                    break
                if isinstance(event, StepFinished) and event.usage is not None:
                    usage = usage + event.usage
                elif isinstance(event, ToolProgress) and (used := used_by_child(event)):
                    usage = usage + used
                elif _begins(event):
                    begun = True
        cursor = after
    return usage


def used_by_child(event: ToolProgress) -> Usage | None:
    """What a subagent used that has ended, if the event tells of that."""
    value = event.value
    inner = value.get("event") if isinstance(value, dict) else None
    if not isinstance(inner, dict) or inner.get("type") != RunFinished.type:
        return None
    ended = event_from_json(inner)
    return ended.usage if isinstance(ended, RunFinished) else None


def _begins(event: Event) -> bool:
    """Whether the run was accepted with this event; others of the kind put it back in the queue."""
    return type(event) is RunQueued and event.operation != "resume"


async def _batches(
    store: Store, key: ThreadKey, run_id: str, after: int, until: int
) -> AsyncIterator[Batch]:
    while after < until and (batches := await store.events(key, after)):
        for batch in batches:
            if batch.run_id == run_id:
                yield batch
        after = batches[-1].last
