"""Whatever is written into private metadata, and through whichever door: no client ever sees it."""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pai import (
    CommandContext,
    InvalidInput,
    MetadataPatch,
    MetadataSchemas,
    PaiError,
    RunContext,
    RunPatch,
    StepContext,
    StepPatch,
    ToolResultContext,
    compose_lifecycle,
    create_pai,
    define_agent,
    define_command,
    hookimpl,
    tool,
)
from pai.protocol import encode_events, fold
from pai.testing import Call, Cut, Fail, Hang, ScriptedModel

MARK = "never-for-clients"
"""Each private value begins with it."""


@attrs.frozen
class Hidden:
    """Private: a default, a text, a tree, and what a validator refuses."""

    default: str = f"{MARK}-default"
    text: str = ""
    tree: dict[str, list[str]] = attrs.field(factory=lambda: {f"{MARK}-key": [f"{MARK}-item"]})
    short: str = attrs.field(default="", validator=attrs.validators.max_len(3))


@attrs.frozen
class Shown:
    label: str = ""


def schemas() -> MetadataSchemas[Hidden, Shown]:
    return MetadataSchemas(private=Hidden, public=Shown)


RUN = schemas()


def good(door: str) -> MetadataPatch:
    tree = {f"{MARK}-{door}": [f"{MARK}-{door}"]}
    return MetadataPatch(private={"text": f"{MARK}-{door}", "tree": tree}, public={"label": door})


BAD = (
    MetadataPatch(private={"text": [f"{MARK}-list"]}),
    MetadataPatch(private={f"{MARK}-unknown": f"{MARK}-value"}),
    MetadataPatch(private={"short": f"{MARK}-long"}),
    MetadataPatch(private={"tree": {f"{MARK}-key": f"{MARK}-no-list"}}),
)
"""Patches that are refused: what they hold is told nowhere either."""


@tool
async def look(ctx: Any) -> str:
    """Look."""
    return "seen"


async def note(ctx: CommandContext[Any], input: dict[str, int]) -> None:
    if "bad" in input:
        await ctx.update_metadata(thread=BAD[input["bad"]])
    if "raise" in input:
        raise ValueError(f"{MARK}-command")
    given = good("command")
    await ctx.update_metadata(run=given, thread=given, message=given)


class Doors:
    """Writes through the doors that are open, in hooks."""

    def __init__(self, doors: list[str], bad: int) -> None:
        self._doors = doors
        self._bad = bad

    async def _update(self, run: RunContext[Any], door: str) -> None:
        if door in self._doors:
            given = good(door)
            await run.update_metadata(run=given, thread=given, message=given)
        if f"{door} refused" in self._doors:
            for where in ("run", "thread", "message"):
                with pytest.raises(InvalidInput):
                    await run.update_metadata(**{where: BAD[self._bad]})

    @hookimpl
    async def run_started(self, run: RunContext[Any]) -> None:
        await self._update(run, "started")

    @hookimpl
    async def prepare_run(self, run: RunContext[Any]) -> RunPatch | None:
        await self._update(run, "prepare")
        if "run patch" in self._doors:
            given = good("run patch")
            return RunPatch(run_metadata=given, thread_metadata=given, message_metadata=given)
        if "run patch fails" in self._doors:
            return RunPatch(run_metadata=BAD[self._bad])
        return None

    @hookimpl
    async def prepare_model_step(self, step: StepContext[Any]) -> StepPatch | None:
        if "step patch" in self._doors:
            given = good("step patch")
            return StepPatch(run_metadata=given, thread_metadata=given, message_metadata=given)
        return None

    @hookimpl
    async def tool_settled(self, result: ToolResultContext[Any]) -> None:
        await self._update(result.run, "settled")

    @hookimpl
    async def run_settled(self, run: RunContext[Any]) -> None:
        if "raises" in self._doors:
            raise ValueError(f"{MARK}-observer")


DOORS = (
    "started", "started refused", "prepare", "prepare refused", "run patch", "run patch fails",
    "step patch", "settled", "settled refused", "raises", "thread", "run", "replace", "command",
    "command refused", "command raises", "handle refused",
)  # fmt: skip


async def refused(work: Any, told: list[str]) -> None:
    """Await what must raise; what the error says is seen by whoever asked."""
    try:
        await work
    except PaiError as error:
        told.append(f"{error} {error!r} {error.args} {getattr(error, 'faults', '')}")
        return
    raise AssertionError("it was not refused")


async def beside(thread: Any, run: Any, doors: list[str], bad: int, told: list[str]) -> None:
    """Write through the doors beside the run."""
    given = good("handle")
    for handle in (thread, run):
        if (handle is thread and "thread" in doors) or (handle is run and "run" in doors):
            await handle.update_metadata(given.private, given.public)
        if "replace" in doors:
            await handle.update_metadata({"text": f"{MARK}-replaced"}, replace=True)
        if "handle refused" in doors:
            await refused(handle.update_metadata(BAD[bad].private), told)
    if "command" in doors:
        await thread.command("note", {})
    if "command refused" in doors:
        await refused(thread.command("note", {"bad": bad}), told)
    if "command raises" in doors:
        await refused(thread.command("note", {"raise": 1}), told)


async def story(store: str, script: Any, doors: list[str], bad: int, where: str) -> list[str]:
    """Play it; returned is all that a client can see, as text."""
    agent = define_agent(
        name="a",
        model=ScriptedModel([script, "more", "more"], chunk=2),
        tools={"look": look},
        lifecycle=compose_lifecycle(Doors(doors, bad)),
        run_metadata=RUN,
        thread_metadata=schemas(),
        message_metadata=schemas(),
        commands={
            "note": define_command(
                name="note", description="Note it.", input=dict[str, int], output=type(None),
                execute=note, exposed=True, run_metadata=RUN,
            )
        },
        retry=None,
    )  # fmt: skip
    seen: list[str] = []
    with anyio.fail_after(30):
        async with create_pai(agents={"a": agent}, store=store, plugins=()) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go")
            if where == "during":
                await beside(thread, run, doors, bad, seen)
                seen.append(repr(await thread.state()))
            if any(isinstance(item, Hang) for item in script):
                async for event in run.events():
                    if event.type == "text-end":
                        await run.cancel("enough")
            result = await run.result()
            if where == "after":
                await beside(thread, run, doors, bad, seen)
            state = await thread.state()
            events = [event async for event in until(thread.events(), state.cursor)]
            seen += [repr(result), repr(state), repr(state.runs), repr(fold(None, events))]
            seen += [encode_events(events), repr(events), repr(await app.threads("a"))]
            seen += [repr(thread), repr(run), repr(agent.public_contract), repr(agent.manifest)]
            # Whatever was seen, it was there to be seen.
            snapshot = await app._core.store.snapshot(thread._key, "a")
            assert snapshot is not None
            records: list[Any] = [snapshot.thread, *snapshot.runs, *snapshot.messages]
            for record in records:
                assert MARK in repr(record.metadata.private)
                assert MARK not in repr(record.metadata.public)
    return seen


async def until(events: AsyncIterator[Any], last: int) -> AsyncIterator[Any]:
    async for event in events:
        yield event
        if event.seq >= last:
            return


scripts = st.sampled_from(
    [["hi"], [Call("look"), Call("look")], ["some", Fail()], ["some", Cut()], ["some", Hang()]]
)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    script=scripts,
    doors=st.lists(st.sampled_from(DOORS), unique=True, max_size=len(DOORS)),
    bad=st.integers(0, len(BAD) - 1),
    where=st.sampled_from(["during", "after"]),
)
def test_no_client_sees_what_is_private(
    kind: str, script: Any, doors: list[str], bad: int, where: str, caplog: Any
) -> None:
    """A-META-6, R-40: state, lists, events, results, errors, logs, and what is folded of them."""
    caplog.clear()
    with caplog.at_level(logging.DEBUG), tempfile.TemporaryDirectory() as folder:
        store = "memory:" if kind == "memory" else f"sqlite:///{Path(folder) / 'a.db'}"
        seen = asyncio.run(story(store, script, doors, bad, where))
    for text in seen:
        assert MARK not in text
    assert MARK not in caplog.text
    assert all(MARK not in str(record.__dict__) for record in caplog.records)
