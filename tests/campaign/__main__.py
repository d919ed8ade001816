"""
The kill campaign: ``python -m tests.campaign --kills 1000 [--store sqlite|postgresql|URL]``.

Workers are killed at named places around every transaction and at random moments, some are stopped
past their lease before; then everything is brought to its end and looked at. It fails where
anything is lost or doubled.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import anyio
import attrs

from pai import create_pai

from .checks import Figures, check
from .forking import a_store, fork
from .scripts import KINDS, content
from .watcher import watch
from .worker import LEASE, Life, work
from .workload import Marks, agent

BACKENDS = ("asyncio", "trio")

OPERATIONS = (
    "accept", "claim", "append", "commit", "renew", "cancel", "put", "answer", "update", "label",
    "retitle", "finish",
)  # fmt: skip
PLACES = [
    f"{operation}: {where}"
    for operation in OPERATIONS
    for where in ("before", "statement 1", "statement 2", "statement 3", "written", "after")
]
LONGEST = 2.5
"""Seconds of the longest life."""


@attrs.define
class Child:
    """
    A process of the campaign.

    Args:
        pid: Its number.
        dies: When it is killed, at the latest.
        stops: When it is stopped for longer than its lease, if it is.
    """

    pid: int
    dies: float
    stops: float | None = None
    goes_on: float | None = None


class Campaign:
    """Keeps every slot alive until enough workers were killed."""

    def __init__(self, url: str, folder: Path, kills: int, slots: int, seed: int) -> None:
        self._url = url
        self._folder = folder
        self._kills = kills
        self._slots = slots
        self._chance = random.Random(seed)
        self._log = folder / "log"
        self.killed = 0
        self.stopped = 0
        self.findings: list[str] = []

    def run(self) -> None:
        watcher = fork(watch, self._url, self._folder, log=self._log)
        children: dict[int, Child] = {}
        while self.killed < self._kills:
            for slot in range(self._slots):
                if slot not in children:
                    children[slot] = self._born(slot)
            time.sleep(0.003)
            for slot, child in list(children.items()):
                self._look_after(child)
                if self._ended(child.pid, "a worker"):
                    self.killed += 1
                    del children[slot]
        for child in children.values():
            os.kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
            self.killed += 1
        self._finish()
        (self._folder / "over").touch()
        self._wait(watcher, "the watcher")

    def _born(self, slot: int) -> Child:
        chance, now = self._chance, time.monotonic()
        place: str | None = None
        longest = LONGEST
        match chance.random():
            case x if x < 0.45:
                place = chance.choice(PLACES)
            case x if x < 0.65:
                place = ""  # wherever it is by then
            case _:
                longest = 0.1 + chance.random()
        passing = chance.randrange(1, 200 if place == "" else 12)
        life = Life(
            self._url, self._folder, slot, self._slots, place, passing, True, chance.getrandbits(32)
        )
        backend = chance.choice(BACKENDS)
        child = Child(fork(work, life, log=self._log, backend=backend), now + longest)
        if place is None and chance.random() < 0.2:
            child.stops = now + longest / 2
            child.dies += 3 * LEASE
        return child

    def _look_after(self, child: Child) -> None:
        now = time.monotonic()
        if child.stops is not None and now > child.stops:
            os.kill(child.pid, signal.SIGSTOP)
            child.stops, child.goes_on = None, now + 2 * LEASE
            Marks(self._folder / "marks").add("stopped", child.pid)
            self.stopped += 1
        if child.goes_on is not None and now > child.goes_on:
            os.kill(child.pid, signal.SIGCONT)
            child.goes_on = None
        if now > child.dies:
            os.kill(child.pid, signal.SIGKILL)

    def _ended(self, pid: int, who: str) -> bool:
        found, status = os.waitpid(pid, os.WNOHANG)
        if not found:
            return False
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            self.findings.append(f"{who} ended by itself: {status}")
        return True

    def _finish(self) -> None:
        """Bring everything that is open to its end, with nobody killed any more."""
        pids = []
        for slot in range(self._slots):
            life = Life(self._url, self._folder, slot, self._slots, None, 0, False, 0)
            pids.append(fork(work, life, log=self._log))
        for pid in pids:
            self._wait(pid, "a worker that finishes")

    def _wait(self, pid: int, who: str) -> None:
        until = time.monotonic() + 120
        while time.monotonic() < until:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                if status:
                    self.findings.append(f"{who} failed: {status}")
                return
            time.sleep(0.02)
        self.findings.append(f"{who} did not come to its end")
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def table(figures: Figures, campaign: Campaign, folder: Path, seconds: float) -> str:
    marks = Marks(folder / "marks").lines()
    named = Counter(words[1].replace("_", " ") for words in marks if words[0] == "killed")
    by_operation = Counter(place.partition(":")[0] for place in named.elements())
    rows = {
        "workers killed": campaign.killed,
        "of them at named places": named.total(),
        "different places": len(named),
        "workers stopped past their lease": campaign.stopped,
        "runs": figures.runs,
        "takeovers": figures.takeovers,
        "threads": figures.threads,
        "events": figures.events,
        "tool calls": figures.calls,
        "of them interrupted": figures.interrupted,
        "answers": figures.answers,
        "of them while the run was at work": figures.answered_at_work,
        "bodies of tools that ran": figures.bodies,
        "runs of subagents": figures.subagents,
        "of them cancelled": figures.subagents_cancelled,
        "store errors": sum(words[0] == "error" for words in marks),
        "seconds": round(seconds),
        "findings": len(figures.findings),
    }
    lines = [f"{name:36} {value:>8,}" for name, value in rows.items()]
    lines.append("ends: " + ", ".join(f"{n} {status}" for status, n in figures.statuses.items()))
    lines.append("places: " + ", ".join(f"{n} {name}" for name, n in by_operation.most_common()))
    return "\n".join(lines)


async def warm(url: str, folder: Path) -> None:
    """Make the tables, and load here what all that are forked would load, one by one."""
    marks = Marks(folder / "warm")
    for at in (url, "memory:"):
        async with create_pai(agents={"a": agent(marks)}, store=at, work=at != url) as app:
            if at != url:
                for number in range(len(KINDS)):
                    await (await app.thread("a").send(content(number))).result()


def main() -> None:
    parser = argparse.ArgumentParser(prog="nox -s kill --", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument(
        "--store", default="sqlite", help="sqlite, postgresql, or an empty one's URL"
    )
    parser.add_argument("--slots", type=int, default=3, help="workers at a time")
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--keep", help="a folder for its files, which then stay")
    options = parser.parse_args()
    seed = random.randrange(2**32) if options.seed is None else options.seed
    print(f"{options.kills} kills on {options.store.partition(':')[0]}, --seed {seed}", flush=True)
    with contextlib.ExitStack() as stack:
        if options.keep:
            folder = Path(options.keep)
            folder.mkdir(parents=True)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        url = stack.enter_context(a_store(options.store, folder))
        for backend in BACKENDS:
            anyio.run(warm, url, folder, backend=backend)
        started = time.monotonic()
        campaign = Campaign(url, folder, options.kills, options.slots, seed)
        campaign.run()
        seconds = time.monotonic() - started
        figures = anyio.run(check, url, folder, seed)
        figures.findings += campaign.findings
        figures.findings += [" ".join(words) for words in Marks(folder / "findings").lines()]
        print(table(figures, campaign, folder, seconds))
    if figures.findings:
        sys.exit("\n".join(figures.findings[:40]))


if __name__ == "__main__":
    main()
