"""What steers a run's loop: the agent's fields, under the options of the call, under the hooks' patch."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import attrs

from pai.definition import LoopOptions, run_options
from pai.loop._episode import Episode
from pai.loop._logs import run_begins

__all__ = ("steer",)

_FIELDS: Final = tuple([field.name for field in attrs.fields(LoopOptions)])


def steer(episode: Episode) -> None:
    """
    Work out what steers the episode, once ``prepare_run`` has been asked.

    Raises:
        InvalidInput: The stored options are of a version that had others.
    """
    stored = episode.claimed.run.request.get("options")
    patch = episode.patch
    loop = episode.agent.definition.loop
    changes: dict[str, Any] = {}
    if stored:
        options = episode.options = run_options(stored)
        changes = {
            name: value for name in _FIELDS if (value := getattr(options, name, None)) is not None
        }
    cache = changes.get("prompt_cache", loop.prompt_cache)
    if cache is not None and cache.key is None:
        changes["prompt_cache"] = attrs.evolve(cache, key=_thread_key(episode))
    if patch is not None:
        changes |= {name: value for name, value in patch.changes.items() if name in _FIELDS}
    if changes:
        episode.loop = attrs.evolve(loop, **changes)
    run_begins(episode)


def _thread_key(episode: Episode) -> str:
    """What the requests of a thread have in common, without telling its id."""
    key = episode.journal.key
    return blake2b(f"{key.partition}\0{key.thread_id}".encode(), digest_size=16).hexdigest()
