"""
What of tools and instructions has changed since a thread's earlier model calls (O-10).

A driver with a channel for it can leave the head of a conversation as the provider has cached it,
and tell of a change at the place where it came. The whole lists are on the request in any case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs

from pai.loop._episode import Episode
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import Message, SystemMessage, ToolSpec
from pai.schema import JsonObject, canonical_json

__all__ = ("checked_changes", "hash_text", "offer", "tell_changes")

PLUGIN: Final = "pai"
"""Whose record it is; no plugin has the name of the core."""

KEY: Final = "mid-conversation"

_TOOL_HASHES: dict[int, tuple[ToolSpec, str]] = {}
_MOST_HASHES = 1024


def hash_text(text: str) -> str:
    """FNV-1a, 32 bits, of the text in UTF-8: eight hexadecimal digits, the same in any language."""
    value = 0x811C9DC5
    for byte in text.encode("utf-8", "surrogatepass"):
        value = ((value ^ byte) * 0x01000193) & 0xFFFFFFFF
    return f"{value:08x}"


def _of_instruction(message: SystemMessage) -> str:
    if not message.provider_options:
        return hash_text(message.content)
    options: JsonObject = {name: dict(own) for name, own in message.provider_options.items()}
    return hash_text(f"{message.content}\0{canonical_json(options).decode()}")


def _of_tool(tool: ToolSpec) -> str:
    known = _TOOL_HASHES.get(id(tool))
    if known is not None and known[0] is tool:
        return known[1]
    form: JsonObject = {"description": tool.description, "input": tool.input_schema}
    found = hash_text(f"{tool.name}\0{canonical_json(form).decode()}")
    if len(_TOOL_HASHES) >= _MOST_HASHES:
        _TOOL_HASHES.clear()
    _TOOL_HASHES[id(tool)] = (tool, found)
    return found


@attrs.frozen
class Offer:
    """What a call offers: hashes of tools by name, and of instructions in order."""

    model: str
    tools: Mapping[str, str]
    instructions: Sequence[str]

    def as_start(self) -> JsonObject:
        """The record of a conversation that begins with this."""
        start: JsonObject = {"tools": dict(self.tools), "instructions": list(self.instructions)}
        return {"model": self.model, "start": start, "changes": []}


def offer(request: ModelRequest, driver: ModelDriver) -> Offer:
    """What a request offers."""
    return Offer(
        f"{driver.provider}:{driver.name}",
        {tool.name: _of_tool(tool) for tool in request.tools},
        [_of_instruction(message) for message in request.instructions],
    )


def follow(
    record: Any, now: Offer, messages: Sequence[Message], channels: Sequence[str]
) -> JsonObject:
    """
    The record after a call that offers *now*; the same one if nothing has changed.

    What was only added is a change at this place. Everything else is a new beginning: something
    taken away or edited, a tool added where there was none, a change without a channel, a message
    that is gone.
    """
    if not isinstance(record, dict) or record["model"] != now.model:
        return now.as_start()
    ids = {message.id for message in messages}
    tools: dict[str, str] = dict(record["start"]["tools"])
    instructions: list[str] = list(record["start"]["instructions"])
    for change in record["changes"]:
        if change["after"] not in ids:
            return now.as_start()
        tools.update(change["tools"])
        instructions += change["instructions"]
    more_tools = {name: value for name, value in now.tools.items() if name not in tools}
    more_instructions = list(now.instructions[len(instructions) :])
    if not more_tools and not more_instructions:
        same = now.tools == tools and list(now.instructions) == instructions
        return record if same else now.as_start()
    if (
        any(now.tools.get(name) != value for name, value in tools.items())
        or list(now.instructions[: len(instructions)]) != instructions
        or (more_tools and (not tools or "tools" not in channels))
        or (more_instructions and "instructions" not in channels)
        or not messages
    ):
        return now.as_start()
    new: JsonObject = {
        "after": messages[-1].id,
        "tools": dict(more_tools),
        "instructions": list(more_instructions),
    }
    return {**record, "changes": [*record["changes"], new]}


def plan(record: Any, messages: Sequence[Message]) -> JsonObject:
    """
    The record as a driver reads it.

    ``start`` says which tools and how many instructions stand at the head; each of ``changes``, in
    order, which tools and which instructions (by their index) come before the message at its index.
    """
    places = {message.id: index + 1 for index, message in enumerate(messages)}
    count = len(record["start"]["instructions"])
    changes = []
    for change in record["changes"]:
        more = len(change["instructions"])
        changes.append(
            {
                "message": places[change["after"]],
                "tools": list(change["tools"]),
                "instructions": list(range(count, count + more)),
            }
        )
        count += more
    start = {
        "tools": list(record["start"]["tools"]),
        "instructions": len(record["start"]["instructions"]),
    }
    return {"start": start, "changes": changes}  # type: ignore[dict-item]  # it is JSON


async def tell_changes(
    episode: Episode, request: ModelRequest, driver: ModelDriver, channels: Sequence[str]
) -> JsonObject:
    """
    What a request changes, for a driver with channels for it.

    The record is a row of the thread, so another worker and the next run go on with it; it is
    written only when something has changed.
    """
    records = episode.journal.records_of(PLUGIN)
    if episode.offered is None:
        episode.offered = await records.get(KEY) or {}
    before = episode.offered
    record = follow(before or None, offer(request, driver), request.messages, channels)
    if record is not before:
        episode.offered = record
        await records.put(KEY, record)
    return plan(record, request.messages)


def checked_changes(request: ModelRequest, own: ModelRequest, driver: ModelDriver) -> ModelRequest:
    """
    The request as this driver may get it: what hooks made of it may be another conversation.

    Args:
        request: What the layers ask for.
        own: The step's request, which the changes were worked out for.
        driver: Who is asked.
    """
    if (
        driver.profile.mid_conversation
        and request.messages is own.messages
        and request.tools is own.tools
        and request.instructions is own.instructions
    ):
        return request
    return attrs.evolve(request, mid_conversation=None)
