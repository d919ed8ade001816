"""Telling observers: nobody's patch, skip or error keeps them from being told (R-32)."""

from __future__ import annotations

import inspect

import anyio

from pai.errors import LeaseLost, PluginError
from pai.lifecycle import Hook, broken_hook, error_of
from pai.loop._episode import Episode

__all__ = ("observe", "observe_end")

_TELLING = 10.0
"""Seconds that the observers of a run's end have together."""


async def observe_end(episode: Episode, chain: tuple[Hook, ...], *values: object) -> None:
    """
    :func:`observe`, once the run has ended: also where it is cancelled or the runtime closes.

    Somebody who waited for the end may close the runtime at once.
    """
    with anyio.move_on_after(_TELLING, shield=True) as scope:
        await observe(episode, chain, *values)
    if scope.cancel_called:
        late = TimeoutError(f"observers of {chain[0].phase} took more than {_TELLING:g} s")
        episode.report(late, {"run_id": episode.claimed.run.id})


async def observe(episode: Episode, chain: tuple[Hook, ...], *values: object) -> None:
    """Call each observer on its own; what one raises is reported and changes nothing."""
    for hook in chain:
        try:
            answer = hook.call(*values)
            if answer is not None and (hook.is_async or inspect.isawaitable(answer)):
                await answer
        except BaseException as error:
            broken = error_of(hook, error)
            if isinstance(broken, LeaseLost):
                broken = broken_hook(hook, error)
            if not isinstance(broken, PluginError):
                raise
            if broken is not error:
                broken.__cause__ = error
            run = episode.claimed.run
            episode.report(broken, {"run_id": run.id, "thread_id": episode.journal.key.thread_id})
