"""Limits on what comes from outside (R-39)."""

from __future__ import annotations

import attrs

from pai.errors import Fault
from pai.protocol import DataPart, FilePart, MessagePart, TextPart

__all__ = ("Limits", "message_faults", "text_faults")


@attrs.frozen(kw_only=True)
class Limits:
    """
    How much is taken from outside; what is more is refused and nothing is written.

    Args:
        text_length: Characters of a text part.
        parts: Parts of a message.
        file_bytes: Characters of a file's base64 content.
        client_data_depth: How deep client data may nest.
        title_length: Characters of a title.
    """

    text_length: int = 1_000_000
    parts: int = 100
    file_bytes: int = 20_000_000
    client_data_depth: int = 32
    title_length: int = 200


def message_faults(parts: tuple[MessagePart, ...], limits: Limits) -> list[Fault]:
    """What is wrong with a message from outside."""
    if not parts:
        return [Fault("content", "is empty")]
    if len(parts) > limits.parts:
        return [Fault("content", f"has {len(parts)} parts; at most {limits.parts} are taken")]
    faults = []
    for index, part in enumerate(parts):
        at = f"content[{index}]"
        if isinstance(part, TextPart):
            faults += text_faults(part.text, at, limits.text_length)
        elif isinstance(part, FilePart):
            if (part.url is None) == (part.data is None):
                faults.append(Fault(at, "a file has either url or data"))
            elif part.data is not None and len(part.data) > limits.file_bytes:
                faults.append(
                    Fault(at, f"has {len(part.data)} characters of base64; at most"
                          f" {limits.file_bytes} are taken")
                )  # fmt: skip
        elif not isinstance(part, DataPart):
            faults.append(Fault(at, "a user's message has text, files and data"))
    return faults


def text_faults(text: str, at: str, most: int) -> list[Fault]:
    """What is wrong with a text from outside."""
    if len(text) > most:
        return [Fault(at, f"has {len(text)} characters; at most {most} are taken")]
    return [] if _encodable(text) else [Fault(at, "has a lone surrogate: it is no text")]


def _encodable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
