"""Going on where a former worker died (R-12, R-13)."""

from __future__ import annotations

from typing import Final

import attrs

from pai.loop._draft import Draft
from pai.loop._episode import Episode
from pai.loop._labels import drop_void_labels
from pai.loop._observe import observe
from pai.loop._result import Result
from pai.loop._settle import unjudged
from pai.protocol import (
    INTERRUPTED,
    CallError,
    CallRecord,
    Commit,
    Message,
    StepFinished,
    StepReset,
    ToolCallPart,
)

__all__ = ("MOST_TAKEOVERS", "go_on", "settle_cut_off", "take_over")

MOST_TAKEOVERS: Final = 3
"""Takeovers of a run with no commit between them; at one more it is given up (R-3b)."""


async def take_over(episode: Episode) -> None:
    """
    Stand where the former worker stood: behind its last commit, with what is left of that step.

    What it had streamed since is void (R-13).
    """
    episode.journal.hold(StepReset("takeover"))
    before = episode.claimed.batch.first - 1
    own = _stand(episode)
    if episode.agent.definition.reasoning_summary is not None:
        await drop_void_labels(episode.journal, before, {message.id for message in own})
    if own:
        events = await episode.journal.last_step(before)
        episode.draft.recover(events)
        for event in events:
            if isinstance(event, StepFinished):
                episode.finish_reason = event.reason
        episode.usage = await episode.journal.used_before(before)


def go_on(episode: Episode) -> None:
    """Stand where the run was suspended: behind its last step, with the calls that waited."""
    episode.usage = episode.claimed.run.usage or episode.usage
    # A step can only wait for the calls that it ended with.
    episode.finish_reason = "tool-calls"
    _stand(episode)


def _stand(episode: Episode) -> list[Message]:
    """Take up the last message of the run, if there is one, and its open calls; all its messages."""
    claimed = episode.claimed
    for record in claimed.calls:
        aside = record.kind == "question" or not record.message_id
        rows = episode.questions if aside else episode.open_calls
        rows[record.call_id] = record
    run = claimed.run
    own = [m for m in claimed.messages if m.run_id == run.id and m.role == "assistant"]
    if own:
        earlier = len(own) <= run.steps
        # Counted within its episode; one of an earlier episode, over the run.
        index = len(own) - 1 - (0 if earlier else run.steps)
        episode.draft = Draft.of(own[-1], index, earlier=earlier)
    return own


async def settle_cut_off(episode: Episode, *, all_of_them: bool = False) -> None:
    """
    Settle calls that were under way as "interrupted": nobody can know whether they ran.

    The model sees that, and decides. Those that have not begun, or may be done twice, stay open.

    Args:
        episode: The run.
        all_of_them: Settle those, too: the run goes another way.
    """
    draft = episode.draft
    calls = episode.open_calls.values()
    cut_off = [record for record in calls if all_of_them or not _again(episode, record)]
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
    if all_of_them:
        asked = [row for row in episode.questions.values() if row.status == "waiting"]
        given_up = [attrs.evolve(row, status="settled", outcome="interrupted") for row in asked]
        change.calls = (*change.calls, *given_up)
        episode.questions.update({row.call_id: row for row in given_up})
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
    config = episode.tools.get(record.tool)
    return record.status != "started" or (config is not None and config.tool.idempotent)
