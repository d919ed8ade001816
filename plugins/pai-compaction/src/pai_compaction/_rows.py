"""What outlives an episode: :class:`Rows`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pai_compaction._calibration import Calibration
from pai_compaction._marks import Row
from pai_compaction._summary import Summary

__all__ = ("Records", "Rows")

_STATE = "state"
_SUMMARY = "summary:"
# As many characters as every store takes as a key.
_KEY_LENGTH = 256


class Records(Protocol):
    """The stored rows of this plugin and thread."""

    async def get(self, key: str) -> object: ...

    async def put(self, key: str, value: object) -> None: ...


class Rows:
    """
    The rows of one thread.

    One has the marks, and there is one for each summary, by the id of the last message it stands
    for. A summary is never written over by one of another history: that one has another last message.
    Where the way back is needed, each names the one it was made from.

    Args:
        records: Where they are stored; ``None``: nowhere, they are as long as this object.
    """

    __slots__ = ("_made", "records")

    def __init__(self, records: Records | None) -> None:
        self.records = records
        self._made: dict[str, Summary] = {}

    async def state(self) -> tuple[Row, Calibration]:
        """The marks and the calibration that were stored last."""
        value = None if self.records is None else await self.records.get(_STATE)
        if not isinstance(value, Mapping):
            return Row(), Calibration()
        cleared, dropped, summary = (
            each if isinstance(each, str) else None
            for each in (value.get("cleared"), value.get("dropped"), value.get("summary"))
        )
        return Row(cleared, dropped, summary), Calibration.from_json(value.get("factors"))

    async def put_state(self, row: Row, calibration: Calibration) -> None:
        """Store the marks and the calibration."""
        factors = calibration.to_json()
        if self.records is not None:
            value = {"cleared": row.cleared, "dropped": row.dropped, "summary": row.summary}
            await self.records.put(_STATE, {**value, "factors": factors})

    async def summary(self, covers: str) -> Summary | None:
        """The summary that stands for everything up to a message."""
        made = self._made.get(covers)
        if made is None and self.records is not None:
            made = Summary.from_json(await self.records.get(_key(covers)))
            if made is not None:
                self._made[covers] = made
        return made

    async def put_summary(self, summary: Summary) -> None:
        """Store a summary."""
        self._made[summary.covers] = summary
        if self.records is not None:
            await self.records.put(_key(summary.covers), summary.to_json())


def _key(covers: str) -> str:
    return (_SUMMARY + covers)[:_KEY_LENGTH]
