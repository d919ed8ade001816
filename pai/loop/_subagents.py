"""Running other agents from within a tool (O-20)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import anyio

from pai.definition import Signal, Subagent
from pai.errors import FatalToolError, ToolError
from pai.protocol import (
    SubagentEvent,
    SubagentFinished,
    ToolCallPart,
    event_to_json,
)
from pai.schema import JsonObject, JsonValue, dump_json

if TYPE_CHECKING:
    from pai.loop._child import Child
    from pai.loop._episode import Episode

__all__ = ("run_agent",)

_NOT_FORWARDED = frozenset(
    {
        "run-queued", "run-started", "run-suspended", "run-finished", "state-snapshot",
        "thread-updated", "message-metadata", "subagent-finished",
    }
)  # fmt: skip


async def run_agent(
    episode: Episode,
    call_id: str,
    name: str,
    value: object,
    child_id: str,
    signal: Signal,
    wait: Callable[[JsonValue], Awaitable[object]],
) -> object:
    """
    Run a subagent to its end.

    Args:
        episode: The calling run.
        call_id: The call within it.
        name: The subagent.
        value: Its input, an instance or JSON.
        child_id: What makes its run's id: the same for the same call.
        signal: Set when the call is to stop.
        wait: Suspends the calling run until there are answers for the child.

    Raises:
        ToolError: It is beyond a limit, or did not complete.
    """
    subagent = episode.agent.definition.subagents.get(name)
    if subagent is None or episode.children is None:
        raise FatalToolError(f"the agent declares no subagent {name!r}")
    _check_limits(episode, name, subagent, call_id)
    content = _content(subagent, value)
    limits = subagent.limits
    async with _turns(episode, name, limits.width):
        child = await episode.children.start(episode, name, content, child_id)
        with anyio.move_on_after(math.inf if limits.timeout is None else limits.timeout) as scope:
            return await _run(episode, call_id, name, child, signal, wait)
        with anyio.CancelScope(shield=True):
            await child.cancel("timeout")
    assert scope.cancel_called
    raise ToolError(f"The subagent {name!r} took longer than {limits.timeout:g} s.")


def _turns(episode: Episode, name: str, width: int | None) -> AbstractAsyncContextManager[object]:
    """What is held while one runs, so that others wait for their turn."""
    if width is None:
        return nullcontext()
    limiter = episode.widths.get(name)
    if limiter is None:
        limiter = episode.widths[name] = anyio.CapacityLimiter(width)
    return limiter


def _check_limits(episode: Episode, name: str, subagent: Subagent, call_id: str) -> None:
    limits = subagent.limits
    if limits.depth is not None and episode.agent.depth >= limits.depth:
        raise ToolError(f"subagent limit reached (depth: {limits.depth})")
    if limits.calls is None:
        return
    run_id, draft = episode.claimed.run.id, episode.draft.message
    messages = [message for message in episode.messages if message.run_id == run_id]
    if draft is not None:
        messages.append(draft)
    calls = [
        part.call_id
        for message in messages
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool == name
    ]
    if call_id in calls[limits.calls :]:
        raise ToolError(f"subagent limit reached (calls: {limits.calls})")


def _content(subagent: Subagent, value: object) -> str:
    dumped = subagent.schema.dump(subagent.schema.parse(value))
    if isinstance(dumped, dict) and len(dumped) == 1:
        (only,) = dumped.values()
        if isinstance(only, str):
            return only
    return dump_json(dumped)


async def _run(
    episode: Episode,
    call_id: str,
    name: str,
    child: Child,
    signal: Signal,
    wait: Callable[[JsonValue], Awaitable[object]],
) -> object:
    try:
        while True:
            async for event in child.events():
                if event.type not in _NOT_FORWARDED:
                    told = SubagentEvent(call_id, name, child.run_id, event_to_json(event))
                    episode.journal.add([told])
            rest = await child.rest()
            if not rest.pending:
                break
            waits: JsonObject = {
                "subagent": name,
                "runId": child.run_id,
                "threadId": child.thread_id,
                "pending": rest.pending,  # type: ignore[dict-item]  # JSON
            }
            answers: Any = await wait(waits)
            await child.answer(answers)
    except anyio.get_cancelled_exc_class():
        if signal.is_set():
            with anyio.CancelScope(shield=True):
                await child.cancel(signal.reason or "cancelled")
        raise
    if rest.usage is not None:
        episode.usage = episode.usage + rest.usage
    episode.journal.add([SubagentFinished(call_id, name, child.run_id, rest.status, rest.usage)])
    if rest.status in ("completed", "blocked"):
        return rest.value
    raise ToolError(f"The subagent {name!r} did not complete: its run is {rest.status}.")
