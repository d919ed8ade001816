"""Metadata of a run, its thread and its messages: patched, checked whole, committed (A-META-5)."""

from __future__ import annotations

from typing import Any

import attrs

from pai.contexts import RunPatch, StepPatch, renew
from pai.definition import EMPTY_METADATA, MetadataPatch, MetadataSchemas
from pai.errors import Fault, InvalidInput
from pai.loop._draft import Draft
from pai.loop._episode import Episode
from pai.protocol import MessageMetadata, Metadata, ThreadUpdated

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

    Raises:
        InvalidInput: A result fits its schema no more; nothing is changed.
    """
    definition, context, draft = episode.agent.definition, episode.context, episode.draft
    head = context.thread
    # All are checked before anything changes.
    run_bags = _patched(definition.run_metadata, context.metadata, run, "run_metadata")
    thread_bags = _patched(definition.thread_metadata, head.metadata, thread, "thread_metadata")
    message_bags = _patched(definition.message_metadata, draft.bags, message, "message_metadata")
    held = episode.held
    if run_bags is not None:
        held.run_metadata = run_bags
        renew(context, metadata=run_bags)
    if thread_bags is not None:
        held.thread_metadata = thread_bags
        held.events.append(ThreadUpdated(metadata=thread_bags.shown()))
        renew(context, thread=attrs.evolve(head, metadata=thread_bags))
    if message_bags is not None:
        draft.bags = message_bags
        if draft.message is not None:
            held.message_metadata[draft.id] = message_bags
        if draft.begun:
            held.events.append(MessageMetadata(draft.id, message_bags.shown()))


def _patched(
    schemas: MetadataSchemas[Any, Any] | None,
    bags: Metadata,
    patch: MetadataPatch | None,
    at: str,
) -> Metadata | None:
    if patch is None or not (patch.private or patch.public):
        return None
    if schemas is None:
        raise InvalidInput([Fault(at, "the agent declares no schemas for it")], subject="metadata")
    return schemas.patched(bags, patch, at=at)
