"""A batch: what one transaction wrote into a thread's log."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from pai.protocol._codec import loads
from pai.protocol._events import Event, encode_events, event_from_json

__all__ = ("Batch",)


class Batch:
    """
    Events of one run that were committed together, numbered from *first* by their position.

    It is encoded at most once and decoded at most once, when somebody asks, and shared by all
    watchers of the process.

    Args:
        first: The number of the first event.
        run_id: The run they tell of; empty for the thread itself.
        events: The events, if they are at hand.
        body: Their JSON array, if it is at hand.
    """

    __slots__ = ("_body", "_events", "first", "run_id", "size")

    def __init__(
        self,
        first: int,
        run_id: str,
        events: list[Event] | None = None,
        body: str | None = None,
        size: int = 0,
    ) -> None:
        self.first = first
        self.run_id = run_id
        self.size = len(events) if events is not None else size
        self._events = events
        self._body = body

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + self.size - 1

    @property
    def body(self) -> str:
        """The events as a JSON array."""
        if self._body is None:
            self._body = encode_events(self.events)
        return self._body

    @property
    def events(self) -> list[Event]:
        """The events, in order, as they were made (without numbers)."""
        if self._events is None:
            self._events = [event_from_json(item) for item in loads(self._body or "[]")]
        return self._events

    def add(self, after: Batch) -> None:
        """Take the events of the batch that comes next, before anybody has seen this one."""
        self._events = [*self.events, *after.events]
        self.size += after.size
        self._body = None

    def numbered(self, after: int = 0) -> Iterator[Event]:
        """The events with a number above *after*, each carrying its number and run."""
        seq = self.first
        for index, event in enumerate(self.events):
            if seq > after:
                if event.seq not in (0, seq):
                    # A plugin yielded one object twice: it has two places in the log.
                    event = copy(event)
                    self.events[index] = event
                event.seq = seq
                event.run_id = self.run_id
                yield event
            seq += 1
