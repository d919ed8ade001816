"""
A worker that stops itself, in a run for each place: ``python -m tests.campaign.stopped URL BACKEND``.

When it is continued it goes on as if nothing had been, and says what was refused to it; then how the
run ended that was given back: two lines a run.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from pai import (
    AgentDefinition,
    MetadataPatch,
    MetadataSchemas,
    ToolContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.runtime import _engines
from pai.testing import Call, ScriptedModel

from .fail_points import Strike, open_struck, stop
from .workload import Bag

LEASE = 0.4
PLACES = [
    # Where it stops, and at which passing: streaming, at both ends of commits, with a plugin's row,
    # with its lease to renew, in a tool.
    ("append: before", 1),
    ("commit: before", 1),
    ("commit: before", 2),
    ("commit: after", 1),
    ("put: before", 2),
    ("renew: before", 1),
    ("tool", 1),
]
LOCKED = ("commit: statement 1", 2)
"""With a thread's row locked, which only a server can undo."""
SCHEMAS = MetadataSchemas(private=Bag, public=Bag)


class Writes:
    """Writes by every door that a plugin has, and slows the stream so that it is written in parts."""

    @hookimpl
    async def prepare_model_step(self, step: Any, records: Any) -> None:
        await records.put(f"step {step.index}", step.index)
        patch = MetadataPatch(public={"marks": {str(step.index): 1}})
        await step.run.update_metadata(run=patch, thread=patch)

    @hookimpl
    async def wrap_model_call(self, step: Any, call_model: Any) -> Any:
        async for part in call_model(step.request):
            yield part
            await anyio.sleep(0.01)


def turn(request: Any) -> Any:
    """The next turn, as the history tells it."""
    done = [message.role for message in request.messages].count("assistant")
    return (["I work", Call("work")], "done")[done]


async def nowhere() -> None:
    """The place of a worker that is not stopped."""


def agent(in_tool: Callable[[], Awaitable[None]] = nowhere) -> AgentDefinition[Any]:
    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work."""
        ctx.write_data("note", "begun")
        await in_tool()
        ctx.write_data("note", "done")
        return "done"

    return define_agent(
        name="a",
        model=ScriptedModel(turn, chunk=2),
        tools={"work": work},
        ui_data={"note": str},
        run_metadata=SCHEMAS,
        thread_metadata=SCHEMAS,
        lifecycle=Writes(),
    )


async def one(url: str, thread_id: str, place: str, passing: int) -> None:
    async def in_tool() -> None:
        await points.quiet()
        reached("tool")

    reached = Strike(place, passing, lambda _: stop())
    # SQLite has one lock for all: where it is held, nobody can overtake.
    store, points = open_struck(url, reached, alone=(place, passing) != LOCKED)
    async with create_pai(agents={"a": agent(in_tool)}, store=store, lease=LEASE) as app:
        run = await app.thread("a", thread_id=thread_id).send("go", run_id="r")
        await app._core.settled()
        say(" ".join(points.refused))
        say((await run.result()).status)


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


async def main(url: str) -> None:
    _engines.POLL = 0.02
    for number, (place, passing) in enumerate(places(url)):
        await one(url, f"t{number}", place, passing)


def places(url: str) -> list[tuple[str, int]]:
    if url.startswith("sqlite"):
        return PLACES
    from pai.stores._sql import postgresql

    postgresql.FROZEN = 0.5
    return [*PLACES, LOCKED]


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], backend=sys.argv[2])
