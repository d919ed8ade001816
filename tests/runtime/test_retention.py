"""Logs of runs that ended are made short, and tell what they told before (R-25)."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import anyio
import pytest

from pai import (
    DefinitionError,
    Event,
    Pai,
    TextDelta,
    ThreadHandle,
    ToolContext,
    create_pai,
    define_agent,
    tool,
)
from pai.protocol import MessageView, ThreadKey, encode_events, fold
from pai.runtime import _retention
from pai.schema import dump_json
from pai.stores._sql.packing import unpacked
from pai.testing import Call, Hang, ScriptedModel

pytestmark = pytest.mark.anyio
ANSWER = "A rather long answer, of which each letter is an event of its own. " * 8
WORDS = (Path(__file__).parents[2] / "README.md").read_text().split()
T = ThreadKey("default", "t")


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_retention, "LOOK", 0.01)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'pai.db'}"


@tool
async def note(ctx: ToolContext[Any], text: str) -> str:
    """Take a note."""
    ctx.write_data("note", text)
    return f"noted: {text}"


def talker(turns: int) -> Any:
    script: list[Any] = []
    for turn in range(turns):
        script += [["I note it.", Call("note", {"text": f"turn {turn}"})], ANSWER]
    return define_agent(
        name="a", model=ScriptedModel(script, chunk=4), tools={"note": note}, ui_data={"note": str}
    )


async def rows(app: Pai) -> list[tuple[int, int, str]]:
    """The log as it lies in the database: last number, size and body of each row."""
    store: Any = app._core.store
    found: list[tuple[int, int, str]] = await store.read(
        lambda c: c.execute("SELECT last, size, body FROM events ORDER BY last").fetchall()
    )
    return [(last, size, unpacked(body)) for last, size, body in found]


async def is_short(app: Pai, count: int) -> None:
    """Wait until there are no more rows than these."""
    with anyio.fail_after(20):
        while len(await rows(app)) > count:  # noqa: ASYNC110  # nothing tells it
            await anyio.sleep(0.005)


async def told(thread: ThreadHandle, after: int, upto: int) -> list[Event]:
    found: list[Event] = []
    if after < upto:
        async for event in thread.events(after):
            found.append(event)
            if event.seq == upto:
                break
    return found


async def test_a_log_is_made_short_after_a_while(url: str) -> None:
    """R-25: whoever watches, in this process or in another, from any number on, is told the same."""
    async with create_pai(agents={"a": talker(3)}, store=url, keep_deltas=0) as app:
        thread = app.thread("a", thread_id="t")
        runs = [await thread.send(f"go {turn}") for turn in range(3)]
        results = [await run.result() for run in runs]
        live = [event async for event in thread_events(thread, (await thread.state()).cursor)]
        # Those that wait stand between the pieces of the first.
        await is_short(app, 7)
        state = await thread.state()
        assert fold(None, live) == state
        for at in range(0, len(live), 7):
            before = fold(None, live[:at]) if at else None
            # The hub of this process still has the pieces.
            assert fold(before, await told(thread, at, state.cursor)) == state
        async with create_pai(agents={"a": talker(0)}, store=url, work=False) as other:
            there = other.thread("a", thread_id="t")
            for at in range(0, len(live), 7):
                before = fold(None, live[:at]) if at else None
                events = await told(there, at, state.cursor)
                assert fold(before, events) == state
            assert len(events) < 30
            run = await there.run(runs[0].id)
            again = await run.result()
            assert (again.status, again.text) == (results[0].status, ANSWER)
            assert [delta async for delta in run.text()] == ["I note it.", ANSWER]
            own = [event async for event in run.events()]
            assert (own[0].type, own[-1].type) == ("run-queued", "run-finished")


async def thread_events(thread: ThreadHandle, upto: int) -> Any:
    for event in await told(thread, 0, upto):
        yield event


@pytest.mark.parametrize("words", [8, 100])
async def test_bytes_after_retention(url: str, words: int) -> None:
    """At most 2.5 times the messages as JSON, all tables and their keys counted."""
    turns, dice = 20, random.Random(words)

    def talk(length: int) -> str:
        return " ".join(dice.choices(WORDS, k=length))

    script: list[Any] = []
    for turn in range(turns):
        script += [[talk(words), Call("note", {"text": f"turn {turn}"})], talk(words)]
    agent = define_agent(
        name="a", model=ScriptedModel(script, chunk=4), tools={"note": note}, ui_data={"note": str}
    )
    async with create_pai(agents={"a": agent}, store=url, keep_deltas=0) as app:
        thread = app.thread("a", thread_id="t")
        for _ in range(turns):
            await (await thread.send(talk(8))).result()
        await is_short(app, turns)
        state = await thread.state()
        messages = sum([len(_json(message)) for message in state.messages])
        store: Any = app._core.store
        size = await store.read(_bytes)
        assert fold(None, await told(thread, 0, state.cursor)) == state
    assert size <= 2.5 * messages, size / messages


def _json(message: Any) -> str:
    return dump_json(MessageView.codec.to_json(message))


def _bytes(c: Any) -> int:
    total = 0
    for table in ("threads", "messages", "runs", "actions", "events", "jobs", "records"):
        names = [row[1] for row in c.execute(f"PRAGMA table_info({table})").fetchall()]
        lengths = "+".join(f'coalesce(length(CAST("{name}" AS BLOB)),0)' for name in names)
        total += c.execute(f"SELECT coalesce(sum({lengths}),0) FROM {table}").fetchone()[0]
    return total


async def test_not_before_its_time(url: str) -> None:
    """A run that has ended just now, and one at work, stay as they are."""
    agent = define_agent(name="a", model=ScriptedModel(["one two", ["three", Hang()]], chunk=1))
    async with create_pai(agents={"a": agent}, store=url) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go")).result()
        before = await rows(app)
        await app._core._retention._sweep()
        await app._core._retention._short()
        assert await rows(app) == before
    async with create_pai(agents={"a": agent}, store=url, keep_deltas=None) as app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("go")
        async for delta in run.text():
            if delta == "e":
                break
        pieces = len(await rows(app))
        await app._core.store.compact(
            T, (await thread.state()).thread.created_at.replace(year=9999)
        )
        short = await rows(app)
        assert len(short) < pieces
        assert "one two" in "".join(body for _, _, body in short)
        assert '"three"' not in "".join(body for _, _, body in short)
        await run.cancel()


async def test_what_another_process_left(url: str) -> None:
    """A process that ends before the time leaves it to the next one."""
    async with create_pai(agents={"a": talker(1)}, store=url) as app:
        await (await app.thread("a", thread_id="t").send("go")).result()
        assert len(await rows(app)) > 1
    async with create_pai(agents={"a": talker(0)}, store=url, keep_deltas=0) as app:
        await is_short(app, 1)


async def test_for_good(url: str) -> None:
    async with create_pai(agents={"a": talker(1)}, store=url, keep_deltas=None) as app:
        assert not app._core._retention.used
        run = await app.thread("a", thread_id="t").send("go")
        await run.result()
        deltas = [event async for event in run.events() if isinstance(event, TextDelta)]
        bodies = "".join(body for _, _, body in await rows(app))
        assert all(encode_events([delta])[1:-1] in bodies for delta in deltas)


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_time_is_a_number_of_seconds(seconds: float) -> None:
    with pytest.raises(DefinitionError, match="keep_deltas"):
        create_pai(agents={"a": talker(0)}, keep_deltas=seconds)
