"""Runs of subagents, as their parent's calls see them (O-20)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import anyio
import attrs

from pai.contexts import SubagentRef
from pai.definition import Subagent, task_of
from pai.errors import Fault, InvalidInput, ThreadNotFound, ToolError
from pai.loop._child_port import ChildEnd
from pai.loop._episode import Episode
from pai.protocol import (
    CallRecord,
    Decision,
    Event,
    PendingCall,
    QuestionAsked,
    ToolApprovalRequested,
    ToolCallPart,
    ToolProgress,
    ToolSuspended,
    child_id,
    event_to_json,
    prefix_of,
)
from pai.schema import JsonObject

__all__ = (
    "ref_of",
    "run_child",
    "settled_rows",
    "waiting_rows",
)


async def run_child(
    episode: Episode, name: str, given: object, call_id: str, place: int
) -> ChildEnd:
    """
    Run a subagent until it ends or waits.

    Args:
        episode: The parent's run.
        name: The subagent.
        given: Its input.
        call_id: The call that runs it.
        place: Its place among those that the call runs.

    Raises:
        ToolError: It did not complete, or a limit stands against it.
        InvalidInput: There is no such subagent, or the input is none of its.
    """
    subagent = episode.agent.definition.subagents.get(name)
    if subagent is None:
        known = ", ".join(sorted(episode.agent.definition.subagents)) or "none"
        raise InvalidInput(
            [Fault("name", f"the agent has no subagent {name!r}; subagents: {known}")],
            subject="run_agent",
        )
    task = task_of(subagent, given)
    depth = _depth(episode) + 1
    _check_limits(episode, subagent, name, call_id, place, depth)
    width = subagent.limits.width
    if width is None:
        return await _run(episode, subagent, name, task, call_id, place, depth)
    room = episode.rooms.setdefault(name, anyio.Semaphore(width))
    async with room:
        return await _run(episode, subagent, name, task, call_id, place, depth)


def _depth(episode: Episode) -> int:
    ref = episode.claimed.run.request.get("subagent")
    depth = ref.get("depth") if isinstance(ref, dict) else 0
    return depth if isinstance(depth, int) else 0


def _check_limits(
    episode: Episode, subagent: Subagent, name: str, call_id: str, place: int, depth: int
) -> None:
    limits = subagent.limits
    if limits.depth is not None and depth > limits.depth:
        raise ToolError(f"The subagent {name!r} may not be run at depth {depth}.")
    if limits.calls is None:
        return
    # Counted by what the history says, so that a restart changes nothing.
    run_id, draft = episode.claimed.run.id, episode.draft.message
    own = [message for message in episode.messages if message.run_id == run_id]
    seen = [
        (part.call_id, 0)
        for message in ([*own, draft] if draft is not None else own)
        for part in message.parts
        if isinstance(part, ToolCallPart) and part.tool == name
    ]
    if (call_id, place) not in seen:
        seen.append((call_id, place))
    if seen.index((call_id, place)) >= limits.calls:
        raise ToolError(f"The subagent {name!r} was run {limits.calls} times: that is its limit.")


async def _run(
    episode: Episode,
    subagent: Subagent,
    name: str,
    task: str,
    call_id: str,
    place: int,
    depth: int,
) -> ChildEnd:
    run, thread_id = episode.claimed.run, episode.journal.key.thread_id
    own = child_id(thread_id, run.id, call_id, place)
    ref: JsonObject = {
        "name": name, "runId": own, "parentRunId": run.id, "depth": depth, "callId": call_id,
    }  # fmt: skip
    child = await episode.children.start(
        episode.journal.key, run, episode.agent.key, name, own, task, ref
    )
    try:
        await child.answer(_answers(episode, prefix_of(call_id, place)))
        with anyio.move_on_after(subagent.limits.timeout) as scope:
            end = await child.ended(lambda event: _tell(episode, call_id, own, event))
    except ThreadNotFound:
        # With its parent's thread, perhaps: then nothing of this is written either.
        raise ToolError(f"The thread of the subagent {name!r} was deleted.") from None
    if scope.cancelled_caught:
        await child.cancel("timeout")
        raise ToolError(f"The subagent {name!r} took longer than {subagent.limits.timeout:g} s.")
    return end


def _answers(episode: Episode, prefix: str) -> list[Decision]:
    """What was answered here to calls of the child."""
    return [
        Decision(row.call_id[len(prefix) :], (row.kind,), row.decisions[-1])
        for row in episode.questions.values()
        if row.call_id.startswith(prefix) and row.status == "answered" and row.kind is not None
    ]


def _tell(episode: Episode, call_id: str, run_id: str, event: Event) -> None:
    """Show an event of the child where its call is shown."""
    value: JsonObject = {
        "runId": run_id,
        "parentRunId": episode.claimed.run.id,
        "seq": event.seq,
        "event": event_to_json(event),
    }
    episode.journal.add([ToolProgress(call_id, value)])


def waiting_rows(
    episode: Episode, name: str, call_id: str, place: int, pending: Sequence[PendingCall]
) -> tuple[list[CallRecord], list[Event]]:
    """The rows and events of what a child waits for, as its parent shows them."""
    prefix = prefix_of(call_id, place)
    events: list[Event] = []
    wanted = {prefix + call.call_id: call for call in pending}
    rows = settled_rows(episode, prefix, set(wanted))
    for own, call in wanted.items():
        known = episode.questions.get(own)
        if known is not None and known.status == "waiting" and known.digest == call.digest:
            continue
        tool = f"{name}/{call.tool}" if call.tool else name
        row = CallRecord(
            own, "", tool, "waiting", input=call.input, rewritten=True, kind=call.kind,
            payload=call.payload, digest=call.digest, expires_at=call.expires_at,
        )  # fmt: skip
        episode.questions[own] = row
        rows.append(row)
        events.append(_event(row))
    return rows, events


def _event(row: CallRecord) -> Event:
    if row.kind == "question":
        return QuestionAsked(row.call_id, row.payload, row.tool, row.input, row.digest)
    if row.kind == "approval":
        return ToolApprovalRequested(
            row.call_id, row.tool, row.input, row.payload, row.expires_at, row.digest
        )
    kind: Literal["client", "suspend"] = "client" if row.kind == "client" else "suspend"
    return ToolSuspended(
        row.call_id, row.tool, kind, row.input, row.payload, row.expires_at, row.digest
    )


def settled_rows(episode: Episode, prefix: str, keep: set[str]) -> list[CallRecord]:
    """The rows of a child's calls that it waits for no more, settled."""
    rows = []
    for own, row in list(episode.questions.items()):
        if own.startswith(prefix) and own not in keep and row.status != "settled":
            ended = attrs.evolve(row, status="settled", outcome="completed")
            episode.questions[own] = ended
            rows.append(ended)
    return rows


def ref_of(request: JsonObject) -> SubagentRef | None:
    """What a run's context says of where it stands; ``None`` at top level."""
    ref = request.get("subagent")
    if not isinstance(ref, dict):
        return None
    return SubagentRef(str(ref["name"]), str(ref["runId"]), str(ref["parentRunId"]))
