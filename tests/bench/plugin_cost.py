"""
What plugins cost a run: ``python -m bench.plugin_cost URL``, with the fake server at URL.

Runs the two-step run in memory without plugins, with 20 that have seven hooks each and do nothing,
and with the first-party ones that are installed. They take turns round by round, and each figure is
the median of the ratios to the run without plugins of the same round.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

from pai import compose_lifecycle, create_pai, define_agent, hookimpl
from pai.models import OpenAIChat

from .base import KEY, SYSTEM
from .pai_ import add
from .worker import rate

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "9"))
SECONDS = float(os.environ.get("BENCH_SECS", "1.0"))
FACTORIES = {
    "pai_compaction": "compaction",
    "pai_fallback": "fallback",
    "pai_prompt_cache": "prompt_cache",
    "pai_rag": "rag",
    "pai_redaction": "redaction",
}


class Idle:
    """Seven hooks that have nothing to say; none of them stands in the stream."""

    @hookimpl
    async def prepare_run(self, run: Any) -> None:
        return None

    @hookimpl
    async def prepare_model_step(self, step: Any) -> None:
        return None

    @hookimpl
    def before_tool_call(self, call: Any) -> None:
        return None

    @hookimpl
    def after_tool_result(self, result: Any) -> None:
        return None

    @hookimpl
    def step_finished(self, step: Any) -> None:
        return None

    @hookimpl
    def tool_settled(self, result: Any) -> None:
        return None

    @hookimpl
    def run_settled(self, run: Any) -> None:
        return None


def first_party(url: str) -> list[object]:
    """Those that are installed, with what they need to have something to do."""
    found: list[object] = []
    for module, factory in FACTORIES.items():
        try:
            make = getattr(importlib.import_module(module), factory)
        except ImportError:
            continue
        target = OpenAIChat("fake-20", base_url=url, api_key=KEY)
        found.append(make(target) if factory == "fallback" else make())
    return found


async def main(url: str) -> None:
    cases: dict[str, list[object]] = {
        "none": [],
        "20 idle plugins of 7 hooks": [Idle() for _ in range(20)],
        "first-party": first_party(url),
    }
    async with AsyncExitStack() as stack:
        runs = {}
        for name, plugins in cases.items():
            agent = define_agent(
                name="bench",
                model=OpenAIChat("fake-20", base_url=url, api_key=KEY),
                instructions=SYSTEM,
                tools={"add": add},
                lifecycle=compose_lifecycle(*plugins) if plugins else None,
            )
            app = await stack.enter_async_context(create_pai(agents={"bench": agent}, plugins=()))

            async def run(
                text: str, thread: str | None = None, app: Any = app
            ) -> AsyncIterator[str]:
                handle = await app.thread("bench", thread_id=thread).send(text)
                async for delta in handle.text():
                    yield delta

            runs[name] = run
        ratios: dict[str, list[float]] = {name: [] for name in runs}
        for _ in range(ROUNDS):
            costs = {name: (await rate(run, SECONDS))["cpu_ms"] for name, run in runs.items()}
            for name, cost in costs.items():
                ratios[name].append(cost / costs["none"])
        print("| plugins | CPU of a run against none |\n| --- | --- |")
        for name, values in ratios.items():
            low, high = min(values), max(values)
            print(f"| {name} | {statistics.median(values):.3f} ({low:.2f} to {high:.2f}) |")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
