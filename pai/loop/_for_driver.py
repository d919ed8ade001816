"""What only some drivers are told: changes in mid-conversation, and decisions on calls."""

from __future__ import annotations

from typing import Any

import attrs

from pai.contexts import StepContext, renew
from pai.loop._episode import Episode
from pai.loop._mid_conversation import tell_changes
from pai.protocol import ToolCallPart

__all__ = ("fill_for_driver",)


async def fill_for_driver(episode: Episode, step: StepContext[Any]) -> None:
    """Put on the request of a step what its driver's profile asks for (O-3, O-10)."""
    driver = step.request.model
    if isinstance(driver, str):
        return
    profile = episode.profile_of(driver)
    if profile.mid_conversation and step.kind == "model":
        told = await tell_changes(episode, step.request, driver, profile.mid_conversation)
        renew(step, request=attrs.evolve(step.request, mid_conversation=told))
    if episode.claimed.run.episode > 1 and (profile.requires or _has_asked(episode)):
        if episode.decisions is None:
            episode.decisions = await episode.journal.decisions()
        renew(step, request=attrs.evolve(step.request, approvals=episode.decisions))


def _has_asked(episode: Episode) -> bool:
    """Whether a driver has asked in this run before it ran a call of its own."""
    run_id = episode.claimed.run.id
    return any(
        type(part) is ToolCallPart and part.approval is not None
        for message in reversed(episode.messages)
        if message.run_id == run_id
        for part in message.parts
    )
