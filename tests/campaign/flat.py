"""
Memory over many runs in one process: ``python -m tests.campaign.flat [RUNS] [memory|sqlite]``.

Prints how many containers there are and what the process takes, ten times on the way. In memory a
thread is deleted when its run has ended; in SQLite all stay.
"""

from __future__ import annotations

import gc
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio

from pai import ToolContext, create_pai, define_agent, tool
from pai.testing import Call, ScriptedModel

__all__ = ("series",)

AT_ONCE = 8


def _turn(request: Any) -> Any:
    return "done" if request.messages[-1].role == "assistant" else ["I work", Call("work")]


@tool(inline=True)
def work(ctx: ToolContext[Any]) -> str:
    """Work."""
    return "done"


def resident() -> int:
    """KiB of the process, where the system tells."""
    path = Path("/proc/self/statm")
    return int(path.read_text().split()[1]) * 4 if path.exists() else 0


async def series(store: str, runs: int, looks: int = 10) -> list[tuple[int, int, int]]:
    """Runs so far, objects that the collector knows, KiB of the process: *looks* times."""
    model = ScriptedModel(_turn)
    agent = define_agent(name="a", model=model, tools={"work": work})
    found = []
    # Which logs are to be made short is remembered as long as they are long: that has its limit.
    app = create_pai(agents={"a": agent}, store=store, plugins=(), keep_deltas=None)
    async with app:

        async def some(count: int) -> None:
            for _ in range(count):
                thread = app.thread("a")
                run = await thread.send("go")
                assert [text async for text in run.text()]
                if store == "memory:":
                    await run.result()
                    await thread.delete()
                model.requests.clear()

        for look in range(looks):
            async with anyio.create_task_group() as group:
                for _ in range(AT_ONCE):
                    group.start_soon(some, runs // looks // AT_ONCE)
            await app._core.settled()
            gc.collect()
            found.append((runs // looks * (look + 1), len(gc.get_objects()), resident()))
    return found


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    for kind in sys.argv[2:] or ["memory", "sqlite"]:
        with tempfile.TemporaryDirectory() as folder:
            store = "memory:" if kind == "memory" else f"sqlite:///{Path(folder) / 'flat.db'}"
            print(f"| {kind}: runs | objects | KiB of the process |\n| --- | --- | --- |")
            for row in anyio.run(series, store, runs):
                print("| {:,} | {:,} | {:,} |".format(*row))


if __name__ == "__main__":
    main()
