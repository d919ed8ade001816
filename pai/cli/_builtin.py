"""The agent that ``pai chat`` runs when none is named."""

from __future__ import annotations

from pai.definition import AgentDefinition, ModelSource, ToolContext, define_agent, tool

__all__ = ("builtin_agent",)


@tool(inline=True)
def add(ctx: ToolContext[object], a: int | float, b: int | float) -> int | float:
    """
    Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


def builtin_agent(model: ModelSource[None]) -> AgentDefinition[None]:
    """A small assistant with one tool, on *model*."""
    return define_agent(
        name="assistant",
        model=model,
        instructions="You are a helpful assistant. Add numbers with the tool.",
        tools={"add": add},
    )
