"""Lazy tools: offered once the model has asked for them by name (O-6)."""

from __future__ import annotations

from collections.abc import Iterable, Set as AbstractSet
from typing import Any

from pai.definition import DISCOVERY_TOOL, LazyTools
from pai.loop._agent import BoundAgent
from pai.loop._episode import Episode
from pai.protocol import Message, ToolCallPart, ToolSpec
from pai.schema import JsonObject, JsonValue

__all__ = ("discover", "discovered", "undiscovered", "with_discovery")

_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "toolNames": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Names of the tools to discover.",
        }
    },
    "required": ["toolNames"],
    "additionalProperties": False,
}
_ABOUT = (
    "More tools can be used once they are discovered: call this with the names of those you need,"
    " and call them from your next step on. Tools to discover:"
)
_MOST_KEPT = 64


def discovered(episode: Episode) -> set[str]:
    """
    The lazy tools that the model knows: the thread's history says so, so a restart changes nothing.

    Each message is looked at once an episode.
    """
    messages = episode.messages
    looked, found = episode.discovered
    if looked > len(messages):
        looked, found = 0, set()
    for message in messages[looked:]:
        found.update(_found_in(message))
    episode.discovered = len(messages), found
    return found


def _found_in(message: Message) -> Iterable[str]:
    for part in message.parts:
        if type(part) is ToolCallPart and part.tool == DISCOVERY_TOOL:
            output: Any = part.output
            if part.outcome == "completed" and isinstance(output, dict):
                yield from [tool["name"] for tool in output["tools"]]


def undiscovered(episode: Episode, names: Iterable[str]) -> frozenset[str]:
    """Those of the tools that are lazy and not discovered."""
    return frozenset(episode.agent.lazy.intersection(names)) - discovered(episode)


def with_discovery(
    agent: BoundAgent, names: frozenset[str], hidden: frozenset[str], how: LazyTools
) -> tuple[ToolSpec, ...]:
    """
    The specs of tools, and of the one that discovers what is hidden.

    Args:
        agent: The agent.
        names: The tools that are offered.
        hidden: Tools that can be discovered.
        how: How those are told of.
    """
    specs = agent.specs(names)
    if not hidden:
        return specs
    key = (names, hidden, how.describe)
    kept = agent.lazy_specs.get(key)
    if kept is None:
        if len(agent.lazy_specs) >= _MOST_KEPT:
            agent.lazy_specs.clear()
        kept = agent.lazy_specs[key] = (*specs, _spec(agent, hidden, how))
    return kept


def _spec(agent: BoundAgent, hidden: frozenset[str], how: LazyTools) -> ToolSpec:
    from pai.schema import strict_form

    lines = [_line(spec, how.describe) for spec in agent.definition.specs if spec.name in hidden]
    return ToolSpec(DISCOVERY_TOOL, "\n".join([_ABOUT, *lines]), _SCHEMA, strict_form(_SCHEMA))


def _line(spec: ToolSpec, describe: str) -> str:
    if describe == "none":
        return f"- {spec.name}"
    text = " ".join(spec.description.split())
    if describe == "first-sentence":
        first, stop, _ = text.partition(". ")
        text = first + stop.rstrip()
    return f"- {spec.name}: {text}"


def discover(
    agent: BoundAgent, available: AbstractSet[str], given: JsonValue
) -> tuple[JsonObject | None, str | None]:
    """
    What a call of the discovery tool gives: its output, or what the model is told is wrong.

    Args:
        agent: The agent.
        available: Lazy tools that are on, discovered or not: asking again is fine.
        given: The input of the call.
    """
    names = given.get("toolNames") if isinstance(given, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return None, 'Give the names of tools: {"toolNames": ["..."]}.'
    specs = {spec.name: spec for spec in agent.definition.specs if spec.name in available}
    wanted = [str(name) for name in dict.fromkeys(names)]
    tools: list[JsonValue] = [
        {
            "name": name,
            "description": specs[name].description,
            "inputSchema": specs[name].input_schema,
        }
        for name in wanted
        if name in specs
    ]
    errors: list[JsonValue] = [
        f"There is no tool named {name!r} to discover." for name in wanted if name not in specs
    ]
    return {"tools": tools, **({"errors": errors} if errors else {})}, None
