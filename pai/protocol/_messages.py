"""A message as hooks, drivers and the store see it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import attrs

from pai.protocol._codec import loads
from pai.protocol._parts import (
    MessagePart,
    TextPart,
    part_from_json,
    part_to_json,
)
from pai.schema import JsonObject, dump_json

__all__ = ("Message", "Metadata", "Role", "parts_from_text", "parts_to_text")

Role = Literal["user", "assistant"]

_EMPTY: JsonObject = {}


@attrs.frozen
class Metadata:
    """The two bags of a run, thread or message: *private* never leaves the server (A-META-6)."""

    private: Mapping[str, object] = attrs.field(factory=dict)
    public: Mapping[str, object] = attrs.field(factory=dict)

    def shown(self) -> JsonObject:
        """A copy of the public bag: what clients see."""
        return dict(self.public)  # type: ignore[arg-type]  # bags hold checked JSON


@attrs.frozen(eq=False)
class Message:
    """
    One message of a thread. Equality is by identity: a message is immutable, and never copied.

    Args:
        id: Unique within the thread.
        role: Who spoke. Tool results are part of the call they answer, so there is no third role.
        parts: What was said, in order.
        metadata: Both bags.
        run_id: The run that wrote it, or that a user's message started.
        created_at: When it was first written, UTC.
        wire: The message in the form of each wire it was sent over, kept by the driver that made
            it: history is encoded once, not at each request.
    """

    id: str
    role: Role
    parts: tuple[MessagePart, ...]
    run_id: str
    created_at: datetime
    metadata: Metadata = attrs.field(factory=Metadata)
    wire: dict[str, bytes] = attrs.field(factory=dict, repr=False, init=False)

    @property
    def text(self) -> str:
        """All text parts, joined."""
        return "".join([part.text for part in self.parts if type(part) is TextPart])


def parts_to_text(parts: tuple[MessagePart, ...]) -> str:
    """The parts as a JSON array, as they are stored."""
    return dump_json([part_to_json(part) for part in parts])


def parts_from_text(text: str) -> tuple[MessagePart, ...]:
    """What :func:`parts_to_text` wrote."""
    return tuple([part_from_json(part) for part in loads(text)])
