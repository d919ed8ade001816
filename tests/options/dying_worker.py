"""A worker to be killed: `python -m tests.options.dying_worker URL MARKS TOOL TOOL` hangs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from pai import (
    AgentDefinition,
    FirstStep,
    RunOptions,
    ToolContext,
    budget,
    create_pai,
    define_agent,
    tool,
)
from pai.testing import Call, ScriptedModel, Turn

__all__ = ("OPTIONS", "agent")

OPTIONS = RunOptions(
    tool_choice=FirstStep("required", then="auto"),
    tool_execution="sequential",
    stop_when=budget(tool_calls=4),
    repair_tool_input=False,
    prompt_cache="long",
    state={"page": 7},
    parent_run_id="p",
)


def agent(
    marks: Path, script: list[Turn], *, hangs: bool = False, **fields: Any
) -> AgentDefinition[Any]:
    """
    An agent whose tools leave a mark each time they run.

    Args:
        marks: The file of the marks.
        script: What its model says.
        hangs: `hang` never comes to an end.
        fields: Further fields of the agent.
    """

    def mark(text: str) -> str:
        with marks.open("a") as file:
            file.write(f"{text}\n")
        return text

    @tool
    async def hang(ctx: ToolContext[Any]) -> str:
        """Work that must not be done twice."""
        mark("hang")
        if hangs:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            await anyio.sleep_forever()
        return "hang"

    @tool
    async def later(ctx: ToolContext[Any], n: int = 0) -> str:
        """Work that waits for its turn, and must not be done twice either."""
        return mark(f"later {n}")

    @tool(lazy=True)
    async def ship(ctx: ToolContext[Any]) -> str:
        """Ship."""
        return mark("ship")

    return define_agent(
        name="a",
        model=ScriptedModel(script),
        tools={"hang": hang, "later": later, "ship": ship},
        **fields,
    )


async def main(url: str, marks: Path, *tools: str) -> None:
    script: list[Turn] = [
        [Call("__lazy__tool__discovery__", {"toolNames": ["ship"]})],
        [Call(name, {}, name) for name in tools],
    ]
    async with create_pai(
        agents={"a": agent(marks, script, hangs=True)}, store=url, lease=0.5
    ) as app:
        run = await app.thread("a", thread_id="t").send("go", run_id="r", options=OPTIONS)
        await run.result()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]), *sys.argv[3:])
