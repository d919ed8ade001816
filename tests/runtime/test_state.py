"""`thread.state()` in the middle of a step: nothing of what was shown is missing (R-25)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import Event, TextPart, ToolContext, create_pai, define_agent, tool
from pai.protocol import fold
from pai.testing import Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


@pytest.mark.parametrize("length", [3, 70, 500])
async def test_a_long_step_shows_whole(store: str, length: int) -> None:
    text = "".join(chr(97 + at % 26) for at in range(length))
    agent = define_agent(name="a", model=ScriptedModel([[text, Hang()]], chunk=1))
    events: list[Event] = []
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}, store=store) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go")
            async for event in run.events():
                events.append(event)
                if event.type == "text-end":
                    break
            # Another message comes in between, and its run waits.
            other = await thread.send("wait")
            state = await thread.state()
            assert [message.role for message in state.messages] == ["user", "user", "assistant"]
            assert state.messages[-1].parts == (TextPart(text),)
            # The deltas of a text are one.
            assert len(state.open_step) == 4
            await run.cancel("enough")
            await other.cancel("enough")
            await run.result()
            await other.result()
            end = await thread.state()
            rest = []
            async for event in thread.events(after=state.cursor):
                rest.append(event)
                if event.seq == end.cursor:
                    break
    assert fold(state, rest) == end
    assert not end.open_step


async def test_data_of_a_tool_at_work_shows(store: str) -> None:
    seen: list[Any] = []

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work."""
        ctx.write_data("note", "half way")
        with anyio.fail_after(10):
            while not seen:
                state = await app.thread("a", thread_id="t").state()
                seen.extend(part for part in state.messages[-1].parts if part.type == "data-note")
                await anyio.lowlevel.checkpoint()
        return "done"

    agent = define_agent(
        name="a",
        model=ScriptedModel([Call("work"), "done"]),
        tools={"work": work},
        ui_data={"note": str},
    )
    async with create_pai(agents={"a": agent}, store=store) as app:
        run = await app.thread("a", thread_id="t").send("go")
        assert (await run.result()).text == "done"
        state = await app.thread("a", thread_id="t").state()
    assert [part.value for part in seen] == ["half way"]
    assert [part.type for part in state.messages[1].parts] == ["tool-call", "data-note"]
