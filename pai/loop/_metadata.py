"""Metadata of a run, its thread and its messages: patched, checked whole, committed (A-META-5)."""

from __future__ import annotations

from typing import Any

import attrs

from pai.contexts import RunPatch, StepPatch, renew
from pai.definition import EMPTY_METADATA, MetadataMerge, MetadataPatch, MetadataSchemas
from pai.errors import Fault, InvalidInput
from pai.loop._draft import Draft
from pai.loop._episode import Episode
from pai.protocol import Merge, MessageMetadata, Metadata, ThreadUpdated

__all__ = ("apply_patch", "new_draft", "patch_metadata")


def new_draft(episode: Episode, index: int) -> None:
    """Begin the message of a step; that of the one before is part of the history."""
    episode.draft = Draft(episode.claimed.run.id, index, _first_bags(episode))


def _first_bags(episode: Episode) -> Metadata:
    schemas = episode.agent.definition.message_metadata
    if schemas is None:
        return EMPTY_METADATA
    bags = schemas.initial()
    patch = episode.message_patch
    return bags if patch is None else schemas.patched(bags, patch, at="message_metadata")


def apply_patch(episode: Episode, patch: RunPatch | StepPatch) -> None:
    """
    Take the metadata out of a hook's patch; that of a run's messages holds for each of them.

    Raises:
        InvalidInput: A result fits its schema no more; nothing is changed.
    """
    changes = patch.changes
    message: MetadataPatch | None = changes.get("message_metadata")
    patch_metadata(episode, changes.get("run_metadata"), changes.get("thread_metadata"), message)
    if isinstance(patch, RunPatch) and message is not None:
        before = episode.message_patch
        if before is not None:
            message = MetadataPatch(
                {**before.private, **message.private}, {**before.public, **message.public}
            )
        episode.message_patch = message


def patch_metadata(
    episode: Episode,
    run: MetadataPatch | None,
    thread: MetadataPatch | None,
    message: MetadataPatch | None,
) -> None:
    """
    Patch metadata: contexts show it from now on, and the next commit takes it along.

    There it is merged once more, into what is stored by then: others may write at the same time.

    Raises:
        InvalidInput: A result fits its schema no more; nothing is changed.
    """
    definition, context, draft = episode.agent.definition, episode.context, episode.draft
    head, held = context.thread, episode.held
    # All are checked before anything changes.
    run_merge = _merge(definition.run_metadata, context.metadata, run, "run_metadata")
    thread_merge = _merge(definition.thread_metadata, head.metadata, thread, "thread_metadata")
    message_merge = _merge(definition.message_metadata, draft.bags, message, "message_metadata")
    if run_merge is not None and run is not None:
        merge, bags = run_merge
        held.run_metadata = _joined(held.run_metadata, merge)
        renew(context, metadata=bags)
        if run.public:
            _updated(episode).run_metadata = bags.shown()
    if thread_merge is not None and thread is not None:
        merge, bags = thread_merge
        held.thread_metadata = _joined(held.thread_metadata, merge)
        renew(context, thread=attrs.evolve(head, metadata=bags))
        if thread.public:
            _updated(episode).metadata = bags.shown()
    if message_merge is not None and message is not None:
        merge, bags = message_merge
        draft.bags = bags
        if draft.message is not None:
            held.message_metadata[draft.id] = _joined(held.message_metadata.get(draft.id), merge)
        if draft.begun and message.public:
            held.events.append(MessageMetadata(draft.id, bags.shown()))


def _updated(episode: Episode) -> ThreadUpdated:
    """The event that tells of the thread and the run: one for all patches of a commit."""
    events = episode.held.events
    for event in events:
        if isinstance(event, ThreadUpdated):
            return event
    event = ThreadUpdated()
    events.append(event)
    return event


def _merge(
    schemas: MetadataSchemas[Any, Any] | None,
    bags: Metadata,
    patch: MetadataPatch | None,
    at: str,
) -> tuple[MetadataMerge, Metadata] | None:
    """How the patch is merged, and what it makes of the bags that are known here."""
    if patch is None or not (patch.private or patch.public):
        return None
    if schemas is None:
        raise InvalidInput([Fault(at, "the agent declares no schemas for it")], subject="metadata")
    merge = MetadataMerge(schemas, bags, patch, at=at)
    return merge, merge.made


def _joined(first: Merge | None, then: Merge) -> Merge:
    return then if first is None else lambda bags: then(first(bags))
