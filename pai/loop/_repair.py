"""Mending the input of a call that does not fit its tool's schema (O-14)."""

from __future__ import annotations

import inspect
from typing import Any

from pai.definition import NOT_REPAIRED, ToolDefinition, ToolRepair
from pai.errors import Fault, InvalidInput
from pai.loop._episode import Episode
from pai.protocol import ToolCall
from pai.schema import JsonValue, converted

__all__ = ("repaired_input",)


async def repaired_input(
    episode: Episode, call: ToolCall, tool: ToolDefinition[Any], faults: tuple[Fault, ...]
) -> tuple[object, JsonValue] | None:
    """
    The input as the tool takes it, and as it is stored; ``None``: it could not be mended.

    Args:
        episode: The run.
        call: What the model sent.
        tool: The tool.
        faults: What is wrong with the input: the model is told that, whatever is tried (O-14).
    """
    how = episode.loop.repair_tool_input
    schema = tool.input.json_schema
    value: Any
    if how is False:
        return None
    if how is True:
        value = converted(schema, call.input)
        if value is call.input:
            return None
    else:
        run = episode.context
        value = how(
            ToolRepair(
                run.runtime_context, run.identity, run.client_data, run.thread_id, run.signal,
                call.tool, call.call_id, call.input, schema, faults,
            )
        )  # fmt: skip
        if inspect.isawaitable(value):
            value = await value
        if value is NOT_REPAIRED:
            return None
    try:
        parsed = tool.input.parse(value, at="input")
        return parsed, value if how is True else tool.input.dump(parsed)
    except InvalidInput:
        return None
