"""A process that watches every thread from its first event, and lives through it all (R-25)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio

from pai import Pai, create_pai
from pai.protocol import Event, ThreadState, fold

from .workload import Marks, agent

__all__ = ("AGENTS", "thread_ids", "watch")

AGENTS = ("a", "a/helper")
"""The agent of a campaign, and its subagent."""


class View:
    """What a watcher knows of a thread."""

    def __init__(self) -> None:
        self.state: ThreadState | None = None
        self.cursor = 0
        self._events: list[Event] = []

    def add(self, event: Event, findings: Marks) -> None:
        if event.seq != self.cursor + 1:
            findings.add(f"event {event.seq} came after event {self.cursor}")
        self.cursor = event.seq
        self._events.append(event)
        # Somewhere in the middle of things.
        if self.cursor % 7 == 0:
            self.fold()

    def fold(self) -> None:
        self.state = fold(self.state, self._events)
        self._events = []


async def watch(url: str, folder: Path) -> None:
    """Watch until the file ``over`` is there; then compare what was seen with what is."""
    findings = Marks(folder / "findings")
    views: dict[tuple[str, str], View] = {}
    app = create_pai(agents={"a": agent(findings)}, store=url, work=False)
    async with app, anyio.create_task_group() as group:

        async def follow(agent: str, thread_id: str, view: View) -> None:
            async for event in app.thread(agent, thread_id=thread_id).events():
                view.add(event, findings)

        over = False
        while not over:
            over = (folder / "over").exists()
            for name in AGENTS:
                for thread_id in await thread_ids(app, name):
                    if (name, thread_id) not in views:
                        view = views[name, thread_id] = View()
                        group.start_soon(follow, name, thread_id, view)
            await anyio.sleep(0.1)
        for (name, thread_id), view in views.items():
            for fault in await _compared(app, name, thread_id, view):
                findings.add(thread_id, fault)
        group.cancel_scope.cancel()
    Marks(folder / "watched").add(len(views), sum(view.cursor for view in views.values()))


async def _compared(app: Pai, agent: str, thread_id: str, view: View) -> Iterator[str]:
    state = await app.thread(agent, thread_id=thread_id).state()
    with anyio.move_on_after(10):
        while view.cursor < state.cursor:  # noqa: ASYNC110  # as a watcher's user would
            await anyio.sleep(0.05)
    view.fold()
    if view.cursor != state.cursor:
        return iter([f"the watcher saw {view.cursor} of {state.cursor} events"])
    return iter([] if view.state == state else ["the watcher's view is not the state"])


async def thread_ids(app: Any, agent: str = "a") -> list[str]:
    found: list[str] = []
    after: str | None = None
    while True:
        page = await app.threads(agent, limit=100, after=after)
        found += [item.id for item in page.items]
        after = page.after
        if after is None:
            return found
