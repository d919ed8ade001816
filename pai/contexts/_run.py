"""What hooks are handed about a run, a step and a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, Protocol, TypeVar

import attrs

from pai.contexts._patches import RunPatch
from pai.contexts._read_only import ReadOnly, put
from pai.contexts._records import Records
from pai.definition import MetadataPatch, Signal, ThreadRef
from pai.protocol import Message, Metadata
from pai.schema import JsonObject, JsonValue

__all__ = ("AgentRef", "RunContext", "RunHost", "SubagentRef")

ContextT = TypeVar("ContextT")


@attrs.frozen
class AgentRef:
    """The agent of a run."""

    name: str
    version: str


@attrs.frozen
class SubagentRef:
    """Where the run of a subagent stands."""

    name: str
    run_id: str
    parent_run_id: str


class RunHost(Protocol):
    """What stands behind a run's context: the loop that runs it."""

    @property
    def messages(self) -> Sequence[Message]: ...

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None: ...

    def emit(self, name: str, value: object) -> None: ...

    async def update_metadata(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None: ...

    @property
    def capabilities(self) -> Mapping[str, object]: ...

    def records_of(self, plugin: str) -> Records: ...


class RunContext(ReadOnly, Generic[ContextT]):
    """
    A run, as its hooks see it.

    Attributes:
        runtime_context: What the agent's ``runtime_context`` built; never stored (A-CTX-1).
        identity: Who it is for.
        client_data: What the client sent along: untrusted.
        thread_id: The thread's id.
        signal: Set when the run is to stop.
        agent: Name and version.
        id: The run's id.
        operation: ``send``, ``trigger`` or ``regenerate``; ``resume`` from the second episode on.
        metadata: Both bags of the run.
        started_at: When its first worker took it.
        attempt: 1, and one more for each takeover of the episode.
        episode: 1, and one more for each resume (A-DEF-8).
        parent_run_id: The run that started it.
        subagent: Name, run and parent's run of a subagent; ``None`` at top level.
        options: The options of the call, as JSON.
        answers: Answers to questions of this run, by question id, as JSON.
        thread: The thread: id, title, metadata, age.
        input: The message that started it; ``None`` for a trigger.
        patch: What hooks further left decided in this phase.
    """

    __slots__ = (
        "_host", "_states", "agent", "answers", "attempt", "client_data", "episode", "id", "identity",
        "input", "metadata", "operation", "options", "parent_run_id", "patch",
        "runtime_context", "signal", "started_at", "subagent", "thread", "thread_id",
    )  # fmt: skip

    runtime_context: ContextT
    identity: object
    client_data: object
    thread_id: str
    signal: Signal
    agent: AgentRef
    id: str
    operation: str
    metadata: Metadata
    started_at: datetime
    attempt: int
    episode: int
    parent_run_id: str | None
    subagent: SubagentRef | None
    options: JsonObject
    answers: Mapping[str, JsonValue]
    thread: ThreadRef
    input: Message | None
    patch: RunPatch | None
    _host: RunHost
    _states: dict[int, dict[str, object]]

    def __init__(
        self,
        *,
        runtime_context: ContextT,
        identity: object,
        client_data: object,
        thread_id: str,
        signal: Signal,
        agent: AgentRef,
        id: str,
        operation: str,
        metadata: Metadata,
        started_at: datetime,
        attempt: int,
        episode: int,
        parent_run_id: str | None,
        subagent: SubagentRef | None,
        options: JsonObject,
        answers: Mapping[str, JsonValue],
        thread: ThreadRef,
        input: Message | None,
        host: RunHost,
    ) -> None:
        put(self, "runtime_context", runtime_context)
        put(self, "identity", identity)
        put(self, "client_data", client_data)
        put(self, "thread_id", thread_id)
        put(self, "signal", signal)
        put(self, "agent", agent)
        put(self, "id", id)
        put(self, "operation", operation)
        put(self, "metadata", metadata)
        put(self, "started_at", started_at)
        put(self, "attempt", attempt)
        put(self, "episode", episode)
        put(self, "parent_run_id", parent_run_id)
        put(self, "subagent", subagent)
        put(self, "options", options)
        put(self, "answers", answers)
        put(self, "thread", thread)
        put(self, "input", input)
        put(self, "patch", None)
        put(self, "_host", host)
        put(self, "_states", {})

    @property
    def messages(self) -> Sequence[Message]:
        """The thread's messages up to now, oldest first."""
        return tuple(self._host.messages)

    @property
    def capabilities(self) -> Mapping[str, object]:
        """What the runtime has bound, by the capabilities' ids (A-CAP-2)."""
        return self._host.capabilities

    def write_data(
        self,
        name: str,
        value: object,
        id: str | None = None,
        transient: bool = False,
    ) -> None:
        """
        Show an application data part (A-UI-1).

        Args:
            name: A key of the agent's ``ui_data``.
            value: What its schema describes, as an instance or as JSON.
            id: A part of the same name and id is replaced.
            transient: Shown, not kept in the message.

        Raises:
            InvalidInput: The name is not registered, or the value does not fit (A-UI-2).
        """
        self._host.write_data(name, value, id, transient)

    def emit(self, name: str, value: object) -> None:
        """
        Put a *plugin* event into the log.

        Raises:
            InvalidInput: The value is no strict JSON.
        """
        self._host.emit(name, value)

    async def update_metadata(
        self,
        run: MetadataPatch | None = None,
        thread: MetadataPatch | None = None,
        message: MetadataPatch | None = None,
    ) -> None:
        """
        Patch metadata: merged, checked whole, committed all together or not at all (A-META-5).

        Raises:
            InvalidInput: A result fits its schema no more; nothing is changed.
        """
        await self._host.update_metadata(run, thread, message)

    def state_of(self, owner: int) -> dict[str, object]:
        """The dict of one plugin, for this episode in this process (R-34)."""
        return self._states.setdefault(owner, {})

    def records_of(self, plugin: str) -> Records:
        """The stored rows of one plugin, of this thread."""
        return self._host.records_of(plugin)
