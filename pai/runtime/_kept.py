"""Background tasks that are kept alive."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

__all__ = ("kept",)

_BACK_OFF = (0.1, 0.5, 2.0, 5.0, 15.0)
"""Seconds before a task that failed starts again."""


async def kept(task: Callable[[], Awaitable[None]], report: Callable[[Exception], None]) -> None:
    """
    Run a task that never ends, again and again where it fails: that must not cancel the user's body.

    Args:
        task: The task.
        report: Takes what it raised.
    """
    failures = 0
    while True:
        began = anyio.current_time()
        try:
            await task()
            failures = 0
        except Exception as error:
            if anyio.current_time() - began > _BACK_OFF[-1]:
                failures = 0  # those of long ago are over
            report(error)
            await anyio.sleep(_BACK_OFF[min(failures, len(_BACK_OFF) - 1)])
            failures += 1
