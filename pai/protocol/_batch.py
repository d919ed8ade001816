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

    A compact one stands for several batches, and has other events than they had; the last event has
    the last number, so that who has it knows all of them.

    Args:
        first: The number of the first event.
        run_id: The run they tell of; empty for the thread itself.
        events: The events, if they are at hand.
        body: Their JSON array, if it is at hand.
        size: How many numbers it has; by default as many as events.
        compact: Not 0 if its events are not those that had its numbers once; one less is how many
            of them, from the first on, are told only to who knows a part of the batch.
    """

    __slots__ = ("_body", "_events", "compact", "first", "run_id", "size")

    def __init__(
        self,
        first: int,
        run_id: str,
        events: list[Event] | None = None,
        body: str | None = None,
        size: int = 0,
        compact: int = 0,
    ) -> None:
        self.first = first
        self.run_id = run_id
        self.size = size or len(events or ())
        self._events = events
        self._body = body
        self.compact = compact

    @property
    def retold(self) -> int:
        """How many events, from the first on, are not for who comes from before the batch."""
        return max(self.compact - 1, 0)

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
        """
        The events with a number above *after*, each carrying its number and run.

        Of a compact batch all are given, in numbers above *after*: nobody can tell what of it is
        known, and a fold takes it once more. Where they are more than there are numbers, the first
        ones have none (0).
        """
        events = self.events
        if self.compact:
            yield from self._renumbered(after)
            return
        seq = self.first
        for index, event in enumerate(events):
            if seq > after:
                if event.seq not in (0, seq):
                    # A plugin yielded one object twice: it has two places in the log.
                    event = copy(event)
                    events[index] = event
                event.seq = seq
                event.run_id = self.run_id
                yield event
            seq += 1

    def _renumbered(self, after: int) -> Iterator[Event]:
        if after >= self.last:
            return
        first = max(self.first, after + 1)
        events = self.events if after >= self.first else self.events[self.retold :]
        without = len(events) - (self.last - first + 1)
        for index, event in enumerate(events, 1):
            # Its own copy: another watcher may be given other numbers.
            event = copy(event)
            if index == len(events):
                event.seq = self.last
            else:
                event.seq = 0 if index <= without else first + index - 1 - max(without, 0)
            event.run_id = self.run_id
            yield event
