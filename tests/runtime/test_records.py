"""Plugins' stored rows: handed to hooks, kept beyond the run, and fenced within it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import anyio
import pytest
from hypothesis import given, strategies as st

from pai import InvalidInput, LeaseLost, compose_lifecycle, create_pai, define_agent, hookimpl, tool
from pai.contexts import Records
from pai.hookspecs import Hooks
from pai.lifecycle import HOOK_NAMES
from pai.ports import RecordScope, RunHold
from pai.protocol import ThreadKey
from pai.stores import MemoryStore
from pai.testing import Call, ScriptedModel
from pai.testing._schema_strategies import json_values

pytestmark = pytest.mark.anyio

WITH_RUN = [
    name
    for name in HOOK_NAMES
    if name not in {"register_lifecycle", "register_cli", "thread_deleted"}
]


@tool
def add(ctx, a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def counting(name: str, phase: str) -> Any:
    """A plugin that counts the calls of one hook in its rows."""
    stream = {"wrap_model_call", "transform_step_stream"}

    async def count(records: Records) -> None:
        seen = await records.get("seen", 0)
        assert isinstance(seen, int)
        await records.put("seen", seen + 1)
        await records.shared.put("last", phase)

    if phase == "transform_aside":

        @hookimpl
        def hook(self, item, records):
            assert isinstance(records, Records)

    elif phase == "wrap_model_call":

        @hookimpl
        async def hook(self, step, call_model, records):  # type: ignore[misc]
            await count(records)
            async for part in call_model(step.request):
                yield part

    elif phase in stream:

        @hookimpl
        async def hook(self, stream, records):
            await count(records)
            async for part in stream:
                yield part

    else:

        @hookimpl
        async def hook(self, records):  # type: ignore[misc]
            await count(records)

    return type("Counting", (), {"name": name, phase: hook})()


def the_agent(*plugins: object) -> Any:
    model = ScriptedModel([Call("add", {"a": 1, "b": 2}), "Three.", "Again."])
    return define_agent(
        name="a", model=model, tools={"add": add}, lifecycle=compose_lifecycle(*plugins)
    )


@pytest.mark.parametrize("phase", WITH_RUN)
async def test_every_hook_has_its_rows(phase: str) -> None:
    """R-34, R-42"""
    assert "records" in inspect.signature(getattr(Hooks, phase)).parameters
    app = create_pai(agents={"a": the_agent(counting("mine", phase), counting("other", phase))})
    async with app:
        thread = app.thread("a", thread_id="t")
        run = await thread.send("Add up 1 and 2.")
        assert (await run.result()).status == "completed"
        if phase == "transform_aside":
            return
        times = {"wrap_model_call": 2, "transform_step_stream": 2, "prepare_model_step": 2}
        times["step_finished"] = 2
        for name in ("mine", "other"):
            rows = await app.records(name, thread_id="t").items()
            assert rows == [("seen", times.get(phase, 1))]
            assert await app.records(name).items() == [("last", phase)]
            assert await app.records(name, thread_id="u").items() == []
            assert await app.records(name, partition="p", thread_id="t").items() == []


async def test_rows_outlive_the_process(tmp_path: Path) -> None:
    """R-34"""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    for expected in (1, 2):
        plugin = counting("mine", "prepare_run")
        async with create_pai(agents={"a": the_agent(plugin)}, store=url) as app:
            await (await app.thread("a", thread_id="t").send("go")).result()
            assert await app.records(plugin, thread_id="t").get("seen") == expected


@pytest.mark.parametrize("url", ["memory:", "sqlite:///{}/pai.db"])
async def test_a_worker_that_lost_its_run_writes_no_row(tmp_path: Path, url: str) -> None:
    """R-4, R-42"""
    refused: list[str] = []
    done = anyio.Event()

    class Slow:
        name = "slow"

        @hookimpl
        async def prepare_run(self, run, records):
            await records.put("k", "mine")
            store, key = app._core.store, ThreadKey("default", "t")
            # Another worker thinks that we are dead.
            held = RunHold(key, run.id, app._core._jobs[key, run.id].claimed.fence)
            await store.renew(*held, -1.0)
            assert await store.claim(key, "other", 60.0, []) is not None
            for write in (records.put("k", "late"), records.delete("k"),
                          records.shared.put("k", "late")):  # fmt: skip
                with pytest.raises(LeaseLost):
                    await write
                refused.append(run.id)
            done.set()
            await records.put("k", "later")

    app = create_pai(agents={"a": the_agent(Slow())}, store=url.format(tmp_path))
    async with app:
        await app.thread("a", thread_id="t").send("go")
        await done.wait()
        await app._core.settled()
        assert len(refused) == 3
        assert await app.records("slow", thread_id="t").items() == [("k", "mine")]
        assert await app.records("slow").items() == []


async def test_an_observer_of_the_end_may_write() -> None:
    """R-33a: the run has ended, and so has what fences it, also if the next one is under way."""
    app = create_pai(agents={"a": the_agent(counting("mine", "run_settled"))})
    async with app:
        thread = app.thread("a", thread_id="t")
        first, second = await thread.send("go"), await thread.send("again")
        await first.result()
        await second.result()
    assert await app.records("mine", thread_id="t").get("seen") == 2


# ------------------------------------------------------------------------ the object itself

KEYS = st.text(
    st.characters(exclude_characters="\x00\U0010ffff", exclude_categories=["Cs"]),
    min_size=1,
    max_size=8,
)


def fresh() -> Records:
    return Records(MemoryStore(), RecordScope("p", "plugin", "t"))


@given(rows=st.dictionaries(KEYS, json_values(), max_size=6), prefix=KEYS | st.just(""))
def test_rows_come_back_as_they_were(rows: dict[str, Any], prefix: str) -> None:
    async def body() -> None:
        records = fresh()
        for key, value in rows.items():
            await records.put(key, value)
        expected = sorted((key, value) for key, value in rows.items() if key.startswith(prefix))
        assert [key for key, _ in expected] == [key for key, _ in await records.items(prefix)]
        for key, value in await records.items():
            assert value == rows[key] == await records.get(key)
        pages: list[str] = []
        while page := await records.items(prefix, limit=2, after=pages[-1] if pages else ""):
            pages += [key for key, _ in page]
        assert pages == [key for key, _ in expected]

    anyio.run(body)


async def test_a_stored_value_is_nobody_s_to_change() -> None:
    records = fresh()
    value = {"list": [1]}
    await records.put("k", value)
    value["list"].append(2)
    found = await records.get("k")
    assert found == {"list": [1]}
    assert await records.get("none") is None
    assert await records.get("none", 5) == 5
    assert await records.delete("k")
    assert not await records.delete("k")


@pytest.mark.parametrize(
    ("key", "value", "text"),
    [
        ("", 1, "key: is empty"),
        ("x" * 257, 1, "key: has 257 characters"),
        ("a\x00b", 1, "key: keys have no"),
        ("a\U0010ffff", 1, "key: keys have no"),
        ("\ud800", 1, "key: a lone surrogate"),
        (5, 1, "key: expected text, got int"),
        ("k", {"a": [float("nan")]}, "value.a[0]: expected a finite number"),
        ("k", {1: 2}, "value: expected string keys"),
        ("k", object(), "value: object is not JSON"),
        ("k", "x" * 1_000_001, "value: has 1000003 characters of JSON"),
    ],
)
async def test_what_does_not_fit_is_refused(key: Any, value: object, text: str) -> None:
    """R-39"""
    records = fresh()
    with pytest.raises(InvalidInput) as caught:
        await records.put(key, value)
    assert text in str(caught.value)
    assert await records.items() == []
    if text.startswith("key"):
        for work in (records.get(key), records.delete(key)):
            with pytest.raises(InvalidInput):
                await work


async def test_a_list_has_limits() -> None:
    records = fresh()
    with pytest.raises(InvalidInput) as caught:
        await records.items("\x00", after="\ud800", limit=0)
    assert {fault.path for fault in caught.value.faults} == {"prefix", "after", "limit"}
