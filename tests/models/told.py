"""A stream in short, so that a case can say what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any

from pai.ports import ModelDriver, ModelRequest
from pai.protocol import (
    File,
    FilePart,
    Message,
    MessagePart,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningPart,
    Source,
    StepFinish,
    StreamPart,
    TextDelta,
    TextEnd,
    TextPart,
    ToolCall,
    ToolCallPart,
    ToolInputDelta,
    ToolSpec,
    new_id,
)
from pai.testing._driver_kit import check_stream

ADD = ToolSpec(
    "add",
    "Add two integers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


def user(*parts: MessagePart | str) -> Message:
    given = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    return Message(new_id(), "user", given, "run", datetime.now(UTC))


def assistant(*parts: MessagePart | str) -> Message:
    given = tuple(TextPart(part) if isinstance(part, str) else part for part in parts)
    return Message(new_id(), "assistant", given, "run", datetime.now(UTC))


def request(driver: ModelDriver | str, *messages: Message, **fields: Any) -> ModelRequest:
    return ModelRequest(driver, messages or (user("hi"),), **fields)


async def listen(driver: ModelDriver, asked: ModelRequest | None = None) -> list[StreamPart]:
    """All parts of a stream."""
    parts: list[StreamPart] = []
    stream: Any = driver.stream(asked or request(driver))
    async with aclosing(stream) as items:
        async for item in items:
            assert item != []
            parts.extend(item if isinstance(item, list) else [item])
    return parts


def told(parts: list[StreamPart]) -> dict[str, Any]:
    """What a well-formed stream said, without what is empty."""
    check_stream(parts)
    texts: dict[str, str] = {}
    thoughts: dict[str, str] = {}
    written: dict[str, str] = {}
    calls = []
    sources = []
    files = []
    reason = None
    usage = None
    for part in parts:
        if isinstance(part, TextDelta):
            texts[part.id] = texts.get(part.id, "") + part.text
        elif isinstance(part, ReasoningDelta):
            thoughts[part.id] = thoughts.get(part.id, "") + part.text
        elif isinstance(part, ToolInputDelta):
            written[part.call_id] = written.get(part.call_id, "") + part.text
        elif isinstance(part, ToolCall):
            value = part.input if part.raw is None else f"raw:{part.raw}"
            calls.append((part.tool, value))
        elif isinstance(part, Source):
            sources.append(part.url or part.title)
        elif isinstance(part, File):
            files.append((part.media_type, part.data))
        elif isinstance(part, StepFinish):
            reason, usage = part.reason, part.usage
    found = {
        "text": list(texts.values()),
        "reasoning": list(thoughts.values()),
        "calls": calls,
        "sources": sources,
        "files": files,
        "usage": usage and (usage.input_tokens, usage.output_tokens, usage.total_tokens),
    }
    return {"reason": reason} | {name: value for name, value in found.items() if value}


def kept(parts: list[StreamPart], outputs: Mapping[str, Any] | None = None) -> Message:
    """The message a loop would keep of a stream, its calls settled with *outputs* by tool."""
    found: list[MessagePart] = []
    texts: dict[str, str] = {}
    for part in parts:
        if isinstance(part, TextDelta | ReasoningDelta):
            texts[part.id] = texts.get(part.id, "") + part.text
        elif isinstance(part, TextEnd):
            found.append(TextPart(texts.get(part.id, ""), part.provider_data))
        elif isinstance(part, ReasoningEnd):
            text = texts.get(part.id, "")
            found.append(ReasoningPart(text, provider_data=part.provider_data))
        elif isinstance(part, ToolCall):
            output = part.output if part.provider_executed else (outputs or {}).get(part.tool)
            found.append(
                ToolCallPart(
                    part.call_id,
                    part.tool,
                    part.input,
                    "completed" if part.approval is None else None,
                    output,
                    provider_executed=part.provider_executed,
                    provider_data=part.provider_data,
                    approval=part.approval,
                )
            )
        elif isinstance(part, File):
            found.append(
                FilePart(part.media_type, data=part.data, provider_data=part.provider_data)
            )
    return assistant(*found)
