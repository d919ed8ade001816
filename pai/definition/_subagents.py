"""Agents as tools of another agent (O-20)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

import attrs

from pai.definition._checks import compiled, entries
from pai.definition._names import tool_name_faults
from pai.definition._tool_context import ToolContext
from pai.definition._tools import AgentToolConfig, ToolDefinition
from pai.errors import Fault
from pai.schema import Schema, compile_schema

__all__ = ("Subagent", "SubagentLimits", "SubagentTask", "registered_subagents")


class _Agent(Protocol):
    """What ``define_agent()`` returned; it knows this file, so this file can't know it."""

    @property
    def name(self) -> str: ...

    @property
    def lifecycle(self) -> object: ...


@attrs.frozen
class SubagentTask:
    """
    What a subagent is given where nothing else was declared.

    Args:
        task: The whole task; nothing of this conversation is known there.
    """

    task: str


@attrs.frozen
class SubagentLimits:
    """
    Limits on a subagent; beyond them a call fails, and the model reads why. ``None``: no limit.

    Args:
        depth: How deep it may stand below the agent at the top: 1 is right below.
        width: Its runs at once within one run; others wait for their turn.
        calls: Calls within one run.
        timeout: Seconds a call may take.
    """

    depth: int | None = None
    width: int | None = None
    calls: int | None = None
    timeout: float | None = None


@attrs.frozen(eq=False)
class Subagent:
    """
    An agent that another one may call as a tool.

    Its runs are rows of their own, on threads of their own, with ``parent_run_id``.

    Args:
        agent: The agent.
        description: What it is for, as the model is told.
        input: The class of its input; its text is the message that the agent gets.
        inherit: Names of the calling agent's plugins that stand around its runs, too.
        limits: See :class:`SubagentLimits`.
    """

    agent: _Agent
    description: str | None = None
    input: object = SubagentTask
    inherit: Sequence[str] = ()
    limits: SubagentLimits = SubagentLimits()
    schema: Schema[object] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        found = compiled(self.input, "input", [])
        object.__setattr__(self, "schema", found or compile_schema(SubagentTask))

    def faults(self, at: str) -> list[Fault]:
        """What is wrong with it."""
        found: list[Fault] = []
        if not hasattr(self.agent, "specs"):
            found.append(Fault(f"{at}.agent", "expected what define_agent() returned"))
        compiled(self.input, f"{at}.input", found)
        words: object = self.description
        if words is not None and not (isinstance(words, str) and words.strip()):
            found.append(Fault(f"{at}.description", "expected a text"))
        names: object = self.inherit
        if isinstance(names, str) or not (
            isinstance(names, Sequence) and all(isinstance(name, str) for name in names)
        ):
            found.append(Fault(f"{at}.inherit", "expected names of plugins"))
        limits: object = self.limits
        if not isinstance(limits, SubagentLimits):
            return [*found, Fault(f"{at}.limits", "expected SubagentLimits(...)")]
        for name in ("depth", "width", "calls"):
            value = getattr(limits, name)
            if value is not None and (type(value) is not int or value < 1):
                found.append(Fault(f"{at}.limits.{name}", "expected a whole number of at least 1"))
        seconds: object = limits.timeout
        if seconds is not None and not (
            type(seconds) in (int, float) and 0 < seconds < math.inf  # type: ignore[operator]  # a number
        ):
            found.append(Fault(f"{at}.limits.timeout", "expected seconds above 0"))
        return found

    def as_tool(self, name: str) -> ToolDefinition[Any]:
        """The tool by which it is called."""

        async def execute(ctx: ToolContext[Any], given: object) -> object:
            return await ctx.run_agent(name, given)

        return ToolDefinition(
            name=name,
            description=self.description or f"Hand a task to the agent {self.agent.name!r}.",
            input=self.schema,
            output=None,
            execute=execute,
            is_async=True,
            # The same call is the same run of the subagent, however often it is made.
            idempotent=True,
        )


def registered_subagents(
    given: object, tools: dict[str, AgentToolConfig[Any]], faults: list[Fault]
) -> dict[str, Subagent]:
    """The subagents by name; each is one of the *tools* from then on."""
    found: dict[str, Subagent] = {}
    for name, item in entries(given, "subagents", faults):
        at = f"subagents.{name}"
        wrong = tool_name_faults(name, at)
        if name in tools:
            wrong.append(Fault(at, "a tool has this name already"))
        if isinstance(item, Subagent):
            wrong += item.faults(at)
            if not wrong:
                found[name] = item
                tools[name] = AgentToolConfig(item.as_tool(name))
        else:
            wrong.append(Fault(at, f"expected Subagent(...), got {type(item).__name__}"))
        faults += wrong
    return found
