"""The kit that holds a store to its port."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pai.testing._store_changes import CHANGE_CHECKS
from pai.testing._store_children import CHILD_CHECKS
from pai.testing._store_compact import COMPACT_CHECKS
from pai.testing._store_content import CONTENT_CHECKS
from pai.testing._store_jobs import JOB_CHECKS
from pai.testing._store_pending import PENDING_CHECKS
from pai.testing._store_queue import QUEUE_CHECKS
from pai.testing._store_records import RECORD_CHECKS
from pai.testing._store_world import Make

__all__ = ("STORE_CHECKS", "Check", "check_store")

Check = Callable[[Make], Awaitable[None]]

STORE_CHECKS: tuple[Check, ...] = (
    *CONTENT_CHECKS,
    *QUEUE_CHECKS,
    *PENDING_CHECKS,
    *CHILD_CHECKS,
    *RECORD_CHECKS,
    *JOB_CHECKS,
    *CHANGE_CHECKS,
    *COMPACT_CHECKS,
)
"""One a promise, for a test suite that wants to name each."""


async def check_store(make: Make) -> None:
    """
    Hold a store to all that :class:`pai.ports.Store` promises.

    Each check works on threads of its own in partitions of its own, so the store need not be
    empty; it is left with their rows in it.

    Args:
        make: Makes a store that is not open; if it is durable, always one over the same data.

    Raises:
        ExceptionGroup: An :class:`AssertionError` for each promise that is broken, or what the
            store raised instead of keeping it.
    """
    failed: list[Exception] = []
    for check in STORE_CHECKS:
        try:
            await check(make)
        except Exception as error:
            error.add_note(f"in {check.__name__}")
            failed.append(error)
    if failed:
        raise ExceptionGroup(f"{len(failed)} of {len(STORE_CHECKS)} promises are broken", failed)
