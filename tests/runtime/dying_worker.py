"""A worker to be killed: `python -m tests.runtime.dying_worker URL MARKS` says `ready` and hangs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from pai import AgentDefinition, ToolContext, create_pai, define_agent, tool
from pai.testing import Call, Hang, ScriptedModel, Turn

CALLS = [Call("quick", {}, "q"), Call("once", {}, "o"), Call("again", {}, "a")]


def agent(marks: Path, script: list[Turn], *, dies: bool) -> AgentDefinition[Any]:
    """
    An agent whose tools leave a mark each time they run.

    Args:
        marks: The file of the marks.
        script: What its model says.
        dies: `once` and `again` never come to an end.
    """

    def mark(ctx: ToolContext[Any]) -> str:
        with marks.open("a") as file:
            file.write(f"{ctx.idempotency_key.partition(':')[2]}\n")
        return ctx.idempotency_key

    @tool
    async def quick(ctx: ToolContext[Any]) -> str:
        """End at once."""
        return mark(ctx)

    @tool
    async def once(ctx: ToolContext[Any]) -> str:
        """Work that must not be done twice."""
        ctx.write_data("note", "seen", id="once")
        mark(ctx)
        if dies:
            await anyio.sleep_forever()
        return "once more"

    @tool(idempotent=True)
    async def again(ctx: ToolContext[Any]) -> str:
        """Work that may be done twice."""
        key = mark(ctx)
        if dies:
            await anyio.sleep_forever()
        return key

    return define_agent(
        name="a",
        model=ScriptedModel(script, chunk=2),
        tools={"quick": quick, "once": once, "again": again},
        ui_data={"note": str},
    )


async def main(url: str, marks: Path, script: list[Turn]) -> None:
    async with create_pai(
        agents={"a": agent(marks, script, dies=True)}, store=url, lease=0.5
    ) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("go", run_id="r")
        seen: set[str] = set()
        async for event in run.events():
            seen.add(event.type)
            hangs = event.type == "text-delta" and event.text == "ng"
            if ("tool-output" in seen and "data" in seen) or hangs:
                sys.stdout.write("ready\n")
                sys.stdout.flush()


if __name__ == "__main__":
    SCRIPTS: dict[str, list[Turn]] = {
        "calls": [["I call", *CALLS]],
        "text": [["one", CALLS[0]], ["hanging", Hang()]],
    }
    anyio.run(main, sys.argv[1], Path(sys.argv[2]), SCRIPTS[sys.argv[3]])
