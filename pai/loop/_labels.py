"""Which parts of reasoning are to get a label, and when (A-REASON-1)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from pai.loop._journal import Journal
from pai.protocol import JobRecord, StepStarted, new_id

__all__ = ("LabelWatch", "drop_void_labels")


class _Item(Protocol):
    """A part that is being written."""

    @property
    def kind(self) -> str: ...

    @property
    def chunks(self) -> list[str]: ...

    @property
    def closed(self) -> bool: ...


class LabelWatch:
    """
    Leaves a job for each part of reasoning of one message, in the write that closes it (R-38).

    Args:
        journal: The run's.
        message_id: The message.

    Attributes:
        written: There were some: labels may come before the message is committed.
    """

    __slots__ = ("_journal", "_known", "_message_id", "written")

    def __init__(self, journal: Journal, message_id: str) -> None:
        self._journal = journal
        self._message_id = message_id
        self._known: list[_Item] = []
        self.written = False

    def closed(self, order: Iterable[_Item]) -> None:
        """A part has closed; *order* has all parts so far."""
        ordinal = 0
        for item in order:
            if item.kind != "reasoning":
                continue
            if not any(item.chunks):
                if not item.closed:
                    return  # nobody knows yet whether it counts
                continue
            if item.closed and not any(item is known for known in self._known):
                self._known.append(item)
                self._leave(ordinal, "".join(item.chunks))
            ordinal += 1

    def _leave(self, ordinal: int, text: str) -> None:
        self.written = True
        journal = self._journal
        journal.leave(
            JobRecord(
                # After a reset there may be another part at this place: each job has its own id.
                f"{self._message_id}:{new_id()}",
                "label",
                journal.run_id,
                {"messageId": self._message_id, "ordinal": ordinal, "text": text},
                lease=journal.job_lease,
            )
        )

    def reset(self) -> None:
        """What there was is void."""
        if self.written:
            self._journal.unlabel(self._message_id)


async def drop_void_labels(journal: Journal, cursor: int, committed: Iterable[str]) -> None:
    """
    Drop the labels of a step that a former worker has not committed.

    Args:
        journal: The run's.
        cursor: The number of the last event of that worker.
        committed: Ids of the messages that the run has committed.
    """
    for event in await journal.last_step(cursor):
        if isinstance(event, StepStarted) and event.message_id not in committed:
            journal.unlabel(event.message_id)
