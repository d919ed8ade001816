"""Worker threads for searches."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from anyio import CapacityLimiter
    from anyio.lowlevel import RunVar

__all__ = ("in_thread",)

T = TypeVar("T")

_AT_ONCE = 4


async def in_thread(work: Callable[[], T]) -> T:
    """Do *work* in a worker thread; at most 4 are searching at once on an event loop."""
    from anyio import CapacityLimiter
    from anyio.to_thread import run_sync

    limiter = _limiter().get(None)
    if limiter is None:
        limiter = CapacityLimiter(_AT_ONCE)
        _limiter().set(limiter)
    return await run_sync(work, limiter=limiter)


@cache
def _limiter() -> RunVar[CapacityLimiter]:
    from anyio.lowlevel import RunVar

    return RunVar("pai_rag_limiter")
