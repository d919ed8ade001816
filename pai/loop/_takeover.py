"""Going on where a former worker died (R-12, R-13)."""

from __future__ import annotations

from typing import Final

import attrs

from pai.loop._draft import Draft
from pai.loop._episode import Episode
from pai.loop._execute import run_calls
from pai.loop._labels import drop_void_labels
from pai.loop._observe import observe
from pai.loop._parallel import at_once
from pai.loop._plan import plan_again
from pai.loop._request import offered_tools
from pai.loop._result import Result
from pai.loop._settle import unjudged
from pai.protocol import (
    INTERRUPTED,
    CallError,
    CallRecord,
    Commit,
    StepFinished,
    StepReset,
    ToolCall,
    ToolCallPart,
)

__all__ = ("MOST_TAKEOVERS", "finish_step", "settle_cut_off", "take_over")

MOST_TAKEOVERS: Final = 3
"""Takeovers of a run with no commit between them; at one more it is given up (R-3b)."""


async def take_over(episode: Episode) -> None:
    """
    Stand where the former worker stood: behind its last commit, with what is left of that step.

    What it had streamed since is void (R-13).
    """
    claimed = episode.claimed
    episode.journal.hold(StepReset("takeover"))
    episode.open_calls = {record.call_id: record for record in claimed.calls}
    run_id = claimed.run.id
    own = [m for m in claimed.messages if m.run_id == run_id and m.role == "assistant"]
    if episode.agent.definition.reasoning_summary is not None:
        ids = {message.id for message in own}
        await drop_void_labels(episode.journal, claimed.batch.first - 1, ids)
    if own:
        draft = episode.draft = Draft.of(own[-1], len(own) - 1)
        before = claimed.batch.first - 1
        events = await episode.journal.last_step(before)
        draft.recover(events)
        for event in events:
            if isinstance(event, StepFinished):
                episode.finish_reason = event.reason
        episode.usage = await episode.journal.used_before(before)


async def settle_cut_off(episode: Episode) -> None:
    """
    Settle calls that were under way as "interrupted": nobody can know whether they ran.

    The model sees that, and decides. Those that have not begun, or may be done twice, stay open.
    """
    draft = episode.draft
    cut_off = [record for record in episode.open_calls.values() if not _again(episode, record)]
    if not cut_off or draft.message is None:
        return
    change = Commit()
    change.calls = tuple(
        [
            attrs.evolve(record, status="settled", outcome="interrupted", error=INTERRUPTED)
            for record in cut_off
        ]
    )
    for record in cut_off:
        change.events.append(CallError(record.call_id, INTERRUPTED, "interrupted"))
    await episode.commit(change)
    for record in cut_off:
        del episode.open_calls[record.call_id]
        draft.settle(record.call_id, Result("interrupted", None, INTERRUPTED))
    if chain := episode.agent.chains.tool_settled:
        ended = {record.call_id for record in cut_off}
        for part in draft.message.parts:
            if isinstance(part, ToolCallPart) and part.call_id in ended:
                await observe(episode, chain, unjudged(episode, part, "interrupted", INTERRUPTED))


def _again(episode: Episode, record: CallRecord) -> bool:
    config = episode.agent.definition.tools.get(record.tool)
    return record.status == "requested" or (config is not None and config.tool.idempotent)


async def finish_step(episode: Episode) -> None:
    """Run what is left open of a step that a former worker committed; nothing that has settled."""
    draft = episode.draft
    if draft.message is None:
        return
    if episode.open_calls:
        offered = [spec.name for spec in await offered_tools(episode)]
        planned = []
        started: list[CallRecord] = []
        room = at_once(episode) or len(episode.open_calls)
        for part in draft.message.parts:
            if not isinstance(part, ToolCallPart):
                continue
            record = episode.open_calls.get(part.call_id)
            if record is None:
                continue
            call = ToolCall(part.call_id, part.tool, part.input, raw=part.raw)
            fresh = record.status == "requested"
            item = await plan_again(episode, draft.index, offered, call, judge=fresh)
            planned.append(item)
            if fresh and item.tool is not None and len(started) < room:
                started.append(attrs.evolve(record, status="started"))
        await episode.go_on()
        if started:
            # Before a body runs.
            await episode.commit(Commit(calls=tuple(started)))
            episode.open_calls.update({record.call_id: record for record in started})
        await run_calls(episode, planned)
        await episode.go_on()
    if draft.changed:
        await episode.commit(Commit(message=draft.take()))
    episode.end_step()
