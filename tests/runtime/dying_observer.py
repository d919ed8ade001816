"""A worker to be killed: `python -m tests.runtime.dying_observer URL MARKS` dies before it has told."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import anyio

from pai import RunContext, RunOutcome, create_pai, define_agent, hookimpl
from pai.testing import ScriptedModel


class Observer:
    """
    Leaves a mark for each end it is told of.

    Args:
        marks: The file of the marks.
        hangs: It comes to no end itself, after it has said `ready`.
    """

    def __init__(self, marks: Path, *, hangs: bool = False) -> None:
        self._marks = marks
        self._hangs = hangs

    @hookimpl
    async def run_settled(self, run: RunContext[Any], result: RunOutcome) -> None:
        if self._hangs:
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            await anyio.sleep_forever()
        texts = "/".join(message.text for message in run.messages)
        usage = result.usage.total_tokens
        with self._marks.open("a") as file:
            file.write(f"{run.id} {run.runtime_context} {texts} {result.status} {usage}\n")


def agent(marks: Path, *, hangs: bool = False) -> Any:
    """An agent with that observer."""
    return define_agent(
        name="a",
        model=ScriptedModel(["fine"]),
        runtime_context=lambda given: f"for-{given.identity}",
        lifecycle=Observer(marks, hangs=hangs),
    )


async def main(url: str, marks: Path) -> None:
    agents = {"a": agent(marks, hangs=True)}
    async with create_pai(agents=agents, store=url, lease=0.5) as app:
        await app.thread("a", identity="ada", thread_id="t").send("go", run_id="r")
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, sys.argv[1], Path(sys.argv[2]))
