"""Agents that an agent hands work to: each is a tool of it (O-20)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import attrs

from pai.definition._checks import compiled, entries, seconds_faults, text_faults
from pai.definition._names import tool_name_faults
from pai.definition._tool_context import ToolContext
from pai.definition._tools import AgentToolConfig, ToolDefinition
from pai.errors import DefinitionError, Fault
from pai.schema import Schema, compile_schema

__all__ = (
    "DefinedAgent",
    "Subagent",
    "SubagentLimits",
    "SubagentTask",
    "registered_subagents",
    "task_of",
)


class DefinedAgent(Protocol):
    """What ``define_agent()`` returns, as far as another agent has to know."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...


@attrs.frozen
class SubagentTask:
    """What a subagent is asked, where it says nothing else."""

    prompt: str = attrs.field(metadata={"description": "What to do, with all it has to know."})


def _count(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not (type(value) is int and value >= 1):
        fault = Fault(attribute.name, "expected a whole number of at least 1")
        raise DefinitionError([fault], subject="SubagentLimits")


def _time(instance: object, attribute: attrs.Attribute[Any], value: object) -> None:
    if faults := seconds_faults(value, attribute.name):
        raise DefinitionError(faults, subject="SubagentLimits")


@attrs.frozen(kw_only=True)
class SubagentLimits:
    """
    How far an agent may hand on.

    A call beyond a limit fails, and the model is told; one beyond *width* waits.

    Args:
        depth: How deep subagents may stand within each other, counted from the top: 1 is a subagent
            of an agent that is none.
        width: Runs of this subagent at once, within one run of its parent.
        calls: Runs of this subagent within one run of its parent.
        timeout: Seconds that it may work, until it ends or waits for an answer.

    Raises:
        DefinitionError: A limit is none.
    """

    depth: int | None = attrs.field(default=4, validator=_count)
    width: int | None = attrs.field(default=None, validator=_count)
    calls: int | None = attrs.field(default=None, validator=_count)
    timeout: float | None = attrs.field(default=None, validator=_time)


@attrs.frozen(eq=False)
class Subagent:
    """
    An agent as a tool of another one.

    Its run is a run of its own, on a thread of its own, with the identity and the client data of its
    parent's. What it waits for, its parent waits for; the calls surface there and are answered there.

    Args:
        agent: The agent.
        description: What it is for, as the model is told.
        input: The class of the tool's input; the subagent gets it as JSON. Without one it is a
            ``prompt``, and the subagent gets that text.
        inherit: Names of plugins of its parent that stand around it, too; no other does.
        limits: How far it goes.
    """

    agent: DefinedAgent
    description: str
    input: Any = None
    inherit: tuple[str, ...] = ()
    limits: SubagentLimits = SubagentLimits()

    def tool(self, name: str, schema: Schema[object]) -> ToolDefinition[Any]:
        """The tool that runs it."""

        async def execute(ctx: ToolContext[Any], given: object) -> object:
            return await ctx.run_agent(name, given)

        return ToolDefinition(
            name=name,
            description=self.description,
            input=schema,
            output=None,
            execute=execute,
            is_async=True,
            # Its run has an id that follows from the call: it is found again, not made twice.
            idempotent=True,
        )


def registered_subagents(
    given: object, tools: Mapping[str, object], kind: type, faults: list[Fault]
) -> tuple[dict[str, Subagent], dict[str, AgentToolConfig[Any]]]:
    """
    The subagents and their tools, by name.

    Args:
        given: What the application gave.
        tools: The agent's other tools.
        kind: The class of a definition.
        faults: What is wrong is added.
    """
    found: dict[str, Subagent] = {}
    configs: dict[str, AgentToolConfig[Any]] = {}
    for name, item in entries(given, "subagents", faults):
        at = f"subagents.{name}"
        before = len(faults)
        faults += tool_name_faults(name, at)
        if name in tools:
            faults.append(Fault(at, "a tool has this name already"))
        if not isinstance(item, Subagent):
            faults.append(Fault(at, f"expected a Subagent, got {type(item).__name__}"))
            continue
        if not isinstance(item.agent, kind):
            faults.append(Fault(f"{at}.agent", "expected what define_agent() returned"))
        faults += text_faults(item.description, f"{at}.description", "a model needs to know it")
        schema = compiled(item.input or SubagentTask, f"{at}.input", faults)
        if schema is not None and schema.json_schema.get("type") != "object":
            faults.append(Fault(f"{at}.input", "a tool's input is an object: use a class"))
        if len(faults) == before and schema is not None:
            found[name] = item
            configs[name] = AgentToolConfig(item.tool(name, schema))
    return found, configs


def task_of(subagent: Subagent, given: object) -> str:
    """
    The message for a subagent.

    Raises:
        InvalidInput: The input is none of its.
    """
    from pai.schema import dump_json

    schema = compile_schema(subagent.input or SubagentTask)
    value = schema.dump(schema.parse(given, at="input"))
    if subagent.input is None and isinstance(value, dict):
        return str(value["prompt"])
    return dump_json(value)
