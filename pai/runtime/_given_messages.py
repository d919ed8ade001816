"""Messages that a caller brings along instead of a thread (O-8)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pai.definition import EMPTY_METADATA, AgentDefinition
from pai.errors import Fault, InvalidInput
from pai.ports import Store
from pai.protocol import (
    Commit,
    Message,
    MessagePart,
    MessageView,
    Metadata,
    RunEnd,
    RunQueued,
    RunRecord,
    RunStarted,
    TextPart,
    ThreadKey,
    ThreadRecord,
    new_id,
    part_from_json,
)
from pai.schema import check_json

__all__ = ("GivenMessage", "given_messages", "keep_messages")

GivenMessage = Message | MessageView | Mapping[str, object]
"""A message as hooks or clients see it, or a mapping with ``role`` and ``content``."""

_DEPTH = 64


def given_messages(messages: Sequence[GivenMessage]) -> list[Message]:
    """
    The messages as a thread holds them.

    A mapping has ``role`` (``user`` or ``assistant``) and ``content``: text, or a list of texts,
    parts, and parts in their JSON form.

    Raises:
        InvalidInput: Something is no message; all faults at once.
    """
    given: object = messages
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise InvalidInput([Fault("messages", "expected a list of messages")], subject="run_once")
    found: list[Message] = []
    faults: list[Fault] = []
    run_id = new_id()
    for index, item in enumerate(given):
        at = f"messages[{index}]"
        if isinstance(item, Message):
            found.append(item)
        elif isinstance(item, MessageView):
            bags = Metadata(public=item.metadata)
            found.append(
                Message(item.id, item.role, item.parts, item.run_id, item.created_at, bags)
            )
        elif isinstance(item, Mapping):
            message = _from_mapping(item, at, run_id, faults)
            if message is not None:
                found.append(message)
        else:
            faults.append(Fault(at, f"expected a message, got {type(item).__name__}"))
    ids = [message.id for message in found]
    if len(set(ids)) < len(ids):
        faults.append(Fault("messages", "two of them have the same id"))
    if faults:
        raise InvalidInput(faults, subject="run_once")
    return found


def _from_mapping(
    item: Mapping[str, Any], at: str, run_id: str, faults: list[Fault]
) -> Message | None:
    before = len(faults)
    faults += [
        Fault(f"{at}.{key}", "is no field of a message")
        for key in item
        if key not in ("role", "content")
    ]
    role: Any = item.get("role")
    content = item.get("content")
    if role not in ("user", "assistant"):
        faults.append(Fault(f"{at}.role", "expected 'user' or 'assistant'"))
    if isinstance(content, str):
        content = [content]
    if not isinstance(content, Sequence):
        faults.append(Fault(f"{at}.content", "expected text, or a list of parts"))
        return None
    parts = [_part(part, f"{at}.content[{at_}]", faults) for at_, part in enumerate(content)]
    if len(faults) > before:
        return None
    whole = tuple([part for part in parts if part is not None])
    return Message(new_id(), role, whole, run_id, datetime.now(UTC))


def _part(part: object, at: str, faults: list[Fault]) -> MessagePart | None:
    if isinstance(part, str):
        return TextPart(part)
    if isinstance(part, MessagePart):
        return part
    if isinstance(part, Mapping) and isinstance(part.get("type"), str):
        own = dict(part)
        if wrong := check_json(own, at=at, max_depth=_DEPTH):
            faults += wrong
            return None
        try:
            made = part_from_json(own)
        except TypeError:
            faults.append(Fault(at, f"a part of type {part['type']!r} has other fields"))
            return None
        text: object = getattr(made, "text", "")
        if not isinstance(text, str):
            faults.append(Fault(f"{at}.text", "expected text"))
        return made
    faults.append(Fault(at, "expected text, or a part"))
    return None


async def keep_messages(
    store: Store, key: ThreadKey, agent: AgentDefinition[Any], messages: Sequence[Message]
) -> None:
    """Let a thread begin with these messages, as those of a run that has ended."""
    now = datetime.now(UTC)
    bags = agent.thread_metadata
    thread = ThreadRecord(
        key, agent.name, EMPTY_METADATA if bags is None else bags.initial(), now, now
    )
    run = RunRecord(new_id(), agent.name, agent.version, "trigger", {}, "", now, EMPTY_METADATA)
    accepted = await store.accept(
        thread,
        run,
        None,
        [RunQueued("trigger", created_at=now, thread_id=key.thread_id)],
        claim=("messages", math.inf),
        started=[RunStarted(key.thread_id)],
    )
    claimed = accepted.claimed
    assert claimed is not None
    for message in messages:
        await store.commit(key, run.id, claimed.fence, Commit(message=message))
    end = RunEnd("completed", now, "completed")
    await store.commit(key, run.id, claimed.fence, Commit(end=end))
