"""Tools that a client brings along with one request (A-TOOL-8)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from pai.definition._checks import text_faults
from pai.definition._names import tool_name_faults
from pai.definition._tools import AgentToolConfig, ToolDefinition
from pai.errors import Fault, InvalidInput
from pai.schema import JsonObject, compile_client_schema

__all__ = ("ClientTool", "client_tools_from_json", "client_tools_to_json")


@attrs.frozen(eq=False)
class ClientTool:
    """
    A tool that the client runs, for the run of one request only.

    The run suspends when the model calls it, until the client gives its output: ``Provide``.

    Args:
        name: The name the model uses; none of the agent's own tools.
        description: What it is for, as the model is told.
        input_schema: JSON Schema of its input, an object.
    """

    name: str
    description: str
    input_schema: JsonObject


def client_tools_to_json(tools: Sequence[ClientTool], own: Collection[str]) -> list[JsonObject]:
    """
    The tools as they are stored with the run.

    Args:
        tools: What came with the request.
        own: Names of the agent's own tools.

    Raises:
        InvalidInput: With all that is wrong with them.
    """
    faults: list[Fault] = []
    stored: list[JsonObject] = []
    names: set[str] = set()
    given: Sequence[object] = tools
    for index, item in enumerate(given):
        at = f"client_tools[{index}]"
        if not isinstance(item, ClientTool):
            faults.append(Fault(at, f"expected a ClientTool, got {type(item).__name__}"))
            continue
        faults += tool_name_faults(item.name, f"{at}.name")
        faults += text_faults(item.description, f"{at}.description", "expected a text")
        if item.name in own or item.name in names:
            faults.append(Fault(f"{at}.name", f"there is a tool {item.name!r} already"))
        names.add(item.name)
        try:
            schema = compile_client_schema(item.input_schema)
        except InvalidInput as error:
            faults += [fault.under(f"{at}.input_schema") for fault in error.faults]
        else:
            if schema.json_schema.get("type") != "object":
                faults.append(Fault(f"{at}.input_schema", "a tool's input is an object"))
        stored.append(
            {"name": item.name, "description": item.description, "inputSchema": item.input_schema}
        )
    if faults:
        raise InvalidInput(faults, subject="client tools")
    return stored


def client_tools_from_json(stored: object) -> dict[str, AgentToolConfig[Any]]:
    """The tools that :func:`client_tools_to_json` stored, by name."""
    found: dict[str, AgentToolConfig[Any]] = {}
    for item in stored if isinstance(stored, list) else ():
        if isinstance(item, Mapping):
            found[item["name"]] = AgentToolConfig(
                ToolDefinition(
                    name=item["name"],
                    description=item["description"],
                    input=compile_client_schema(item["inputSchema"]),
                    output=None,
                    execute=None,
                    is_async=False,
                )
            )
    return found
