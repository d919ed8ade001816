"""
Content, in the JSON forms of the conventions: only what is canonical comes here (A-LIFE-6).

Bytes of files and what providers want back word for word are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from pai import FilePart, Message, ReasoningPart, SystemMessage, TextPart, ToolCallPart
from pai.schema import JsonObject, JsonValue
from pai_otel._finish import FINISH_REASONS

__all__ = ("as_json", "input_messages", "instructions", "output_messages")


def as_json(value: JsonValue) -> str:
    """The value as a text: attributes of spans take no structure."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def instructions(messages: Sequence[SystemMessage]) -> str:
    """The instructions."""
    return as_json([{"type": "text", "content": message.content} for message in messages])


def input_messages(messages: Sequence[Message]) -> str:
    """The conversation, with what tools gave as messages of their own."""
    out: list[JsonValue] = []
    for message in messages:
        out.append({"role": message.role, "parts": _parts(message)})
        results = _results(message)
        if results:
            out.append({"role": "tool", "parts": results})
    return as_json(out)


def output_messages(message: Message, reason: str) -> str:
    """The answer of one model call, as it was committed."""
    return as_json(
        [
            {
                "role": "assistant",
                "parts": _parts(message),
                "finish_reason": FINISH_REASONS.get(reason, reason),
            }
        ]
    )


def _parts(message: Message) -> list[JsonValue]:
    parts: list[JsonValue] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            parts.append({"type": "text", "content": part.text})
        elif isinstance(part, ReasoningPart):
            parts.append({"type": "reasoning", "content": part.text})
        elif isinstance(part, ToolCallPart):
            parts += _call(part)
        elif isinstance(part, FilePart):
            parts.append(_file(part))
    return parts


def _call(part: ToolCallPart) -> Iterable[JsonObject]:
    arguments = part.input if part.raw is None else part.raw
    if not part.provider_executed:
        yield {
            "type": "tool_call", "id": part.call_id, "name": part.tool, "arguments": arguments
        }  # fmt: skip
        return
    yield {
        "type": "server_tool_call", "id": part.call_id, "name": part.tool,
        "server_tool_call": {"type": part.tool, "arguments": arguments},
    }  # fmt: skip
    yield {
        "type": "server_tool_call_response", "id": part.call_id,
        "server_tool_call_response": {"type": part.tool, "response": _outcome(part)},
    }  # fmt: skip


def _results(message: Message) -> list[JsonValue]:
    return [
        {"type": "tool_call_response", "id": part.call_id, "response": _outcome(part)}
        for part in message.parts
        if isinstance(part, ToolCallPart)
        and part.outcome is not None
        and not part.provider_executed
    ]


def _outcome(part: ToolCallPart) -> JsonValue:
    return part.output if part.error is None else {"error": part.error}


def _file(part: FilePart) -> JsonObject:
    modality = part.media_type.partition("/")[0]
    if modality not in {"image", "video", "audio"}:
        modality = "document"
    found: JsonObject = {"modality": modality, "mime_type": part.media_type}
    if part.url is not None and not part.url.startswith("data:"):
        return {"type": "uri", **found, "uri": part.url}
    return {"type": "blob", **found, "content": ""}
