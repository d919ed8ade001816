"""A process that works on runs until it is killed; started by the tests."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import anyio
from pai_procrastinate import ProcrastinateEngine

from pai import ToolContext, create_pai, define_agent, tool
from pai.testing import Call, ScriptedModel


def agent(log: Path) -> Any:
    @tool(idempotent=True)
    def work(ctx: ToolContext[Any]) -> str:
        """Write down who works on what."""
        with log.open("a") as file:
            file.write(f"begin {os.getpid()} {ctx.run_id} {ctx.thread_id}\n")
        while (log.parent / "hold").exists():
            time.sleep(0.01)
        with log.open("a") as file:
            file.write(f"end {os.getpid()} {ctx.run_id} {ctx.thread_id}\n")
        return "done"

    def answer(request: Any) -> Any:
        if request.messages[-1].role == "user":
            return [Call("work", {})]
        return "Worked."

    return define_agent(name="a", model=ScriptedModel(answer), tools={"work": work})


async def main(url: str, log: str, lease: str) -> None:
    engine = ProcrastinateEngine(poll=0.2)
    app = create_pai(agents={"a": agent(Path(log))}, store=url, engine=engine, lease=float(lease))
    async with app:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, *sys.argv[1:4])
