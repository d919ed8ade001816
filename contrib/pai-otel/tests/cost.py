"""
What the plugin costs: ``python contrib/pai-otel/tests/cost.py [RUNS]``.

CPU time of runs with one tool call (two model calls), in memory, with and without the plugin, and of
a chunk that passes through it. Rounds alternate, and the best of each counts.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from time import process_time
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from pai_otel import otel

from pai import compose_lifecycle, create_pai, define_agent, tool
from pai.testing import Call, ScriptedModel

ROUNDS = 7


@tool(inline=True)
def add(ctx: Any, a: int, b: int) -> int:
    """Add."""
    return a + b


def turns(text: str) -> Callable[[Any], Any]:
    """Play a tool call, then the text, in each run."""

    def turn(request: Any) -> Any:
        message = request.messages[-1]
        return Call("add", {"a": 2, "b": 3}) if message.role == "user" else text

    return turn


async def seconds(runs: int, text: str, *plugins: object) -> float:
    """CPU seconds of one run."""
    agent = define_agent(
        name="calc",
        model=ScriptedModel(turns(text), chunk=1),
        tools={"add": add},
        lifecycle=compose_lifecycle(*plugins) if plugins else None,
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        begun = process_time()
        for _ in range(runs):
            await (await app.thread("main").send("What is 2 + 3?")).result()
        return (process_time() - begun) / runs


async def main(runs: int) -> None:
    """Print the table."""
    tracers = TracerProvider(shutdown_on_exit=False)
    meters = MeterProvider(shutdown_on_exit=False)
    columns: dict[str, tuple[object, ...]] = {
        "none": (),
        "no SDK": (otel(),),
        "SDK": (otel(tracer_provider=tracers, meter_provider=meters),),
        "SDK, content": (otel(tracer_provider=tracers, meter_provider=meters, content=True),),
    }
    best: dict[tuple[str, int], float] = {}
    for _ in range(ROUNDS):
        for name, plugins in columns.items():
            for chunks in (1, 401):
                found = await seconds(runs, "5" * chunks, *plugins)
                key = name, chunks
                best[key] = min(found, best.get(key, found))
    out = [f"{'':14}{'µs a run':>10}{'more':>8}{'µs a chunk':>12}{'more':>8}\n"]
    bare, bare_chunk = 0.0, 0.0
    for name in columns:
        run = best[name, 1] * 1e6
        chunk = (best[name, 401] - best[name, 1]) * 1e6 / 400
        if name == "none":
            bare, bare_chunk = run, chunk
        out.append(f"{name:14}{run:10.0f}{run - bare:8.0f}{chunk:12.2f}{chunk - bare_chunk:8.2f}\n")
    sys.stdout.writelines(out)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
