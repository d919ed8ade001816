"""One thread and two workers of it, in one process: each does the next thing when it is told to."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import anyio.lowlevel
import attrs
import sniffio
from anyio.abc import TaskGroup, TaskStatus

from pai import (
    Approve,
    Deny,
    Pai,
    ToolCallPart,
    ToolContext,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.errors import AnswerConflict, CallsPending, InvalidInput, StoreError, ThreadNotFound
from pai.ports import Store
from pai.protocol import (
    CallError,
    Event,
    RunFinished,
    RunQueued,
    RunStarted,
    RunSuspended,
    StepFinish,
    ThreadState,
    fold,
)
from pai.stores import open_store
from pai.stores._memory import MemoryStore
from pai.testing import Call, Fail, ScriptedModel, Turn

__all__ = ("KINDS", "World")

LEASE = 15_000.0
"""Seconds of the world's clock; so long that no heart beats by a real one."""
KINDS: dict[str, list[Turn]] = {
    "text": ["four"],
    "calls": [["on", Call("once", {}, "o"), Call("again", {}, "a")], "off"],
    "steps": [[Call("again", {}, "a")], [Call("once", {}, "o")], "off"],
    "fails": [["on", Fail()]],
    "asks": [["may I", Call("gated", {}, "g"), Call("once", {}, "o")], "off"],
}
NEXT = {
    None: {"queued"},
    "queued": {"running", "cancelled"},
    "running": {"queued", "running", "suspended", "completed", "failed", "cancelled", "blocked"},
    "suspended": {"queued", "cancelled", "failed"},
}
"""From each status, where a run may go (R-3); from running to running by a takeover."""


class Dead(StoreError):
    """The process is gone: nothing of it reaches the store any more."""


class Mortal:
    """
    A store as one process has it: what comes behind its death is not done.

    Args:
        store: What outlives it.
    """

    durable = True

    def __init__(self, store: Store) -> None:
        self._store = store
        self.dead = False
        self.under_way = 0
        self.fuse: tuple[int, bool] | None = None
        """How many operations it still sees, and whether the last of them is done."""

    async def open(self) -> None:
        await self._store.open()

    async def close(self) -> None:
        await self._store.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._store, name)

        async def call(*args: Any, **options: Any) -> Any:
            self._burn(before=True)
            self.under_way += 1
            try:
                # As a real one, where others go on and a cancelled caller learns of it.
                await anyio.lowlevel.checkpoint()
                value = await method(*args, **options)
            finally:
                self.under_way -= 1
            self._burn(before=False)
            return value

        return call

    def _burn(self, *, before: bool) -> None:
        if before and self.fuse is not None:
            self.fuse = (self.fuse[0] - 1, self.fuse[1])
        if self.fuse is not None and self.fuse[0] <= 0 and before is not self.fuse[1]:
            self.dead = True
        if self.dead:
            raise Dead("the process is gone")


class Gates:
    """Places where a worker waits until it may go on."""

    def __init__(self) -> None:
        self.waiting: list[anyio.Event] = []
        self.open = False

    async def wait(self) -> None:
        if self.open:
            await anyio.lowlevel.checkpoint()
            return
        event = anyio.Event()
        self.waiting.append(event)
        try:
            await event.wait()
        finally:
            if event in self.waiting:
                self.waiting.remove(event)

    def let_through(self, index: int) -> None:
        if self.waiting:
            self.waiting.pop(index % len(self.waiting)).set()


@attrs.define(eq=False)
class Process:
    """A runtime, and what ends it."""

    app: Pai
    store: Mortal
    leave: anyio.Event
    gone: anyio.Event


class World:
    """
    One thread ``t`` of one agent, worked on by two processes that share a store.

    Args:
        kind: ``memory`` or ``sqlite``.
    """

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self.now = 2_000_000_000.0
        self._memory = MemoryStore(clock=lambda: self.now)
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        if kind == "sqlite":
            shutil.copy(template(), Path(self._folder.name) / "pai.db")
        self.processes: list[Process] = []
        self._group: TaskGroup | None = None
        self.asked: list[str] = []
        self._runs = 0
        self.ran: Counter[str] = Counter()
        self.faults: list[str] = []
        self.gates = Gates()
        self._agent = self._defined()

    # ------------------------------------------------------------------ processes

    def clock(self) -> Any:
        """What the SQL store takes for the module ``time``."""
        return SimpleNamespace(time=lambda: self.now)

    async def live(self, *, task_status: TaskStatus[None]) -> None:
        """Start two processes, and live until they have ended."""
        async with anyio.create_task_group() as group:
            self._group = group
            for _ in range(2):
                self.processes.append(await self._born())
            task_status.started()

    async def _born(self) -> Process:
        store = Mortal(
            self._memory
            if self._kind == "memory"
            else open_store(f"sqlite:///{Path(self._folder.name) / 'pai.db'}")
        )
        app = create_pai(agents={"a": self._agent}, store=store, plugins=(), lease=LEASE)
        process = Process(app, store, anyio.Event(), anyio.Event())
        ready = anyio.Event()

        async def live() -> None:
            async with app:
                ready.set()
                await process.leave.wait()

        async def host() -> None:
            try:
                await live()
            finally:
                process.gone.set()

        assert self._group is not None
        self._group.start_soon(host)
        await ready.wait()
        return process

    async def end(self, index: int, *, crash: bool) -> None:
        """End a process, by a crash or in good order, and start another one in its place."""
        process = self.processes[index]
        process.store.dead = process.store.dead or crash
        process.leave.set()
        await process.gone.wait()
        self.processes[index] = await self._born()

    async def rest(self) -> None:
        """Wait until nothing goes on by itself; bury who has died meanwhile."""
        while True:
            await _blocked()
            if any(process.store.under_way for process in self.processes):
                await anyio.sleep(0.0002)
                continue
            dead = [i for i, process in enumerate(self.processes) if process.store.dead]
            if not dead:
                return
            for index in dead:
                await self.end(index, crash=True)

    async def over(self) -> None:
        """Let everything come to its end."""
        for process in self.processes:
            process.store.fuse = None
        for _ in range(30):
            self.gates.open = True
            while self.gates.waiting:
                self.gates.let_through(0)
            await self.rest()
            state = await self.state()
            if state is None or all(run.finished_at for run in state.runs):
                break
            await self.answer(0, yes=True)
            await self.expire()
            await self.look(0)

    async def close(self) -> None:
        """End the processes."""
        for process in self.processes:
            process.leave.set()
            await process.gone.wait()
        self._folder.cleanup()

    # ------------------------------------------------------------------ what may happen

    async def _ask(self, index: int, what: Callable[[Any], Awaitable[object]]) -> bool:
        """Do something with the thread; whether it was accepted."""
        try:
            while True:
                try:
                    await what(self.processes[index].app.thread("a", thread_id="t"))
                except Dead:
                    # The caller does not know whether it was done, and asks again.
                    await self.rest()
                else:
                    return True
        except (AnswerConflict, CallsPending, InvalidInput, ThreadNotFound):
            return False
        finally:
            await self.rest()

    def _new_run(self) -> str:
        self._runs += 1
        return f"r{self._runs}"

    async def send(self, index: int, kind: str) -> None:
        run_id = self._new_run()
        if await self._ask(index, lambda thread: thread.send(kind, run_id=run_id)):
            self.asked.append(run_id)

    async def regenerate(self, index: int) -> None:
        run_id = self._new_run()
        if await self._ask(index, lambda thread: thread.regenerate(run_id=run_id)):
            self.asked.append(run_id)

    async def rename(self, index: int, title: str) -> None:
        await self._ask(index, lambda thread: thread.rename(title))

    async def delete(self, index: int) -> None:
        # Asked again after a death, it may find nothing to delete any more.
        await self._ask(index, lambda thread: thread.delete())
        self.asked = []

    async def answer(self, index: int, *, yes: bool) -> None:
        """Answer all that waits."""
        state = await self.state()
        if state is None or not state.pending:
            return
        # It may still work on calls that need no answer.
        run_id = next(run.id for run in state.runs if run.finished_at is None)
        given = [(Approve if yes else Deny)(call.call_id) for call in state.pending]

        async def resume(thread: Any) -> None:
            await (await thread.run(run_id)).resume(given)

        await self._ask(index, resume)

    async def cancel(self, index: int, number: int | None) -> None:
        """Cancel a run, or the one that is active."""
        thread = self.processes[index].app.thread("a", thread_id="t")
        try:
            state = await self.state()
            assert state is not None
            if number is None:
                ids = [run.id for run in state.runs if run.status == "running"]
            else:
                ids = [self.asked[number]]
            run = await thread.run(ids[0] if ids else self.asked[-1])
            await run.cancel("user")
        except (Dead, ThreadNotFound):
            pass
        await self.rest()

    async def go_on(self, gate: int) -> None:
        self.gates.let_through(gate)
        await self.rest()

    async def expire(self) -> None:
        self.now += LEASE + 1
        await self.rest()

    async def look(self, index: int) -> None:
        """Look for runs to take, as an engine does from time to time."""
        core = self.processes[index].app._core
        try:
            for key in await core.store.waiting():
                core.drain_soon(key)
        except Dead:
            pass
        await self.rest()

    # ------------------------------------------------------------------ what must be true

    async def state(self) -> ThreadState | None:
        # Looking must not burn a fuse.
        fuses = [process.store.fuse for process in self.processes]
        for process in self.processes:
            process.store.fuse = None
        try:
            return await self.processes[0].app.thread("a", thread_id="t").state()
        except ThreadNotFound:
            return None
        finally:
            for process, fuse in zip(self.processes, fuses, strict=True):
                process.store.fuse = fuse

    async def check(self) -> ThreadState | None:
        """What holds at every moment."""
        state = await self.state()
        if state is not None:
            events = await self._events(state.cursor)
            assert fold(None, events) == state
            cut = len(events) // 2
            if cut:
                assert fold(fold(None, events[:cut]), events[cut:]) == state
            check_log(events, state)
        assert self.faults == []
        return state

    async def _events(self, until: int) -> list[Event]:
        found: list[Event] = []
        store = self.processes[0].store._store
        keys = await store.threads("default", "a", 1, None)
        while len(found) < until:
            for batch in await store.events(keys[0][0].key, len(found)):
                found += batch.numbered(len(found))
        return found[:until]

    # ------------------------------------------------------------------ the agent

    def _defined(self) -> Any:
        world, gates = self, self.gates

        class Gate:
            @hookimpl
            async def wrap_model_call(self, step: Any, call_model: Any) -> AsyncIterator[Any]:
                world.faults += history_faults(step.request.messages)
                async for part in call_model(step.request):
                    if isinstance(part, StepFinish):
                        await gates.wait()
                    yield part

        async def work(ctx: ToolContext[Any]) -> str:
            world.ran[ctx.idempotency_key] += 1
            await gates.wait()
            return "done"

        @tool
        async def once(ctx: ToolContext[Any]) -> str:
            """Work that must not be done twice."""
            return await work(ctx)

        @tool(needs_approval=True)
        async def gated(ctx: ToolContext[Any]) -> str:
            """Work that must be approved, and not be done twice."""
            return await work(ctx)

        @tool(idempotent=True)
        async def again(ctx: ToolContext[Any]) -> str:
            """Work that may be done twice."""
            ctx.write_data("note", "seen", id="n")
            await gates.wait()
            return "done"

        return define_agent(
            name="a",
            model=ScriptedModel(_turn),
            tools={"once": once, "again": again, "gated": gated},
            ui_data={"note": str},
            lifecycle=Gate(),
        )


def _turn(request: Any) -> Turn:
    """The next turn, as the history tells it: another worker goes on with the same script."""
    done = [message.role for message in reversed(request.messages)].index("user")
    return KINDS[request.messages[-1 - done].parts[0].text][done]


async def _blocked() -> None:
    """Wait until every task waits for something."""
    if sniffio.current_async_library() == "trio":
        await anyio.wait_all_tasks_blocked()
        return
    # The same without anyio's pauses of 100 ms.
    own = asyncio.current_task()
    while True:
        for _ in range(3):
            await asyncio.sleep(0)
        others: list[Any] = [task for task in asyncio.all_tasks() if task is not own]
        if all(task._fut_waiter is not None and not task._fut_waiter.done() for task in others):
            return


def template() -> Path:
    """An SQLite file with empty tables, made once."""
    global _TEMPLATE
    if _TEMPLATE is None:
        _TEMPLATE = tempfile.TemporaryDirectory()
        path = Path(_TEMPLATE.name) / "pai.db"

        async def make() -> None:
            async with create_pai(
                agents={"a": define_agent(name="a", model=ScriptedModel())},
                store=f"sqlite:///{path}",
            ):
                pass

        anyio.run(make)
    return Path(_TEMPLATE.name) / "pai.db"


_TEMPLATE: tempfile.TemporaryDirectory[str] | None = None


def history_faults(messages: Any) -> list[str]:
    """Why a provider would not take a history (R-14, R-15)."""
    faults = []
    for message in messages:
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        if not message.parts:
            faults.append("an empty message")
        if len({part.call_id for part in calls}) < len(calls):
            faults.append("two calls of one id")
        if any(part.outcome is None for part in calls):
            faults.append("a call without a result")
    return faults


def check_log(events: list[Event], state: ThreadState) -> None:
    """R-1, R-2, R-3: one active run, first in first out, no step that R-3 does not know."""
    status: dict[str, str] = {}
    queued: list[str] = []
    begun: list[str] = []
    for event in events:
        run_id = event.run_id
        new: str | None = None
        if isinstance(event, RunQueued):
            if event.answered and status.get(run_id) == "running":
                continue  # it goes on: the answer counts when it suspends
            new = "queued"
            if run_id not in queued:
                queued.append(run_id)
        elif isinstance(event, RunStarted):
            new = "running"
            if run_id not in begun:
                begun.append(run_id)
        elif isinstance(event, RunSuspended):
            new = "suspended"
        elif isinstance(event, RunFinished):
            new = event.status
        if isinstance(event, CallError) and status.get(run_id) in ("suspended", "queued"):
            continue  # it ends without a worker, and its calls with it
        if new is None:
            assert status.get(run_id) in ("running", None), (
                f"{event.type} of a run that is not active"
            )
            continue
        before = status.get(run_id)
        assert new in NEXT.get(before, ()), f"{run_id} goes from {before} to {new}"
        status[run_id] = new
        active = [name for name, now in status.items() if now in ("running", "suspended")]
        assert len(active) <= 1, f"{active} are active at once"
    assert begun == [run_id for run_id in queued if run_id in begun]
    assert {run.id: run.status for run in state.runs} == status
