"""History is encoded once, not at each request."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pai.protocol import Message, ToolCallPart

__all__ = ("encoded_history",)


def encoded_history(
    messages: Sequence[Message], codec: str, encode: Callable[[Message], bytes]
) -> list[bytes]:
    """
    The wire form of each message; that of a settled one is made once and kept with it.

    Args:
        messages: The history.
        codec: The name under which this form is kept.
        encode: Makes it.
    """
    out = []
    for message in messages:
        wire = message.wire.get(codec)
        if wire is None:
            wire = encode(message)
            if _settled(message):
                message.wire[codec] = wire
        out.append(wire)
    return out


def _settled(message: Message) -> bool:
    """Nothing will change in it: all its calls have ended."""
    for part in message.parts:
        if type(part) is ToolCallPart and part.outcome is None:
            return False
    return True
