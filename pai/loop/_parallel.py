"""How many calls of a step run at once, and in which order they start (O-22)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio
import anyio.abc

from pai.loop._episode import Episode

__all__ = ("at_once", "side_by_side")

ItemT = TypeVar("ItemT")


def at_once(episode: Episode) -> int | None:
    """How many calls may run at once; ``None``: all of a step."""
    loop = episode.loop
    return 1 if loop.tool_execution == "sequential" else loop.max_parallel_tools


async def side_by_side(
    items: Sequence[ItemT],
    work: Callable[[ItemT], Awaitable[None]],
    limit: int | None,
    ended: Callable[[], object],
) -> None:
    """
    Work on all items: they start in their order, and finish in any.

    Args:
        items: What there is to do.
        work: Does one; it raises nothing but cancellation.
        limit: How many at once.
        ended: Whether the run is over: what has not begun then never does, if there is a limit.
    """
    if len(items) == 1 or limit == 1:
        for item in items:
            if ended():
                return
            await work(item)
        return
    room = None if limit is None or limit >= len(items) else anyio.Semaphore(limit)

    async def one(
        item: ItemT, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        task_status.started()
        try:
            await work(item)
        finally:
            if room is not None:
                room.release()

    async with anyio.create_task_group() as group:
        for item in items:
            if room is not None:
                await room.acquire()
                if ended():
                    return
            # Not start_soon: tasks of a trio nursery begin in any order.
            await group.start(one, item)
