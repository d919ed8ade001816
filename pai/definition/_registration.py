"""What an agent registers by name: tools, provider tools, commands, data parts."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from pai.definition._checks import compiled, entries, text_faults
from pai.definition._commands import CommandDefinition
from pai.definition._loop_options import DISCOVERY_TOOL
from pai.definition._names import name_faults, tool_name_faults
from pai.definition._tools import AgentToolConfig, ToolDefinition
from pai.errors import Fault
from pai.protocol import ProviderTool
from pai.schema import Schema, check_json

__all__ = ("registered_commands", "registered_data", "registered_hosted", "registered_tools")


def registered_tools(
    given: object, runtime_context: Callable[..., object] | None, faults: list[Fault]
) -> dict[str, AgentToolConfig[Any]]:
    """The tools, each with a config; what is wrong with them is added to *faults*."""
    found: dict[str, AgentToolConfig[Any]] = {}
    for key, item in entries(given, "tools", faults):
        at = f"tools.{key}"
        faults += tool_name_faults(key, at)
        if key == DISCOVERY_TOOL:
            faults.append(Fault(at, "is the tool that discovers lazy ones: take another name"))
        config = AgentToolConfig[Any](item) if isinstance(item, ToolDefinition) else item
        if not isinstance(config, AgentToolConfig):
            faults.append(_no_tool(config, at))
            continue
        faults += config.faults(at)
        # A config is taken at its word by type checkers only.
        tool: object = config.tool
        if not isinstance(tool, ToolDefinition):
            faults.append(_no_tool(tool, f"{at}.tool"))
            continue
        if config.map_context is None:
            faults += _context_faults(tool, runtime_context, f"{at}.map_context")
        found[key] = config
    return found


def _no_tool(given: object, at: str) -> Fault:
    hint = ": decorate it with @tool" if inspect.isroutine(given) else ""
    return Fault(at, f"expected what @tool or define_tool() made, got {type(given).__name__}{hint}")


def _context_faults(
    tool: ToolDefinition[Any], runtime_context: Callable[..., object] | None, at: str
) -> list[Fault]:
    """The tool's context class must be the agent's, as far as types are known (A-TOOL-4)."""
    wanted = tool.context
    if wanted is None:
        return []
    if runtime_context is None:
        return [Fault(at, f"the tool wants a {wanted.__name__}, and the agent has no"
                      " runtime_context")]  # fmt: skip
    made = _made(runtime_context)
    try:
        if made is None or issubclass(made, wanted):
            return []
    except TypeError:
        # A protocol with attributes knows its instances, not its classes.
        return []
    return [Fault(at, f"the tool wants a {wanted.__name__}, and runtime_context gives a"
                  f" {made.__name__}")]  # fmt: skip


def _made(fn: Callable[..., object]) -> type | None:
    """The class of what *fn* says it returns, where it says so."""
    if isinstance(fn, type):
        return fn
    try:
        hint = get_type_hints(fn).get("return")
    except Exception:
        # A name that only type checkers know, say: then it is found out at the first step.
        return None
    # Any and object say that nothing is known.
    return hint if isinstance(hint, type) and hint not in (Any, object) else None


def registered_hosted(
    given: object, tools: dict[str, AgentToolConfig[Any]], faults: list[Fault]
) -> dict[str, ProviderTool]:
    """The tools that the provider runs (A-TOOL-7)."""
    found: dict[str, ProviderTool] = {}
    for key, item in entries(given, "provider_tools", faults):
        at = f"provider_tools.{key}"
        faults += text_faults(key, at, "expected the name that the provider documents")
        if key in tools:
            faults.append(Fault(at, "a tool has this name already"))
        if not isinstance(item, ProviderTool):
            faults.append(Fault(at, f"expected a ProviderTool, got {type(item).__name__}"))
            continue
        for field in ("provider", "name"):
            faults += text_faults(getattr(item, field), f"{at}.{field}", "expected its name")
        faults += check_json(item.options, at=f"{at}.options")
        found[key] = item
    return found


def registered_commands(
    given: object, run_metadata: object, faults: list[Fault]
) -> dict[str, CommandDefinition[Any]]:
    """The commands; those that touch run metadata have the agent's own schemas (A-META-8)."""
    found: dict[str, CommandDefinition[Any]] = {}
    for key, item in entries(given, "commands", faults):
        at = f"commands.{key}"
        faults += name_faults(key, at)
        if not isinstance(item, CommandDefinition):
            faults.append(
                Fault(at, f"expected what define_command() made, got {type(item).__name__}")
            )
            continue
        if item.run_metadata is not None and item.run_metadata is not run_metadata:
            faults.append(
                Fault(f"{at}.run_metadata", "is another object than the agent's:"
                      " give both the same MetadataSchemas (A-META-8)")
            )  # fmt: skip
        found[key] = item
    return found


def registered_data(given: object, faults: list[Fault]) -> dict[str, Schema[object]]:
    """The schemas of data parts (A-UI-1)."""
    found: dict[str, Schema[object]] = {}
    for key, tp in entries(given, "ui_data", faults):
        at = f"ui_data.{key}"
        faults += name_faults(key, at)
        if tp is None:
            faults.append(Fault(at, "expected the type of its value"))
        schema = compiled(tp, at, faults)
        if schema is not None:
            found[key] = schema
    return found
