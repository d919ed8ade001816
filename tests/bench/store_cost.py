"""
What a store's hot operations cost: ``python tests/bench/store_cost.py [asyncio] [trio]``.

Prints µs an operation on one thread's way: accept with claim, append of 20 deltas, commit of a
step, commit with the end of the run, and reading back a history of 2,000 messages.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import anyio

from pai.ports import Store
from pai.protocol import (
    CallRecord,
    Commit,
    Event,
    Message,
    Metadata,
    RunEnd,
    RunFinished,
    RunQueued,
    RunRecord,
    RunStarted,
    StepFinished,
    TextDelta,
    TextPart,
    ThreadKey,
    ThreadRecord,
    ToolCallPart,
    new_id,
)
from pai.stores import open_store

RUNS = 300
NOW = datetime.now(UTC)


def head(key: ThreadKey) -> ThreadRecord:
    return ThreadRecord(key, "main", Metadata(), NOW, NOW)


def record() -> RunRecord:
    return RunRecord(new_id(), "main", "1", "send", {"identity": {"user": "u"}}, "d", NOW)


def said(run_id: str, role: str, *parts: object) -> Message:
    return Message(new_id(), role, parts or (TextPart("Hello, how are you?"),), run_id, NOW)  # type: ignore[arg-type]


def deltas(count: int) -> list[Event]:
    return [TextDelta("1", "some words of text ") for _ in range(count)]


async def runs(store: Store, spent: dict[str, float]) -> None:
    """One run on a fresh thread: the operations of a small answer."""
    key = ThreadKey("default", new_id())
    run = record()
    clock = time.perf_counter

    async def timed(name: str, work: Awaitable[object]) -> object:
        start = clock()
        result = await work
        spent[name] = spent.get(name, 0.0) + clock() - start
        return result

    await timed(
        "accept + claim",
        store.accept(
            head(key), run, said(run.id, "user"), [RunQueued("send")],
            claim=("w", 15.0), started=[RunStarted(key.thread_id)],
        ),
    )  # fmt: skip
    await timed("append 20", store.append(key, run.id, 1, deltas(20)))
    step = Commit([StepFinished(1, "tool-calls")], said(run.id, "assistant"))
    await timed("commit step", store.commit(key, run.id, 1, step))
    end = RunEnd("completed", NOW, outcome="completed")
    last = Commit([RunFinished("completed")], said(run.id, "assistant"), end=end)
    await timed("commit end", store.commit(key, run.id, 1, last))
    await timed("claim of nothing", store.claim(key, "w", 15.0, []))


async def history(store: Store, count: int) -> float:
    """Seconds to read a thread of *count* messages, every fourth with a settled call."""
    key = ThreadKey("default", new_id())
    run = record()
    await store.accept(
        head(key), run, None, [RunQueued("send")],
        claim=("w", 900.0), started=[RunStarted(key.thread_id)],
    )  # fmt: skip
    for index in range(count):
        if index % 4:
            message = said(run.id, "assistant", TextPart("words " * 20))
            await store.commit(key, run.id, 1, Commit([], message))
        else:
            call = f"call_{index}"
            message = said(run.id, "assistant", ToolCallPart(call, "add", {"a": 1, "b": 2}))
            row = CallRecord(call, message.id, "add", "settled", "completed", {"sum": 3})
            await store.commit(key, run.id, 1, Commit([], message, (row,)))
    best = 9.9
    for _ in range(5):
        start = time.perf_counter()
        snapshot = await store.snapshot(key, "main")
        best = min(best, time.perf_counter() - start)
        assert snapshot is not None
        assert len(snapshot.messages) == count
    return best


async def many(store: Store, count: int) -> float:
    """Seconds a run when *count* go at once."""
    spent: dict[str, float] = {}
    start = time.perf_counter()
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(runs, store, spent)
    return (time.perf_counter() - start) / count


async def measure(make: Callable[[], Store]) -> None:
    store = make()
    await store.open()
    for _ in range(20):
        await runs(store, {})
    spent: dict[str, float] = {}
    for _ in range(RUNS):
        await runs(store, spent)
    for name, seconds in spent.items():
        print(f"  {name:18} {seconds / RUNS * 1e6:8.1f} µs")
    print(f"  {'64 runs at once':18} {await many(store, 64) * 1e6:8.1f} µs a run")
    seconds = await history(store, 2000)
    print(f"  {'history of 2,000':18} {seconds / 2000 * 1e6:8.2f} µs a message")
    await store.close()


def main() -> None:
    backends = sys.argv[1:] or ["asyncio", "trio"]
    with tempfile.TemporaryDirectory() as folder:
        urls = ["memory:", f"sqlite:///{Path(folder) / 'bench.db'}"]
        for backend in backends:
            for url in urls:
                print(url.partition(":")[0], backend)
                anyio.run(measure, lambda url=url: open_store(url), backend=backend)


if __name__ == "__main__":
    main()
