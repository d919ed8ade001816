"""Runs leave nothing behind in the process, whether they end or are cancelled."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
import pytest
import sniffio

from pai import ToolContext, create_pai, define_agent, tool
from pai.testing import Call, Hang, ScriptedModel

from .flat import series

pytestmark = pytest.mark.anyio
RUNS = 720
SPARE = 400
"""Objects that caches may still make once they are warm; one a run would be more."""


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


async def test_memory_is_flat_over_many_runs(store: str) -> None:
    found = await series(store, RUNS, looks=3)
    (_, warm, _), *_, (_, last, _) = found
    assert last - warm < SPARE, found


def tasks() -> int:
    if sniffio.current_async_library() == "trio":
        import trio

        return trio.lowlevel.current_statistics().tasks_living
    return len(asyncio.all_tasks())


def files() -> int:
    return len(list(Path("/proc/self/fd").iterdir())) if sys.platform == "linux" else 0


async def test_a_cancelled_run_leaves_no_task_thread_connection_or_lock(store: str) -> None:
    """R-17, R-28: whether the model hangs, or tools in the loop and in a thread do."""

    @tool
    async def waits(ctx: ToolContext[Any]) -> None:
        """Wait."""
        await anyio.sleep_forever()

    @tool
    def works(ctx: ToolContext[Any]) -> None:
        """Work in a thread until told to stop."""
        ctx.signal.wait(30)

    def turn(request: Any) -> Any:
        hangs = request.messages[-1].parts[0].text == "hang"
        return ["so", Hang()] if hangs else [Call("waits"), Call("works")]

    agent = define_agent(
        name="a", model=ScriptedModel(turn), tools={"waits": waits, "works": works}
    )
    async with create_pai(agents={"a": agent}, store=store, plugins=()) as app:

        async def cancelled(content: str, thread_id: str) -> None:
            run = await app.thread("a", thread_id=thread_id).send(content)
            async for event in run.events():
                if event.type in ("text-delta", "step-finished"):
                    await run.cancel("enough")
            assert (await run.result()).status == "cancelled"

        async def round_of_all(number: int) -> None:
            async with anyio.create_task_group() as group:
                for kind in ("hang", "call"):
                    for place in range(4):
                        group.start_soon(cancelled, kind, f"{kind}-{place}-{number}")
            await app._core.settled()
            gc.collect()

        # Idle threads of the pools stay for the next who wants one.
        await round_of_all(0)
        before = (tasks(), threading.active_count(), files())
        for number in range(1, 6):
            await round_of_all(number)
        core: Any = app._core
        assert not core._jobs
        assert not core._draining
        assert not core._wishes
        assert not core._hubs
        now = (tasks(), threading.active_count(), files())
        assert now[0] <= before[0]
        assert now[1] <= before[1] + 4
        # SQLite opens up to four readers as they are wanted, of three files each.
        assert now[2] <= before[2] + 12
