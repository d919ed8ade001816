"""Going on where a former worker died (R-12, R-13)."""

from __future__ import annotations

import attrs

from pai.loop._episode import Episode
from pai.loop._history import INTERRUPTED
from pai.protocol import CallError, Commit, Message, MessagePart, ToolCallPart

__all__ = ("settle_left_open",)


async def settle_left_open(episode: Episode) -> None:
    """
    Settle calls that were under way as "interrupted": whether they ran cannot be known.

    The model sees that, and decides; a finished call keeps its result and never runs again.
    """
    left = {record.call_id: record for record in episode.claimed.calls}
    if not left:
        return
    change = Commit()
    for record in left.values():
        change.events.append(CallError(record.call_id, INTERRUPTED, "interrupted"))
    change.calls = tuple(
        [
            attrs.evolve(record, status="settled", outcome="interrupted", error=INTERRUPTED)
            for record in left.values()
        ]
    )
    await episode.journal.commit(change)
    messages = episode.claimed.messages
    run_id = episode.claimed.run.id
    for index, message in enumerate(messages):
        if message.run_id == run_id and message.role == "assistant":
            messages[index] = _interrupted(message, set(left))


def _interrupted(message: Message, call_ids: set[str]) -> Message:
    parts: list[MessagePart] = []
    for part in message.parts:
        if isinstance(part, ToolCallPart) and part.call_id in call_ids and part.outcome is None:
            parts.append(attrs.evolve(part, outcome="interrupted", error=INTERRUPTED))
        else:
            parts.append(part)
    return attrs.evolve(message, parts=tuple(parts))
