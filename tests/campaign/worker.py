"""One life of a worker: it sends, runs whatever is queued, and is killed."""

from __future__ import annotations

import random
import traceback
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import attrs

from pai import Pai, RunResult, ToolCallPart, create_pai
from pai.errors import AnswerConflict, CallsPending, ModelError, StoreError
from pai.protocol import PendingCall, ToolApprovalRequested, ToolSuspended
from pai.runtime import _engines, _side_jobs

from .answering import BROUGHT, answer
from .fail_points import Strike, kill, open_struck
from .scripts import content, kind_of, thread_of
from .workload import Marks, agent

__all__ = ("LEASE", "OPEN", "Life", "Sends", "all_sends", "work")

LEASE = 0.6
"""Seconds; short, so that much is taken over."""

OPEN = 4
"""Runs that a worker follows at once."""


@attrs.frozen
class Life:
    """
    What a worker is told at its birth.

    Args:
        url: The store's.
        folder: Where the campaign keeps its files.
        slot: Whose sends it goes on with, of so many slots.
        slots: How many there are.
        place: Where it kills itself, if anywhere.
        passing: At which passing of it.
        sending: Whether it sends more when all it has sent has ended; else it ends.
        seed: Of what it leaves to chance.
    """

    url: str
    folder: Path
    slot: int
    slots: int
    place: str | None
    passing: int
    sending: bool
    seed: int


class Sends:
    """The sends of one slot, over all its lives: asked for, accepted, ended."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._marks = Marks(life.folder / f"sends-{life.slot}")
        self.told: dict[int, str] = {}
        for number, what in self._marks.lines():
            self.told[int(number)] = what
        self._left = [number for number, what in self.told.items() if what != "ended"]
        self._next = len(self.told)

    def tell(self, number: int, what: str) -> None:
        self._marks.add(number, what)
        self.told[number] = what

    def __iter__(self) -> Iterator[int]:
        """First what an earlier life left, then new ones."""
        while self._left:
            yield self._left.pop(0)
        while self._life.sending:
            number = self._next * self._life.slots + self._life.slot
            self._next += 1
            yield number


async def work(life: Life) -> None:
    """Live until everything has ended, or for ever."""
    _engines.POLL = 0.05
    _side_jobs.POLL = 0.1
    _side_jobs.BACK_OFF = (0.1, 0.2, 0.5)
    marks = Marks(life.folder / "marks")
    chance = random.Random(life.seed)

    def struck(place: str) -> None:
        marks.add("killed", place.replace(" ", "_"))
        kill()

    def reported(error: BaseException) -> None:
        if not isinstance(error, (ModelError, RuntimeError)):  # those that scripts raise
            place = traceback.extract_tb(error.__traceback__)[-1]
            where = f"{Path(place.filename).name}:{place.lineno}"
            marks.add("error", type(error).__name__, where, str(error).replace(" ", "_"))

    strike = Strike(life.place or "", life.passing if life.place is not None else 0, struck)
    store, points = open_struck(life.url, strike)
    sends = Sends(life)
    numbers = iter(sends)
    async with create_pai(
        agents={"a": agent(marks)}, store=store, lease=LEASE, on_runtime_error=reported
    ) as app:

        async def follow() -> None:
            for number in numbers:
                while True:
                    try:
                        await _one(app, sends, number, chance, marks)
                    except CallsPending:
                        # Whoever asked for that run answers; until then its thread takes no other.
                        await anyio.sleep(0.05)
                    except StoreError as error:
                        # A stopped worker may hold SQLite's lock; the caller asks again.
                        reported(error)
                    else:
                        break

        async with anyio.create_task_group() as group:
            for _ in range(OPEN):
                group.start_soon(follow)
        # All runs have ended; what they left to be done has not, perhaps.
        with anyio.move_on_after(30):
            while await points.read(_jobs):  # noqa: ASYNC110  # nobody tells
                await anyio.sleep(0.1)


def _jobs(connection: Any) -> int:
    count: int = connection.execute("SELECT count(*) FROM jobs").fetchone()[0]
    return count


async def _one(app: Pai, sends: Sends, number: int, chance: random.Random, marks: Marks) -> None:
    thread = app.thread("a", thread_id=thread_of(number))
    run_id = f"r-{number}"
    if sends.told.get(number) != "accepted":
        sends.tell(number, "asked")
        # The same again, if an earlier life was killed before it knew.
        await thread.send(content(number), run_id=run_id, client_tools=[BROUGHT])
        sends.tell(number, "accepted")
    run: Any = await thread.run(run_id)
    if kind_of(number) in ("cancelled", "undone"):
        await anyio.sleep(chance.random() * 0.2)
        await run.cancel("user")
    if number % 4 == 0:
        # Beside the runs: another's metadata must not be lost by it, nor it by another's.
        await thread.update_metadata(public={"edited": number})
        await thread.rename(f"title {number}")
    if chance.random() < 0.5:
        # What waits is shown while others of the same step are at work, and may be answered.
        async for event in run.events():
            if isinstance(event, (ToolSuspended, ToolApprovalRequested)):
                await _answered(thread, run, (await thread.state()).pending, chance)
                break
    while (result := await run.result()).pending:
        _seen(marks, result)
        await _answered(thread, run, result.pending, chance)
    _seen(marks, result)
    sends.tell(number, "ended")


async def _answered(
    thread: Any, run: Any, pending: Sequence[PendingCall], chance: random.Random
) -> None:
    if not (own := [call for call in pending if call.run_id == run.id]):
        return
    try:
        await answer(run, own, chance)
    except AnswerConflict:
        (now,) = [item for item in (await thread.state()).runs if item.id == run.id]
        if now.finished_at is None:
            raise


def _seen(marks: Marks, result: RunResult) -> None:
    """Leave a mark of each call whose end was told: from now on, nothing of it runs."""
    for part in () if result.message is None else result.message.parts:
        if isinstance(part, ToolCallPart) and part.outcome is not None:
            marks.add("finished", result.run_id, part.call_id)


def all_sends(folder: Path) -> dict[str, set[int]]:
    """What was asked for and what was accepted, of all slots."""
    found: dict[str, set[int]] = defaultdict(set)
    for path in folder.glob("sends-*"):
        for number, what in Marks(path).lines():
            found[what].add(int(number))
    return found
