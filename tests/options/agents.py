"""Agents whose model calls a tool again and again, for tests of what steers the loop."""

from __future__ import annotations

from typing import Any

from pai import AgentDefinition, define_agent, tool
from pai.testing import Call, ScriptedModel, Turn

__all__ = ("add", "endless", "look")


@tool
def add(ctx: Any, a: int = 1) -> int:
    """Add one."""
    return a + 1


@tool
def look(ctx: Any) -> str:
    """Look."""
    return "seen"


def endless(*turns: Turn, calls: int = 1, **fields: Any) -> AgentDefinition[Any]:
    """
    An agent that plays the turns, and then calls `add` in each step until it is asked without tools.

    Args:
        turns: What its model says first.
        calls: Calls of each further step.
        fields: Further fields of the agent.
    """
    left = list(turns)

    def turn(request: Any) -> Turn:
        if left:
            return left.pop(0)
        return [Call("add") for _ in range(calls)]

    fields.setdefault("tools", {"add": add, "look": look})
    return define_agent(name="a", model=ScriptedModel(turn), **fields)
