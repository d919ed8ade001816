"""
Run cases of one adapter in this process: ``python -m bench.worker URL ADAPTER CASE...``.

Prints one JSON object a case: ``{"adapter", "case", "result"}``.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable

from .base import QUESTION, Base, Run

SECONDS = float(os.environ.get("BENCH_SECS", "1.5"))
IMPORTS = 7
"""How many interpreters measure an import; the best of them counts."""

TURN = 1000
"""Of which turn of a thread *grown* tells: the median is that of the nine around it."""

Result = dict[str, float]
clock = time.perf_counter


def cpu(who: int = resource.RUSAGE_SELF) -> float:
    """Return the seconds of CPU, user and system, used so far."""
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


async def once(run: Run, thread: str | None = None) -> int:
    """Run to the end and return how many deltas came."""
    deltas = 0
    async for _ in run(QUESTION, thread):
        deltas += 1
    if not deltas:
        raise RuntimeError("no text came")
    return deltas


async def rate(run: Run, seconds: float, width: int = 1) -> Result:
    """Measure CPU a run, for so many loops at once."""
    for _ in range(3):
        await once(run)
    await asyncio.gather(*(once(run) for _ in range(width)))
    gc.collect()
    done = 0
    started, used = clock(), cpu()

    async def loop() -> None:
        nonlocal done
        while clock() - started < seconds:
            await once(run)
            done += 1

    await asyncio.gather(*(loop() for _ in range(width)))
    return {"cpu_ms": (cpu() - used) / done * 1e3, "runs_per_s": done / (clock() - started)}


async def seq(adapter: Base) -> Result:
    """One run after the other: two model calls with a tool call between."""
    return await rate(await adapter.agent("fake-20"), SECONDS)


async def conc(adapter: Base) -> Result:
    """64 runs at once, each with 20 ms of latency a model call."""
    return await rate(await adapter.agent("fake-20-lat20"), SECONDS * 1.5, width=64)


async def burst(adapter: Base) -> Result:
    """CPU a chunk when 5,000 come at once."""
    run = await adapter.agent("fake-5000-text", tools=False)
    await once(run)
    used = cpu()
    deltas = await once(run)
    return {"cpu_us": (cpu() - used) / 5000 * 1e6, "deltas": deltas}


async def paced(adapter: Base) -> Result:
    """CPU a chunk when each comes alone, 1 ms after the last, as from a real model."""
    await once(await adapter.agent("fake-20-text", tools=False))
    run = await adapter.agent("fake-1000-text-gap1", tools=False)
    used = cpu()
    await once(run)
    return {"cpu_us": (cpu() - used) / 1000 * 1e6}


async def ttft(adapter: Base) -> Result:
    """Wall time from the question to the first text."""
    run = await adapter.agent("fake-3-text-gap10", tools=False)
    times = []
    for _ in range(35):
        asked, first = clock(), None
        async for _ in run("hi"):
            first = first or clock()
        assert first is not None
        times.append(first - asked)
    return {"wall_ms": statistics.median(times[5:]) * 1e3}


async def grown(adapter: Base) -> Result:
    """CPU of turn 1,000 of one thread, whose history is read, mended, encoded and sent."""
    run = await adapter.agent("fake-20-text", tools=False)
    await adapter.grow(run, "grown", TURN - 5)
    gc.collect()
    costs = []
    for _ in range(9):
        used = cpu()
        await once(run, "grown")
        costs.append(cpu() - used)
    return {"cpu_ms": statistics.median(costs) * 1e3}


def measure_import(statement: str) -> Result:
    """CPU and modules of an import, over a bare interpreter."""
    code = f"import sys\n{statement}\nprint(len(sys.modules))"

    def best(source: str) -> tuple[float, int]:
        costs = []
        modules = 0
        for _ in range(IMPORTS):
            used = cpu(resource.RUSAGE_CHILDREN)
            done = subprocess.run(
                [sys.executable, "-c", source], capture_output=True, text=True, check=True
            )
            costs.append(cpu(resource.RUSAGE_CHILDREN) - used)
            modules = int(done.stdout)
        return min(costs), modules

    bare_cost, bare_modules = best("import sys\nprint(len(sys.modules))")
    cost, modules = best(code)
    return {"cpu_ms": (cost - bare_cost) * 1e3, "modules": modules - bare_modules}


async def imports(adapter: Base) -> Result:
    """CPU of what a user imports."""
    return measure_import(adapter.imports)


async def smoke(adapter: Base) -> Result:
    """Check what an adapter says, and measure nothing."""
    expected = "alpha beta gamma delta omega " * 4

    async def check(run: Run, thread: str | None = None) -> None:
        text = "".join([delta async for delta in run(QUESTION, thread)])
        if text != expected:
            raise RuntimeError(f"expected {expected!r}, got {text!r}")

    await check(await adapter.agent("fake-20"))
    plain = await adapter.agent("fake-20-text", tools=False)
    await check(plain)
    for _ in range(3):
        await check(plain, "thread")
    await adapter.grow(plain, "grown", 3)
    # Lists are made long at once, and are to be what the turns would have made.
    lists = getattr(adapter, "threads", {})
    if lists.get("grown") != lists.get("thread"):
        raise RuntimeError(f"expected {lists['thread']}, got {lists['grown']}")
    await check(plain, "grown")
    for kind in adapter.hook_kinds:
        await check(await adapter.agent("fake-20", hooks=(kind, 3)))
    return {"hook_kinds": len(adapter.hook_kinds)}


CASES: dict[str, Callable[[Base], Awaitable[Result]]] = {
    case.__name__: case for case in (seq, conc, burst, paced, ttft, imports, grown, smoke)
}


async def work(url: str, name: str, cases: list[str]) -> None:
    """Run the cases in order, each with conversations of its own."""
    adapter: Base = importlib.import_module(f".{name}", __package__).Adapter(url)
    for case in cases:
        result = await CASES[case](adapter)
        adapter.drop()
        gc.collect()
        print(json.dumps({"adapter": name, "case": case, "result": result}), flush=True)


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1], sys.argv[2], sys.argv[3:]))
    # Nothing here is worth an orderly end, and a runtime left open would wait for one.
    os._exit(0)
