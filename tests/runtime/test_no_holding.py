"""Nothing of the store is held while the application's code runs (R-9)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import (
    RunContext,
    StepContext,
    StreamPart,
    ToolContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.protocol import ToolInputStart
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio
MANY = 24
"""More than a store has connections."""


class Crowd:
    """Waits until all are there, at each place where the application's code runs."""

    def __init__(self) -> None:
        self.there: dict[str, int] = {}
        self.full: dict[str, anyio.Event] = {}

    async def gather(self, place: str) -> None:
        event = self.full.setdefault(place, anyio.Event())
        self.there[place] = self.there.get(place, 0) + 1
        if self.there[place] == MANY:
            event.set()
        await event.wait()

    @hookimpl
    async def prepare_run(self, run: RunContext[None]) -> None:
        await self.gather("hook")

    @hookimpl
    async def transform_step_stream(
        self, step: StepContext[None], stream: AsyncIterator[StreamPart]
    ) -> AsyncIterator[StreamPart]:
        async for part in stream:
            if step.index == 0 and isinstance(part, ToolInputStart):
                await self.gather("model")
            yield part


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_no_connection_is_held(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """R-9: so many runs wait in a hook, in a stream and in a tool at once, and all go on."""
    store = f"sqlite:///{tmp_path / 'pai.db'}"
    if kind == "postgresql":
        store = request.getfixturevalue("postgres")
    crowd = Crowd()

    @tool
    async def wait(ctx: ToolContext[None]) -> str:
        """Wait."""
        await crowd.gather("tool")
        return "ok"

    calls: list[Any] = [["x", Call("wait", {})] for _ in range(MANY)]
    model = ScriptedModel([*calls, *["Done."] * MANY])
    agent = define_agent(name="a", model=model, tools={"wait": wait}, lifecycle=crowd)
    with anyio.fail_after(50):
        async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
            runs = [await app.thread("main").send("go") for _ in range(MANY)]
            for run in runs:
                assert (await run.result()).status == "completed"
    assert crowd.there == {"hook": MANY, "model": MANY, "tool": MANY}
