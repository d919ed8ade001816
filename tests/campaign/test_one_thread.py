"""Whatever happens to a thread, in whatever order, the rules hold."""

from __future__ import annotations

from typing import Any

import anyio.from_thread
import pytest
from hypothesis import settings, strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from pai.loop import _journal
from pai.runtime import _engines
from pai.stores._sql import store as sql_store

from .one_thread import KINDS, World

process = st.integers(0, 1)


class OneThread(RuleBasedStateMachine):
    """
    Two processes work on one thread: asked, answered, cancelled, crashed, frozen, overtaken.

    A rule is one method that calls one of the world's; what must be true is in ``World.check``.
    """

    kind = "memory"
    backend = "asyncio"

    def __init__(self) -> None:
        super().__init__()
        self.world = World(self.kind)
        self._patch = pytest.MonkeyPatch()
        self._patch.setattr(sql_store, "time", self.world.clock())
        self._entered = anyio.from_thread.start_blocking_portal(self.backend)
        self.portal = self._entered.__enter__()

    @initialize()
    def begin(self) -> None:
        self.portal.start_task(self.world.live)

    def do(self, what: Any, *args: Any) -> Any:
        return self.portal.call(what, *args)

    # ------------------------------------------------------------------ rules

    @rule(at=process, kind=st.sampled_from(sorted(KINDS)))
    def send(self, at: int, kind: str) -> None:
        self.do(self.world.send, at, kind)

    @precondition(lambda self: self.world.asked)
    @rule(at=process, which=st.sampled_from([None, None, None, 0, 1, 2, 3]))
    def cancel(self, at: int, which: int | None) -> None:
        """Mostly the run that is active."""
        number = None if which is None else which % len(self.world.asked)
        self.do(self.world.cancel, at, number)

    @precondition(lambda self: self.world.asked)
    @rule(at=process, yes=st.booleans())
    def answer(self, at: int, yes: bool) -> None:
        async def answer() -> None:
            await self.world.answer(at, yes=yes)

        self.do(answer)

    @precondition(lambda self: self.world.asked)
    @rule(at=process)
    def regenerate(self, at: int) -> None:
        self.do(self.world.regenerate, at)

    @precondition(lambda self: self.world.asked)
    @rule(at=process, title=st.sampled_from("ab"))
    def rename(self, at: int, title: str) -> None:
        self.do(self.world.rename, at, title)

    @precondition(lambda self: len(self.world.asked) > 2)
    @rule(at=process)
    def delete(self, at: int) -> None:
        self.do(self.world.delete, at)

    @precondition(lambda self: self.world.gates.waiting)
    @rule(gate=st.integers(0, 3))
    def go_on(self, gate: int) -> None:
        self.do(self.world.go_on, gate)

    @precondition(lambda self: self.world.asked)
    @rule(at=process, expire=st.sampled_from([True, True, False]), look=st.booleans())
    def overtake(self, at: int, expire: bool, look: bool) -> None:
        """Workers that live are frozen past their lease; the next to look takes their runs."""
        if expire:
            self.do(self.world.expire)
        if look:
            self.do(self.world.look, at)

    @precondition(lambda self: self.world.asked)
    @rule(at=process, how=st.sampled_from(["crash", "crash", "close"]))
    def end(self, at: int, how: str) -> None:
        async def end() -> None:
            await self.world.end(at, crash=how == "crash")
            await self.world.rest()

        self.do(end)

    @rule(at=process, operations=st.integers(1, 6), done=st.booleans())
    def crash_later(self, at: int, operations: int, done: bool) -> None:
        """Crash at an operation of the store that is to come, before or behind it."""
        self.world.processes[at].store.fuse = (operations, done)

    # ------------------------------------------------------------------ what must be true

    @invariant()
    def holds(self) -> None:
        """R-1, R-2, R-3, R-15, R-25."""
        if self.world.processes:
            self.do(self.world.check)

    def teardown(self) -> None:
        """R-10, R-12: all comes to its end, and nothing was done twice."""
        world = self.world
        try:
            if not world.processes:
                return

            async def last() -> Any:
                await world.over()
                state = await world.check()
                await world.close()
                return state

            state = self.do(last)
            ended = {} if state is None else {run.id: run.finished_at for run in state.runs}
            assert list(ended) == world.asked
            assert all(ended.values())
            assert not [key for key, times in world.ran.items() if times > 1]
        finally:
            self._patch.undo()
            self._entered.__exit__(None, None, None)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_any_order_of_things_keeps_the_rules(
    kind: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-1, R-2, R-3, R-10, R-12, R-15, R-25: whatever comes after whatever else."""
    # Nothing waits for time: what is put is written at once, and who looks was told to.
    monkeypatch.setattr(_journal, "COALESCE", 0.0)
    monkeypatch.setattr(_engines, "POLL", 1e6)

    class Machine(OneThread):
        pass

    Machine.kind, Machine.backend = kind, backend
    # A run of the machine costs as much as fifty examples of other tests.
    examples = max(settings.default.max_examples // 8, 6)
    run_state_machine_as_test(
        Machine,
        settings=settings(max_examples=examples, stateful_step_count=25, deadline=None),
    )
