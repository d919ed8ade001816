"""What the tests give to `pai worker`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
from pai_procrastinate import ProcrastinateEngine

from pai import Pai, ToolContext, create_pai, define_agent, tool
from pai.testing import Call, ScriptedModel


def agent(log: Path) -> Any:
    @tool(idempotent=True)
    async def work(ctx: ToolContext[Any]) -> str:
        """Write down who works on what."""
        with log.open("a") as file:
            file.write(f"begin {os.getpid()} {ctx.run_id} {ctx.thread_id}\n")
        if (log.parent / "hold").exists():
            await anyio.sleep_forever()
        with log.open("a") as file:
            file.write(f"end {os.getpid()} {ctx.run_id} {ctx.thread_id}\n")
        return "done"

    def answer(request: Any) -> Any:
        if request.messages[-1].role == "user":
            return [Call("work", {})]
        return "Worked."

    return define_agent(name="a", model=ScriptedModel(answer), tools={"work": work})


def make() -> Pai:
    url, log, lease = (os.environ[name] for name in ("TEST_URL", "TEST_LOG", "TEST_LEASE"))
    return create_pai(
        agents={"a": agent(Path(log))},
        store=url,
        engine=ProcrastinateEngine(poll=0.2),
        lease=float(lease),
    )
