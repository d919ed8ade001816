"""A secret has no way around redaction: answers before the run, and events of plugins."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import (
    Message,
    ReasoningSummaryConfig,
    Respond,
    ThreadTitleConfig,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.testing import Reason, ScriptedModel

pai_redaction = pytest.importorskip("pai_redaction")

SECRET = "ada@example.org"
TOLD = "bob@example.org"


class Gate:
    """Answers before the run, and right of it nobody is asked for another answer."""

    @hookimpl
    def accept_message(self, message: Message) -> Respond:
        return Respond(f"Ask {TOLD}.", outcome="blocked", reason="gate")


class Teller:
    """Puts what it likes into the log."""

    @hookimpl
    def prepare_run(self, run: Any) -> None:
        run.emit("seen", {"by": [SECRET]})


@pytest.mark.anyio
async def test_an_answer_before_the_run_and_an_event_of_a_plugin(tmp_path: Path) -> None:
    """A-LIFE-6, R-31: a ``Respond`` further left switches nobody off."""
    path = tmp_path / "pai.db"
    agent = define_agent(name="a", model=ScriptedModel(["Hello."]), lifecycle=Teller())
    plugins = [Gate(), pai_redaction.redaction()]
    async with create_pai(
        agents={"main": agent}, store=f"sqlite:///{path}", plugins=plugins
    ) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send(f"I am {SECRET}")
        result = await run.result()
        state = await thread.state()
        events = [event async for event in run.events()]
    assert (result.status, result.text) == ("blocked", "Ask [email].")
    assert state.messages[0].parts[0].text == "I am [email]"
    assert events[-1].type == "run-finished"
    async with create_pai(
        agents={"main": agent}, store=f"sqlite:///{path}", plugins=plugins[1:]
    ) as app:
        run = await app.thread("main", thread_id="t").send("again")
        seen = [event.value async for event in run.events() if event.type == "plugin"]
    assert seen == [{"by": ["[email]"]}]
    written = _written(tmp_path)
    assert SECRET.encode() not in written
    assert TOLD.encode() not in written


@pytest.mark.anyio
async def test_titles_and_labels(tmp_path: Path) -> None:
    """A-LIFE-6, R-38: what a model or a generator makes of canonical text is looked at as well."""
    path = tmp_path / "pai.db"
    shown: list[str] = []

    def title(given: Any) -> str:
        shown.extend(message.text for message in given.messages)
        return f"Write to {TOLD}"

    def label(given: Any) -> str:
        shown.append(given.reasoning)
        return f"About {TOLD}"

    agent = define_agent(
        name="a",
        model=ScriptedModel([[Reason(f"It is {SECRET}."), f"Yes, {SECRET}."]], chunk=3),
        thread_titles=ThreadTitleConfig(generator=title),
        reasoning_summary=ReasoningSummaryConfig(generator=label),
    )
    async with create_pai(
        agents={"main": agent}, store=f"sqlite:///{path}", plugins=[pai_redaction.redaction()]
    ) as app:
        thread = app.thread("main", thread_id="t")
        await (await thread.send(f"I am {SECRET}")).result()
        told = set()
        with anyio.fail_after(10):
            async for event in thread.events():
                told.add(event.type)
                if {"thread-updated", "reasoning-summary"} <= told:
                    break
        state = await thread.state()
    assert state.thread.title == "Write to [email]"
    (part, _) = state.messages[1].parts
    assert (part.text, part.summary) == ("It is [email].", "About [email]")
    assert sorted(shown) == ["I am [email]", "It is [email].", "Yes, [email]."]
    written = _written(tmp_path)
    assert SECRET.encode() not in written
    assert TOLD.encode() not in written


def _written(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in folder.iterdir())
