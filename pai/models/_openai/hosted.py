"""Items of tools that the provider runs, as calls."""

from __future__ import annotations

from typing import Any

from pai.errors import InvalidInput
from pai.models._openai.writer import string
from pai.protocol import File
from pai.schema import JsonObject, JsonValue, parse_json

__all__ = ("asks", "describe", "is_hosted", "picture", "tool_of")

_OWN = frozenset({"message", "reasoning", "function_call", "custom_tool_call"})
_ASIDE = frozenset(
    {"id", "type", "status", "call_id", "name", "error", "output", "outputs", "results"}
)


def is_hosted(kind: object) -> bool:
    """Is an item of this type a record of something that the provider ran?"""
    return isinstance(kind, str) and kind not in _OWN


def tool_of(item: dict[str, Any]) -> str:
    """The tool's name: an MCP server's own, else the item's type without its ending."""
    kind = str(item.get("type"))
    name = string(item.get("name")) if kind in ("mcp_call", "mcp_approval_request") else None
    return name or kind.removesuffix("_call")


def asks(item: JsonObject) -> JsonObject | None:
    """What an item says that asks for leave to call a tool of an MCP server; ``None``: it asks not."""
    if item.get("type") != "mcp_approval_request":
        return None
    server = item.get("server_label")
    return {"server": server} if isinstance(server, str) else {}


def describe(item: JsonObject) -> tuple[JsonValue, JsonValue, str | None]:
    """
    Input, output and error of a call, wherever its type keeps them.

    Args:
        item: The whole item.
    """
    given: JsonValue
    action, arguments = item.get("action"), item.get("arguments")
    if isinstance(action, dict):
        given = action
    elif isinstance(arguments, str):
        try:
            given = parse_json(arguments)
        except InvalidInput:
            given = {"arguments": arguments}
    else:
        given = {name: value for name, value in item.items() if name not in _ASIDE}
    output = next(
        (item[name] for name in ("output", "outputs", "results") if item.get(name) is not None),
        None,
    )
    error = item.get("error")
    if isinstance(error, dict):
        error = error.get("message") or "failed"
    if error is None and item.get("status") == "failed":
        error = "failed"
    return given, output, str(error) if error else None


def picture(item: JsonObject, ours: JsonObject) -> tuple[File | None, JsonObject]:
    """The image that the item made, as a part, and the item without its content."""
    data = item.get("result")
    if item.get("type") != "image_generation_call" or not isinstance(data, str) or not data:
        return None, item
    form = string(item.get("output_format")) or "png"
    rest = {name: value for name, value in item.items() if name != "result"}
    return File(f"image/{form}", data=data, provider_data=ours), rest
