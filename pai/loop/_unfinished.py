"""Finishing a step that an earlier episode, or a former worker, has left open (R-12, R-22)."""

from __future__ import annotations

import attrs

from pai.loop._episode import Episode
from pai.loop._execute import run_calls
from pai.loop._parallel import at_once
from pai.loop._plan import PlannedCall, plan_again
from pai.loop._request import offered_tools
from pai.loop._suspend import add_waiting, suspend, waits
from pai.protocol import CallRecord, Commit, ToolCall, ToolCallPart
from pai.schema import JsonObject, JsonValue

__all__ = ("finish_step",)

EXPIRED = "Nobody answered in time, and the call did not run."
CANCELLED = "The call was cancelled before it ran."
DENIED = "The call was denied."


async def finish_step(episode: Episode) -> None:
    """
    Run what is left open of a committed step, and apply the answers; nothing that has settled.

    The run suspends again if calls are left that wait.
    """
    draft = episode.draft
    if draft.message is None:
        return
    if episode.open_calls:
        offered = [spec.name for spec in await offered_tools(episode)]
        planned: list[PlannedCall] = []
        change = Commit()
        room = at_once(episode) or len(episode.open_calls)
        for part in draft.message.parts:
            row = episode.open_calls.get(part.call_id) if type(part) is ToolCallPart else None
            if row is None or type(part) is not ToolCallPart:
                continue
            if (row.status == "waiting" and not row.expired) or _is_held(episode, row):
                continue
            item = await _planned(episode, offered, part, row, change, starts=room > 0)
            room -= item.tool is not None and item.wait is None
            planned.append(item)
        await episode.go_on()
        if change.calls or change.events:
            # Before a body runs.
            await episode.commit(change)
        await run_calls(episode, planned)
        await episode.go_on()
    if waits(episode):
        await suspend(episode)
        return
    if draft.changed:
        await episode.commit(Commit(message=draft.take()))
    episode.end_step()


def _is_held(episode: Episode, row: CallRecord) -> bool:
    """Whether a call waits for a subagent that nobody has answered yet."""
    if row.status != "held":
        return False
    own = [asked for name, asked in episode.questions.items() if name.startswith(f"{row.call_id}~")]
    return not any(asked.status == "answered" or asked.expired for asked in own)


async def _planned(
    episode: Episode,
    offered: list[str],
    part: ToolCallPart,
    row: CallRecord,
    change: Commit,
    *,
    starts: bool,
) -> PlannedCall:
    """The call as it is to go on; what has to be written first is added to *change*."""
    answer: JsonObject = row.decisions[-1] if row.status == "answered" else {}
    kind = answer.get("type")
    approved = any(given.get("type") == "approve" for given in row.decisions)
    stored: JsonValue = part.input
    for given in row.decisions:
        stored = given.get("input", stored)
    edited = kind == "approve" and "input" in answer
    call = ToolCall(
        part.call_id, part.tool, stored, raw=part.raw,
        provider_executed=part.provider_executed, approval=part.approval,
    )  # fmt: skip
    judge = row.status == "requested" or edited
    item = await plan_again(
        episode, episode.draft.index, offered, call, judge=judge, approved=approved
    )
    if edited:
        change.events.append(ToolCall(part.call_id, part.tool, stored))
        episode.draft.edit(part.call_id, stored)
    if item.outcome is None:
        _apply(item, row, kind, answer)
    new = row
    if item.wait is not None:
        new = add_waiting(episode, change, row, stored, item.wait)
    elif item.tool is not None and row.status != "started" and starts:
        new = attrs.evolve(row, status="started", expires_at=None)
    if edited:
        new = attrs.evolve(new, input=stored, rewritten=True)
    if new is not row:
        change.calls = (*change.calls, new)
        episode.open_calls[row.call_id] = new
    return item


def _apply(item: PlannedCall, row: CallRecord, kind: JsonValue, answer: JsonObject) -> None:
    """Let a call that could run end as it was answered, or go on with what it was given."""
    if row.expired:
        item.end("expired", EXPIRED)
    elif kind == "deny":
        reason = answer.get("reason")
        item.end("denied", f"{DENIED} {reason}" if reason else DENIED)
    elif kind == "cancel":
        item.end("cancelled", CANCELLED)
    elif kind == "provide" and row.kind == "client":
        item.outcome, item.output, item.tool, item.wait = (
            "completed", answer.get("value"), None, None,
        )  # fmt: skip
    else:
        given = [given for given in row.decisions if given.get("type") == "provide"]
        item.answers = tuple([given.get("value") for given in given])
