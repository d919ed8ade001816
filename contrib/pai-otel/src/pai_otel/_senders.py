"""Who sent the runs that have not started yet."""

from __future__ import annotations

from typing import Final

from opentelemetry.context import Context, get_current
from opentelemetry.trace import get_current_span

__all__ = ("Senders",)

_MOST = 1_000


class Senders:
    """
    The contexts in which messages were accepted here, by the ids of their runs.

    The task that works on a run may be older than the message, or that of another process: its own
    context says nothing of who sent the run. The latest thousand are kept.
    """

    def __init__(self) -> None:
        self._contexts: Final[dict[str, Context]] = {}

    def note(self, run_id: str) -> None:
        """The present context sends this run."""
        self._contexts[run_id] = get_current()
        if len(self._contexts) > _MOST:
            del self._contexts[next(iter(self._contexts))]

    def parent(self, run_id: str, operation: str) -> Context:
        """
        The context for a run's span: the sender's, where it is known.

        Where no message came, it is the present one, as long as its span is open.
        """
        found = self._contexts.pop(run_id, None)
        if found is not None:
            return found
        if operation != "send":
            present = get_current()
            if get_current_span(present).is_recording():
                return present
        return Context()
