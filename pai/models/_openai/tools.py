"""Tools as the wire wants them, encoded once for each tuple of them."""

from __future__ import annotations

from collections.abc import Callable

from pai.models._openai.encode import dump
from pai.models._openai.settings import own_tools
from pai.ports import ModelRequest
from pai.protocol import ProviderTool, ToolSpec
from pai.schema import JsonObject

__all__ = ("EncodedTools", "chat_tool", "responses_tool")

_KEPT = 8


def chat_tool(tool: ToolSpec) -> JsonObject:
    function: JsonObject = {"name": tool.name, "description": tool.description}
    if tool.strict_schema is not None:
        function |= {"parameters": tool.strict_schema, "strict": True}
    else:
        function["parameters"] = tool.input_schema
    return {"type": "function", "function": function}


def responses_tool(tool: ToolSpec) -> JsonObject:
    strict = tool.strict_schema
    # Here strict is what an absent field means, so it is always said.
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema if strict is None else strict,
        "strict": strict is not None,
    }


class EncodedTools:
    """
    The inside of the ``tools`` array, kept for the last few tuples by their identity.

    A provider's own tools follow, word for word (A-TOOL-7).
    """

    __slots__ = ("_form", "_kept")

    def __init__(self, form: Callable[[ToolSpec], JsonObject]) -> None:
        self._form = form
        self._kept: dict[
            tuple[int, int], tuple[tuple[ToolSpec, ...], tuple[ProviderTool, ...], bytes]
        ] = {}

    def __call__(self, request: ModelRequest) -> bytes:
        tools, hosted = request.tools, request.provider_tools
        if not tools and not hosted:
            return b""
        key = (id(tools), id(hosted))
        kept = self._kept.get(key)
        # The entry holds both tuples, so that no other one can have their ids.
        if kept is not None:
            return kept[2]
        items = [dump(self._form(tool)) for tool in tools]
        items += [dump({"type": tool.name, **tool.options}) for tool in own_tools(hosted)]
        encoded = b",".join(items)
        while len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = (tools, hosted, encoded)
        return encoded
