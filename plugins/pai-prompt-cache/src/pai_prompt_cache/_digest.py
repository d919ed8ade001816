"""Eight bytes that stand for a part of a request."""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Final
from weakref import WeakKeyDictionary

import attrs

from pai import DataPart, Message, OutputPart, ReasoningPart, SystemMessage, TextPart
from pai.protocol import ProviderTool, ToolSpec

__all__ = ("digest", "of_instructions", "of_message", "of_tool")

_SIZE: Final = 8
_TOOLS: Final[WeakKeyDictionary[ToolSpec | ProviderTool, bytes]] = WeakKeyDictionary()


def digest(value: object) -> bytes:
    """The digest of a JSON value."""
    return blake2b(_json(value), digest_size=_SIZE).digest()


def of_message(message: Message) -> bytes:
    """
    The digest of what a model is told of a message: its role and its parts.

    Data parts are the application's own, and outputs are told by their text, where they were read
    from one; the label of a reasoning may be written later.
    """
    made = blake2b(message.role.encode(), digest_size=_SIZE)
    for part in message.parts:
        kind = type(part)
        if kind is TextPart and part.provider_data is None:  # type: ignore[union-attr]  # it is text
            text = part.text.encode("utf-8", "surrogatepass")  # type: ignore[union-attr]  # see above
            made.update(b"\0text %d\0" % len(text))
            made.update(text)
        elif kind is not DataPart and not (isinstance(part, OutputPart) and part.in_text):
            fields = attrs.asdict(part, recurse=False)
            if kind is ReasoningPart:
                del fields["summary"]
            made.update(_json({"type": part.type, **fields}))
    return made.digest()


def of_instructions(message: SystemMessage) -> bytes:
    """The digest of one message of instructions, the hints for its provider included."""
    return digest([message.content, message.provider_options])


def of_tool(tool: ToolSpec | ProviderTool) -> bytes:
    """The digest of a tool as models are told of it; a declared tool is the same in each step."""
    made = _TOOLS.get(tool)
    if made is None:
        made = _TOOLS[tool] = digest(attrs.asdict(tool, recurse=False))
    return made


def _json(value: object) -> bytes:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=_as)
    return text.encode("utf-8", "surrogatepass")


def _as(value: object) -> object:
    """What is no JSON itself: a mapping, or an object of an application's class."""
    try:
        return dict(value)  # type: ignore[call-overload]  # it may be a mapping
    except (TypeError, ValueError):
        pass
    if attrs.has(type(value)):
        return attrs.asdict(value, recurse=False)  # type: ignore[arg-type]  # it is one of attrs
    return str(value)
