"""What stands behind a subagent: the runtime that runs it (O-20)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol

from pai.protocol import Event, ThreadKey, Usage
from pai.schema import JsonObject, JsonValue

__all__ = ("Child", "ChildRest", "Children")


class ChildRest(NamedTuple):
    """Where a child's run rests: settled, or waiting for answers."""

    status: str
    value: JsonValue
    usage: Usage | None
    pending: list[JsonObject]


class Child(Protocol):
    """A run of a subagent."""

    @property
    def run_id(self) -> str: ...

    @property
    def thread_id(self) -> str: ...

    def events(self) -> AsyncIterator[Event]:
        """What it tells from now on, until it rests."""

    async def rest(self) -> ChildRest: ...

    async def answer(self, answers: JsonValue) -> None:
        """
        Give it answers to what it waits for, in their JSON form.

        Raises:
            InvalidInput: They are none.
        """

    async def cancel(self, reason: str) -> None: ...


class Children(Protocol):
    """Starts runs of subagents."""

    async def start(self, episode: Any, name: str, content: str, child_id: str) -> Child:
        """A run with this id; one that is there already is the same."""

    async def cancel_waiting(self, key: ThreadKey, run_id: str, reason: str) -> None:
        """Cancel what a run has started that was cancelled while it waited for answers."""

    async def cancel_all(self, episode: Any, reason: str) -> None:
        """Cancel what the run's open calls have started."""
