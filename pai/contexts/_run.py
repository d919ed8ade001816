"""What hooks are handed about a run, a step and a call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Generic, Literal, Protocol, TypeVar

import attrs

from pai.contexts._patches import RunPatch, StepPatch
from pai.definition import MetadataPatch, Signal
from pai.ports import ModelRequest
from pai.protocol import CallOutcome, Message, Metadata, Usage
from pai.schema import JsonObject, JsonValue

__all__ = (
    "AgentRef",
    "AsideItem",
    "RunContext",
    "RunHost",
    "RunOutcome",
    "StepContext",
    "StepOutcome",
    "ThreadRef",
    "ToolCallContext",
    "ToolResultContext",
)

ContextT = TypeVar("ContextT")


@attrs.frozen
class AgentRef:
    """The agent of a run."""

    name: str
    version: str


@attrs.frozen(eq=False)
class ThreadRef:
    """The thread of a run; hooks see both bags of its metadata (A-META-7)."""

    id: str
    title: str | None
    title_source: str | None
    metadata: Metadata
    created_at: datetime


class RunHost(Protocol):
    """What stands behind a run's context: the loop that runs it."""

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None: ...  # noqa: A002

    def emit(self, name: str, value: object) -> None: ...

    async def update_metadata(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None: ...


class RunContext(Generic[ContextT]):
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
        operation: ``send``, ``trigger``, ``regenerate`` or ``resume``.
        metadata: Both bags of the run.
        started_at: When its first worker took it.
        attempt: 1, and one more for each takeover.
        episode: 1, and one more for each resume (A-DEF-8).
        parent_run_id: The run that started it.
        subagent: ``None`` at top level.
        options: The options of the call, as JSON.
        thread: The thread: id, title, metadata, age.
        input: The message that started it; ``None`` for a trigger.
        messages: The thread's messages up to now, oldest first.
        patch: What hooks further left decided in this phase.
    """

    __slots__ = (
        "_host", "_states", "agent", "attempt", "client_data", "episode", "id", "identity",
        "input", "messages", "metadata", "operation", "options", "parent_run_id", "patch",
        "runtime_context", "signal", "started_at", "subagent", "thread", "thread_id",
    )  # fmt: skip

    patch: RunPatch | None

    def __init__(
        self,
        *,
        runtime_context: ContextT,
        identity: object,
        client_data: object,
        thread_id: str,
        signal: Signal,
        agent: AgentRef,
        id: str,  # noqa: A002  # fixed public names
        operation: str,
        metadata: Metadata,
        started_at: datetime,
        attempt: int,
        episode: int,
        parent_run_id: str | None,
        options: JsonObject,
        thread: ThreadRef,
        input: Message | None,  # noqa: A002  # fixed public names
        messages: Sequence[Message],
        host: RunHost,
    ) -> None:
        self.runtime_context = runtime_context
        self.identity = identity
        self.client_data = client_data
        self.thread_id = thread_id
        self.signal = signal
        self.agent = agent
        self.id = id
        self.operation = operation
        self.metadata = metadata
        self.started_at = started_at
        self.attempt = attempt
        self.episode = episode
        self.parent_run_id = parent_run_id
        self.subagent: None = None
        self.options = options
        self.thread = thread
        self.input = input
        self.messages = messages
        self.patch = None
        self._host = host
        self._states: dict[int, dict[str, object]] | None = None

    def write_data(
        self,
        name: str,
        value: object,
        id: str | None = None,  # noqa: A002  # fixed public names
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
        states = self._states
        if states is None:
            states = self._states = {}
        state = states.get(owner)
        if state is None:
            state = states[owner] = {}
        return state


class StepContext(Generic[ContextT]):
    """
    One step of a run: a model call and what came of it.

    Attributes:
        run: The run.
        index: From 0 in each episode.
        kind: ``model``, or ``output`` for a call that only makes the structured output.
        request: What the model will be asked, with all patches so far.
        usage: What the run has used so far.
        patch: What hooks further left decided in this phase.
    """

    __slots__ = ("index", "kind", "patch", "request", "run", "usage")

    def __init__(
        self, run: RunContext[ContextT], index: int, request: ModelRequest, usage: Usage
    ) -> None:
        self.run = run
        self.index = index
        self.kind: Literal["model", "output"] = "model"
        self.request = request
        self.usage = usage
        self.patch: StepPatch | None = None

    def asking(self, request: ModelRequest) -> StepContext[ContextT]:
        """The same step with another request: what an inner layer of a model call is shown."""
        step = StepContext(self.run, self.index, request, self.usage)
        step.kind = self.kind
        step.patch = self.patch
        return step

    @property
    def runtime_context(self) -> ContextT:
        """The run's context."""
        return self.run.runtime_context

    @property
    def identity(self) -> object:
        """Who the run is for."""
        return self.run.identity

    @property
    def client_data(self) -> object:
        """What the client sent along."""
        return self.run.client_data

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.run.thread_id

    @property
    def signal(self) -> Signal:
        """Set when the run is to stop."""
        return self.run.signal

    def state_of(self, owner: int) -> dict[str, object]:
        """See :meth:`RunContext.state_of`."""
        return self.run.state_of(owner)


class ToolCallContext(Generic[ContextT]):
    """
    A tool call, before it runs.

    Attributes:
        run: The run.
        step_index: The step that made it.
        tool: The tool's name.
        call_id: Unique within the run.
        input: The checked input: an instance of the tool's input class, or a dict of arguments.
        raw_input: The input as JSON.
    """

    __slots__ = ("call_id", "input", "raw_input", "run", "step_index", "tool")

    def __init__(
        self,
        run: RunContext[ContextT],
        step_index: int,
        tool: str,
        call_id: str,
        input: object,  # noqa: A002  # fixed public names
        raw_input: JsonValue,
    ) -> None:
        self.run = run
        self.step_index = step_index
        self.tool = tool
        self.call_id = call_id
        self.input = input
        self.raw_input = raw_input

    @property
    def runtime_context(self) -> ContextT:
        """The run's context."""
        return self.run.runtime_context

    @property
    def identity(self) -> object:
        """Who the run is for."""
        return self.run.identity

    @property
    def client_data(self) -> object:
        """What the client sent along."""
        return self.run.client_data

    @property
    def thread_id(self) -> str:
        """The thread's id."""
        return self.run.thread_id

    @property
    def signal(self) -> Signal:
        """Set when the run is to stop."""
        return self.run.signal

    def state_of(self, owner: int) -> dict[str, object]:
        """See :meth:`RunContext.state_of`."""
        return self.run.state_of(owner)


class ToolResultContext(ToolCallContext[ContextT]):
    """
    A tool call, after it ran or was kept from running.

    Attributes:
        outcome: How it ended.
        output: Its output as JSON, for *completed* and *skipped*.
        error: What the model will be told otherwise.
    """

    __slots__ = ("error", "outcome", "output")

    def __init__(
        self,
        call: ToolCallContext[ContextT],
        outcome: CallOutcome,
        output: JsonValue = None,
        error: str | None = None,
    ) -> None:
        super().__init__(
            call.run, call.step_index, call.tool, call.call_id, call.input, call.raw_input
        )
        self.outcome = outcome
        self.output = output
        self.error = error


@attrs.frozen(eq=False)
class StepOutcome:
    """How a step ended: what ``step_finished`` is handed."""

    reason: str
    usage: Usage | None
    message: Message


@attrs.frozen(eq=False)
class RunOutcome:
    """How a run ended: what ``run_settled`` is handed."""

    status: Literal["completed", "failed", "cancelled", "blocked"]
    outcome: str | None
    reason: str | None
    stop_reason: str | None
    usage: Usage
    error: Mapping[str, JsonValue] | None


@attrs.frozen(eq=False)
class AsideItem:
    """
    Something written beside the step's stream: what ``transform_aside`` is handed.

    Args:
        kind: What it is.
        value: Its JSON; text for titles, labels and errors.
        name: The data part's or tool's name, where there is one.
    """

    kind: Literal["data", "progress", "title", "label", "error", "suspend", "rename"]
    value: JsonValue
    name: str | None = None
