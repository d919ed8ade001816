"""Metadata that was stored under older schemas, as a run's contexts show it (A-META-10)."""

from __future__ import annotations

from typing import NamedTuple

import attrs

from pai.definition import ReadMetadata, StoredMetadata
from pai.errors import Fault, InvalidInput
from pai.loop._episode import Episode
from pai.protocol import Message, Metadata, ThreadUpdated

__all__ = ("Contexts", "read_metadata", "write_through")

_MOST_FAULTS = 20
"""Faults that are reported at once: of a long thread each message may have some."""


class Contexts(NamedTuple):
    """What contexts show."""

    run: Metadata
    thread: Metadata
    messages: list[Message]


def read_metadata(episode: Episode) -> Contexts:
    """Read what was claimed; what does not fit any more is left out, and reported."""
    claimed, definition = episode.claimed, episode.agent.definition
    faults: list[Fault] = []

    def taken(read: ReadMetadata, at: str) -> Metadata:
        faults.extend([fault.under(f"{at}.private") for fault in read.hidden])
        faults.extend([fault.under(f"{at}.public") for fault in read.shown])
        return read.bags

    run = taken(StoredMetadata(definition.run_metadata).read(claimed.run.metadata), "run_metadata")
    thread = taken(
        StoredMetadata(definition.thread_metadata).read(claimed.thread.metadata), "thread_metadata"
    )
    messages = claimed.messages
    if definition.message_metadata is not None:
        stored = StoredMetadata(definition.message_metadata)
        messages = []
        for message in claimed.messages:
            read = stored.read(message.metadata)
            if read.bags is not message.metadata:
                bags = taken(read, f"message_metadata[{message.id!r}]")
                message = attrs.evolve(message, metadata=bags)
            messages.append(message)
    if faults:
        episode.report(
            InvalidInput(faults[:_MOST_FAULTS], subject="stored metadata"),
            {"run_id": claimed.run.id, "thread_id": claimed.thread.key.thread_id},
        )
    return Contexts(run, thread, messages)


def write_through(episode: Episode) -> None:
    """
    Store the run's own metadata as it is read, with the next commit.

    The terminal event says what is stored, and a client must not see the older form again.
    """
    schemas, bags = episode.agent.definition.run_metadata, episode.context.metadata
    if schemas is None or bags is episode.claimed.run.metadata:
        return
    held = episode.held
    held.run_metadata = lambda stored: schemas.read(stored)[0]
    held.events.append(ThreadUpdated(run_metadata=bags.shown()))
