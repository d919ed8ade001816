"""What only some drivers are told: changes in mid-conversation, and decisions on calls."""

from __future__ import annotations

from typing import Any

import attrs

from pai.contexts import StepContext, renew
from pai.loop._episode import Episode
from pai.loop._mid_conversation import tell_changes

__all__ = ("fill_for_driver",)


async def fill_for_driver(episode: Episode, step: StepContext[Any]) -> None:
    """Put on the request of a step what its driver's profile asks for (O-3, O-10)."""
    driver = step.request.model
    if isinstance(driver, str):
        return
    if episode.driver is None or episode.driver[0] is not driver:
        # Asked once a driver: working a profile out may cost as much as a step.
        episode.driver = (driver, driver.profile)
    profile = episode.driver[1]
    if profile.mid_conversation and step.kind == "model":
        told = await tell_changes(episode, step.request, driver, profile.mid_conversation)
        renew(step, request=attrs.evolve(step.request, mid_conversation=told))
    if profile.requires and episode.claimed.run.episode > 1:
        # A driver that needs something of the runtime may ask for approvals itself.
        if episode.decisions is None:
            episode.decisions = await episode.journal.decisions()
        renew(step, request=attrs.evolve(step.request, approvals=episode.decisions))
