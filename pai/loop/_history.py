"""Repairing a history, so that every provider accepts it (R-15)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from pai.protocol import INTERRUPTED, Message, MessagePart, ToolCallPart

__all__ = ("repaired",)


def repaired(messages: Sequence[Message]) -> list[Message]:
    """
    The messages as a provider takes them: deterministic, idempotent, by whole parts.

    * A call without an outcome gets an "interrupted" one.
    * A second call of one id within a message is removed: a result could not be told apart.
    * Messages without parts are removed.

    No text is edited, and a message that needs nothing stays the very object (with its wire form).
    """
    return [fixed for message in messages if (fixed := _fixed(message)) is not None]


def _fixed(message: Message) -> Message | None:
    if not message.parts:
        return None
    seen: set[str] | None = None
    changed: list[MessagePart] | None = None
    for index, part in enumerate(message.parts):
        if type(part) is not ToolCallPart:
            if changed is not None:
                changed.append(part)
            continue
        if seen is None:
            seen = set()
        twice = part.call_id in seen
        seen.add(part.call_id)
        if not twice and part.outcome is not None:
            if changed is not None:
                changed.append(part)
            continue
        if changed is None:
            changed = list(message.parts[:index])
        if not twice:
            changed.append(attrs.evolve(part, outcome="interrupted", error=INTERRUPTED))
    if changed is None:
        return message
    return attrs.evolve(message, parts=tuple(changed))
