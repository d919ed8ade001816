"""Options survive a killed worker, and a run that waits for an answer."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import (
    UNSET,
    Approve,
    RunContext,
    RunOptions,
    ToolCallPart,
    budget,
    create_pai,
    define_agent,
    hookimpl,
    step_limit,
    tool,
    until_finish_reason,
)
from pai.protocol import StateSnapshot
from pai.testing import Call, ScriptedModel

from ..processes import command
from .dying_worker import OPTIONS, agent

pytestmark = pytest.mark.anyio


class Watch:
    def __init__(self) -> None:
        self.options: list[Any] = []

    @hookimpl
    def run_started(self, run: RunContext[Any]) -> None:
        self.options.append(run.options)


async def killed(url: str, marks: Path, *tools: str) -> None:
    def play() -> None:
        with subprocess.Popen(
            command("tests.options.dying_worker", url, marks, *tools),
            stdout=subprocess.PIPE,
            text=True,
        ) as worker:
            assert worker.stdout is not None
            line = worker.stdout.readline()
            worker.send_signal(signal.SIGKILL)
            worker.wait(10)
        assert line == "ready\n"

    await anyio.to_thread.run_sync(play)


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_options_outlive_the_worker(tmp_path: Path) -> None:
    """R-6, O-2, O-6, O-14, O-21, O-22: whoever takes the run over has them, and not its own fields."""
    url, marks = f"sqlite:///{tmp_path / 'pai.db'}", tmp_path / "marks"
    await killed(url, marks, "hang", "later")
    watch = Watch()
    definition: Any = agent(
        marks, [[Call("later", {"n": "3"})], "not asked"], lifecycle=watch,
        tool_choice="none", stop_when=step_limit(1), max_steps=9,
    )  # fmt: skip
    async with create_pai(agents={"a": definition}, store=url) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.run("r")
        with anyio.fail_after(20):
            result = await run.result()
        state = await thread.state()
    # The second call had not begun: it is run once, though it must not be done twice.
    assert marks.read_text().split("\n") == ["hang", "later 0", ""]
    parts = [p for m in state.messages for p in m.parts if isinstance(p, ToolCallPart)]
    assert [part.outcome for part in parts] == ["completed", "interrupted", "completed", "failed"]
    # Input is not mended, and the fourth call uses up the budget.
    assert "expected integer" in str(parts[-1].error)
    assert (result.status, result.stop_reason) == ("completed", "tool_call_budget")
    assert state.runs[0].parent_run_id == "p"
    assert watch.options == [OPTIONS.to_json()]
    (request,) = definition.model.requests
    assert request.tool_choice == "auto"
    assert [spec.name for spec in request.tools] == ["hang", "later", "ship"]
    assert request.prompt_cache.retention == "long"


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_a_call_that_had_its_turn_is_not_made_again(tmp_path: Path) -> None:
    """R-12: that a call begins is written before it does, also if it had to wait for others."""
    url, marks = f"sqlite:///{tmp_path / 'pai.db'}", tmp_path / "marks"
    await killed(url, marks, "later", "hang")
    async with create_pai(agents={"a": agent(marks, ["done"])}, store=url) as app:
        run = await app.thread("a", thread_id="t").run("r")
        with anyio.fail_after(20):
            result = await run.result()
    assert result.text == "done"
    assert marks.read_text().split("\n") == ["later 0", "hang", ""]


@tool(needs_approval=True)
def pay(ctx: Any) -> str:
    """Pay."""
    return "paid"


@tool
def look(ctx: Any) -> str:
    """Look."""
    return "seen"


def paying(*script: Any, **fields: Any) -> Any:
    return define_agent(
        name="a", model=ScriptedModel(list(script)), tools={"pay": pay, "look": look}, **fields
    )


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("new", [None, RunOptions(max_steps=2, tool_choice="none")])
async def test_options_hold_after_an_answer(
    durable: bool, new: RunOptions | None, tmp_path: Path
) -> None:
    """O-16, O-21: what forces a call does so in the first step of a run, not after a resume."""
    url = f"sqlite:///{tmp_path / 'pai.db'}" if durable else "memory:"
    options = RunOptions(max_steps=3, tool_choice="required", state=1)
    first = paying([Call("pay", {}, "c")], *[[Call("look")]] * 5)
    second = paying(*[[Call("look")]] * 5)
    async with create_pai(agents={"a": first}, store=url) as app:
        run = await app.thread("a", thread_id="t").send("go", options=options, run_id="r")
        assert (await run.result()).status == "suspended"
        if not durable:
            await run.resume([Approve("c")], options=new)
            result = await run.result()
    if durable:
        async with create_pai(agents={"a": second}, store=url) as app:
            run = await app.thread("a", thread_id="t").run("r")
            await run.resume([Approve("c")], options=new)
            result = await run.result()
    made = [*first.model.requests, *second.model.requests]
    assert made[0].tool_choice == "required"
    later = [request.tool_choice for request in made[1:]]
    assert later == ([None] * 3 if new is None else ["none"] * 2)
    assert result.stop_reason == "max_steps"


@pytest.mark.parametrize(
    ("when", "steps", "reason"),
    [
        (budget(tool_calls=2), 2, "tool_call_budget"),
        (until_finish_reason("tool-calls"), 1, "finish_reason"),
        (step_limit(1), 3, None),
    ],
)
async def test_a_reason_to_stop_holds_behind_an_answer(
    when: Any, steps: int, reason: str | None
) -> None:
    """O-2: a budget is the run's, whatever had to be asked; a step limit is the episode's."""
    definition = paying(*[[Call("pay")]] * 3, stop_when=when)
    async with create_pai(agents={"a": definition}) as app:
        run = await app.thread("a").send("go")
        result = await run.result()
        for _ in range(2):
            if result.status == "suspended":
                await run.resume([Approve(result.pending[0].call_id)])
                result = await run.result()
    assert (result.stop_reason, len(definition.model.requests)) == (reason, steps)


@pytest.mark.parametrize("state", [UNSET, None, 0, {"page": [3]}])
@pytest.mark.parametrize("durable", [False, True])
async def test_state_is_told_when_the_run_suspends(
    state: Any, durable: bool, tmp_path: Path
) -> None:
    """O-19: None is a value, and nothing is nothing; after a restart too."""
    url = f"sqlite:///{tmp_path / 'pai.db'}" if durable else "memory:"
    async with create_pai(agents={"a": paying([Call("pay", {}, "c")])}, store=url) as app:
        run = await app.thread("a", thread_id="t").send("go", options=RunOptions(state=state))
        await run.result()
        events = [event async for event in run.events(after=0)]
    kinds = [event.type for event in events]
    told = [event.value for event in events if isinstance(event, StateSnapshot)]
    assert told == ([] if state is UNSET else [state])
    if told:
        assert kinds[-2:] == ["state-snapshot", "run-suspended"]
