"""Side jobs: what a run leaves to be done beside it or after it (R-38, R-33a)."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import attrs

from pai.schema import JsonObject

__all__ = ("JobKind", "JobRecord", "NewLabel", "NewTitle", "settled_job")

JobKind = Literal["title", "label", "settled"]
"""A title for the thread, a label for a reasoning part, or telling observers of a run's end."""


@attrs.frozen(eq=False)
class JobRecord:
    """
    A side job. Whoever has the present *attempt* may finish it, nobody else.

    Args:
        id: Unique within the thread. That of a label begins with its message's id and ``:``.
        kind: What is to be done.
        run_id: The run that left it.
        payload: What its worker needs besides the run.
        attempt: How often it was taken; its writer has the first attempt.
        lease: Seconds that its writer has for that.
    """

    id: str
    kind: JobKind
    run_id: str
    payload: JsonObject = attrs.field(factory=dict)
    attempt: int = 1
    lease: float = 0.0


def settled_job(run_id: str, lease: float = 0.0) -> JobRecord:
    """The job that tells observers of a run's end (R-33a)."""
    return JobRecord(f"settled:{run_id}", "settled", run_id, lease=lease)


@attrs.frozen(eq=False)
class NewTitle:
    """
    A title that was generated.

    Args:
        text: The title.
        replaces: Sources whose titles it may replace; ``""`` stands for no title (A-TITLE-3).
        at: When it was made.
        messages: How many messages it has seen.
        runs: The place of its run among the thread's runs.
    """

    text: str
    replaces: tuple[str, ...]
    at: datetime
    messages: int
    runs: int


@attrs.frozen(eq=False)
class NewLabel:
    """A label of the *ordinal*-th reasoning part with text of a message, from 0 (A-REASON-1)."""

    message_id: str
    ordinal: int
    text: str
