"""The signal that a run's code is handed (A-CTX-2)."""

from __future__ import annotations

import threading

import anyio
import pytest

from pai import Signal


def test_the_first_reason_stays():
    """A-CTX-2."""
    signal = Signal()
    assert (signal.is_set(), signal.reason, signal.wait(0)) == (False, None, False)
    signal.set("cancelled")
    signal.set("too late")
    assert (signal.is_set(), signal.reason, signal.wait(0)) == (True, "cancelled", True)


def test_every_waiting_thread_is_told():
    """A-CTX-2: however many wait at once."""
    for _ in range(50):
        signal = Signal()
        ready = threading.Barrier(9)
        told: list[bool] = []

        def wait(signal=signal, ready=ready, told=told) -> None:
            ready.wait()
            told.append(signal.wait(30))

        threads = [threading.Thread(target=wait) for _ in range(8)]
        for thread in threads:
            thread.start()
        ready.wait()
        signal.set("stop")
        for thread in threads:
            thread.join()
        assert told == [True] * 8


@pytest.mark.anyio
async def test_tasks_are_told():
    """A-CTX-2: those that wait, and those that come afterwards."""
    signal = Signal()
    told: list[str] = []

    async def wait(name: str) -> None:
        await signal.aborted()
        told.append(name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as group:
            group.start_soon(wait, "a")
            group.start_soon(wait, "b")
            await anyio.wait_all_tasks_blocked()
            assert told == []
            signal.set("stop")
        await wait("c")
    assert sorted(told) == ["a", "b", "c"]


@pytest.mark.anyio
async def test_who_gave_up_waiting_leaves_nothing_behind():
    """A-CTX-2: a long run asks often."""
    signal = Signal()
    for _ in range(3):
        signal.wait(0)
        with anyio.CancelScope() as scope:
            scope.cancel()
            await signal.aborted()
    assert signal._listeners == []
