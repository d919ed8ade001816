"""A-LIFE-4: what hooks can reach, and what stays the runtime's."""

from __future__ import annotations

from typing import Any

import pytest

from pai import ToolContext, create_pai, define_agent, hookimpl, tool
from pai.lifecycle import HOOK_NAMES
from pai.testing import Call, ScriptedModel


@tool(inline=True)
def echo(ctx: ToolContext[object], text: str) -> str:
    """Say it again."""
    return text


MINE = {
    "queue",
    "enqueue",
    "claim",
    "lease",
    "fence",
    "renew",
    "release",
    "wake",
    "cancel",
    "commit",
    "store",
}
"""Words of the runtime's own work."""


class Look:
    """Collects the public names of everything a hook is handed."""

    def __init__(self) -> None:
        self.seen: dict[str, set[str]] = {}

    def _look(self, value: object) -> None:
        self.seen[type(value).__name__] = {n for n in dir(value) if not n.startswith("_")}

    @hookimpl
    def prepare_run(self, run: Any) -> None:
        self._look(run)
        self._look(run.thread)
        self._look(run.signal)

    @hookimpl
    def prepare_model_step(self, step: Any) -> None:
        self._look(step)
        self._look(step.request)

    @hookimpl
    def before_tool_call(self, call: Any) -> None:
        self._look(call)

    @hookimpl
    def after_tool_result(self, result: Any) -> None:
        self._look(result)

    @hookimpl
    def run_settled(self, run: Any, result: Any) -> None:
        self._look(result)


@pytest.mark.anyio
async def test_no_hook_is_handed_the_queue_the_lease_or_the_store() -> None:
    look = Look()
    agent = define_agent(
        name="a",
        model=ScriptedModel([[Call("echo", {"text": "x"})], "done"]),
        tools={"echo": echo},
        lifecycle=look,
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        await (await app.thread("main").send("go")).result()
    assert {"RunContext", "StepContext", "ToolCallContext", "ToolResultContext"} <= set(look.seen)
    for kind, names in look.seen.items():
        assert not names & MINE, kind


def test_no_hook_is_named_after_the_runtimes_work() -> None:
    assert not {word for name in HOOK_NAMES for word in name.split("_")} & MINE
