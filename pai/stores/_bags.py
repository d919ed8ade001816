"""What every store does alike where metadata changes: merge, and tell of it in the log (A-META-5)."""

from __future__ import annotations

import attrs

from pai.protocol import (
    Changed,
    Event,
    MessageMetadata,
    Metadata,
    RunFinished,
    ThreadChange,
    ThreadUpdated,
)

__all__ = ("Bags", "Merged", "change_events", "put_in")


@attrs.frozen(eq=False)
class Merged:
    """Bags as they were and as they are now."""

    old: Metadata
    new: Metadata

    @property
    def shown(self) -> bool:
        """Whether there is a difference that clients see."""
        return self.old.public != self.new.public


@attrs.define(eq=False)
class Bags:
    """What a transaction has merged; ``None`` where it changes nothing."""

    run: Merged | None = None
    thread: Merged | None = None
    messages: dict[str, Merged] = attrs.field(factory=dict)

    def told(self) -> Changed | None:
        """The bags as they are now; ``None`` where nothing is changed."""
        if self.run is None and self.thread is None and not self.messages:
            return None
        return Changed(
            None if self.run is None else self.run.new,
            None if self.thread is None else self.thread.new,
            {message_id: merged.new for message_id, merged in self.messages.items()},
        )


def put_in(events: list[Event], bags: Bags, run: Metadata | None) -> None:
    """
    Put what became of metadata into the events of a commit that show it.

    Args:
        events: The events.
        bags: What the commit merged.
        run: The run's metadata by now, where that is known.
    """
    if run is None and bags.run is not None:
        run = bags.run.new
    for event in events:
        if isinstance(event, ThreadUpdated):
            if bags.thread is not None and event.metadata is not None:
                event.metadata = bags.thread.new.shown()
            if run is not None and event.run_metadata is not None:
                event.run_metadata = run.shown()
        elif isinstance(event, MessageMetadata):
            merged = bags.messages.get(event.message_id)
            if merged is not None:
                event.metadata = merged.new.shown()
        elif isinstance(event, RunFinished) and run is not None:
            event.metadata = run.shown()


def change_events(change: ThreadChange, bags: Bags) -> list[Event]:
    """What the log is told of a change that was made beside the runs."""
    updated = ThreadUpdated(change.title, None if change.title is None else change.title_source)
    if bags.thread is not None and bags.thread.shown:
        updated.metadata = bags.thread.new.shown()
    if bags.run is not None and bags.run.shown:
        updated.run_metadata = bags.run.new.shown()
    events: list[Event] = []
    if (updated.title, updated.metadata, updated.run_metadata) != (None, None, None):
        events.append(updated)
    for message_id, merged in bags.messages.items():
        if merged.shown:
            events.append(MessageMetadata(message_id, merged.new.shown()))
    return events
