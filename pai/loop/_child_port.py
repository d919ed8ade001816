"""What the loop asks of the runtime for the runs of subagents (O-20)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from pai.errors import PaiError
from pai.protocol import Decision, Event, PendingCall, RunRecord, ThreadKey, Usage
from pai.schema import JsonObject, JsonValue

__all__ = ("Child", "ChildEnd", "Children", "NoChildren")


class ChildEnd(NamedTuple):
    """
    Where the run of a subagent has come to.

    Args:
        status: ``suspended``, or how it ended.
        value: Its structured output, else its text.
        reason: Why it was blocked or cancelled.
        pending: What it waits for.
        usage: What it used.
    """

    status: str
    value: JsonValue
    reason: str | None
    pending: Sequence[PendingCall]
    usage: Usage | None


class Child(Protocol):
    """The run of a subagent."""

    async def answer(self, decisions: Sequence[Decision]) -> None:
        """Store answers; those that are stored already do no harm."""

    async def ended(self, tell: Callable[[Event], None]) -> ChildEnd:
        """Wait until it ends or waits itself; *tell* gets its events."""

    async def cancel(self, reason: str) -> None:
        """Cancel it."""


class Children(Protocol):
    """What starts the runs of subagents: the runtime."""

    async def start(
        self,
        key: ThreadKey,
        run: RunRecord,
        agent: str,
        name: str,
        run_id: str,
        task: str,
        ref: JsonObject,
    ) -> Child:
        """
        Start a run, or find the one of this id.

        Args:
            key: The thread of its parent.
            run: Its parent.
            agent: The key of its parent's agent.
            name: The subagent.
            run_id: Its id, and its thread's.
            task: Its message.
            ref: What its context says of where it stands.
        """

    async def cancel(self, key: ThreadKey, run_id: str, reason: str) -> None:
        """
        Cancel the run of a subagent, if there is one.

        Args:
            key: Its thread.
            run_id: It.
            reason: Why.
        """

    async def of_thread(self, key: ThreadKey, agent: str) -> list[tuple[ThreadKey, str]]:
        """
        The threads of subagents that a thread's runs have started.

        Args:
            key: The thread.
            agent: The key of its agent.

        Returns:
            The key of each, and of its agent.
        """


class NoChildren:
    """Where there are no subagents."""

    async def start(
        self,
        key: ThreadKey,
        run: RunRecord,
        agent: str,
        name: str,
        run_id: str,
        task: str,
        ref: JsonObject,
    ) -> Child:
        raise PaiError(f"no subagent can be run here: {name!r}")

    async def cancel(self, key: ThreadKey, run_id: str, reason: str) -> None:
        """Nothing to cancel."""

    async def of_thread(self, key: ThreadKey, agent: str) -> list[tuple[ThreadKey, str]]:
        """None."""
        return []
