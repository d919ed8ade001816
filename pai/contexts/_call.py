"""What hooks are handed about a tool call."""

from __future__ import annotations

from typing import Generic, TypeVar

from pai.contexts._read_only import ReadOnly, put
from pai.contexts._records import Records
from pai.contexts._run import RunContext
from pai.definition import Signal
from pai.protocol import CallOutcome
from pai.schema import JsonValue

__all__ = ("ToolCallContext", "ToolResultContext")

ContextT = TypeVar("ContextT")


class ToolCallContext(ReadOnly, Generic[ContextT]):
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

    run: RunContext[ContextT]
    step_index: int
    tool: str
    call_id: str
    input: object
    raw_input: JsonValue

    def __init__(
        self,
        run: RunContext[ContextT],
        step_index: int,
        tool: str,
        call_id: str,
        input: object,
        raw_input: JsonValue,
    ) -> None:
        put(self, "run", run)
        put(self, "step_index", step_index)
        put(self, "tool", tool)
        put(self, "call_id", call_id)
        put(self, "input", input)
        put(self, "raw_input", raw_input)

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

    def records_of(self, plugin: str) -> Records:
        """See :meth:`RunContext.records_of`."""
        return self.run.records_of(plugin)


class ToolResultContext(ToolCallContext[ContextT]):
    """
    A tool call, after it ran or was kept from running.

    Attributes:
        outcome: How it ended.
        output: Its output as JSON, for *completed* and *skipped*.
        error: What the model will be told otherwise.
    """

    __slots__ = ("error", "outcome", "output")

    outcome: CallOutcome
    output: JsonValue
    error: str | None

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
        put(self, "outcome", outcome)
        put(self, "output", output)
        put(self, "error", error)
