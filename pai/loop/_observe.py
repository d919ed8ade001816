"""Telling observers: nobody's patch, skip or error keeps them from being told (R-32)."""

from __future__ import annotations

import inspect
from typing import Any

from pai.lifecycle import Hook, broken_hook
from pai.loop._episode import Episode

__all__ = ("observe",)


async def observe(episode: Episode, chain: tuple[Hook, ...], *values: Any) -> None:
    """Call each observer on its own; what one raises is reported and changes nothing."""
    for hook in chain:
        try:
            answer = hook.call(*values)
            if hook.is_async or inspect.isawaitable(answer):
                await answer
        except Exception as error:  # noqa: BLE001  # an observer changes nothing
            broken = broken_hook(hook, error)
            broken.__cause__ = error
            episode.report(broken, {"run_id": episode.claimed.run.id})
