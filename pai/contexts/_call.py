"""What hooks are handed about a tool call."""

from __future__ import annotations

from typing import TypeVar

from pai.contexts._of_run import OfRun
from pai.contexts._read_only import put
from pai.contexts._run import RunContext
from pai.protocol import CallOutcome
from pai.schema import JsonValue

__all__ = ("ToolCallContext", "ToolResultContext")

ContextT = TypeVar("ContextT")


class ToolCallContext(OfRun[ContextT]):
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

    __slots__ = ("call_id", "input", "raw_input", "step_index", "tool")

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
