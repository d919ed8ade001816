"""What ``pai.store`` is told of the transactions of a run: numbers, no content (O-7)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai.protocol import Commit, ThreadKey

__all__ = ("written",)

_store = logging.getLogger("pai.store")


def written(key: ThreadKey, run_id: str, events: int, change: Commit | None = None) -> None:
    """A transaction of a run is done."""
    if not _store.isEnabledFor(logging.DEBUG):
        return
    if change is None:
        _store.debug("appended: run_id=%s thread_id=%s events=%d", run_id, key.thread_id, events)
        return
    _store.debug(
        "committed: run_id=%s thread_id=%s events=%d calls=%d message=%s end=%s",
        run_id, key.thread_id, events, len(change.calls), change.message is not None,
        None if change.end is None else change.end.status,
    )  # fmt: skip
