"""The span of a tool call, and how a tool gets at it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from weakref import WeakValueDictionary

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, Tracer, use_span

from pai import RunContext, ToolContext, ToolResultContext
from pai.schema import JsonValue
from pai_otel import genai_names as names
from pai_otel._content import as_json
from pai_otel._meters import Meters
from pai_otel._span import Attributes, OpenSpan

__all__ = ("ToolSpan", "tool_span")

_OPEN: Final[WeakValueDictionary[tuple[str, str, str], ToolSpan]] = WeakValueDictionary()
"""The calls that have not settled, by thread, run and call."""

_NOT_RUN: Final = frozenset({"denied", "skipped", "truncated"})


class ToolSpan(OpenSpan):
    """
    One tool call, from the commit of its step until its result is committed.

    Args:
        tracer: Makes the span.
        parent: The context of the run's span.
        run: The run.
        tool: The tool's name, as the model wrote it.
        call_id: The call's id.
        is_known: The tool was offered: its name may stand in a metric.
    """

    __slots__ = ("_is_known", "_measured")

    def __init__(
        self,
        tracer: Tracer,
        parent: Context,
        run: RunContext[Any],
        tool: str,
        call_id: str,
        *,
        is_known: bool,
    ) -> None:
        self._measured: Attributes = {
            names.OPERATION_NAME: names.EXECUTE_TOOL,
            names.TOOL_NAME: tool,
            names.TOOL_TYPE: "function",
            names.AGENT_NAME: run.agent.name,
        }
        attributes: Attributes = {
            **self._measured,
            names.TOOL_CALL_ID: call_id,
            names.CONVERSATION_ID: run.thread_id,
        }
        super().__init__(tracer, f"{names.EXECUTE_TOOL} {tool}", parent, attributes)
        self._is_known = is_known
        _OPEN[run.thread_id, run.id, call_id] = self

    def settle(self, meters: Meters, result: ToolResultContext[Any], *, content: bool) -> None:
        """The result is committed: what is told of it is what the model is told (A-LIFE-6)."""
        elapsed, outcome = self.elapsed(), result.outcome
        self.span.set_attribute(names.TOOL_OUTCOME, outcome)
        if content and self.span.is_recording():
            shown: JsonValue = result.output if result.error is None else {"error": result.error}
            self.span.set_attribute(names.TOOL_CALL_ARGUMENTS, as_json(result.raw_input))
            self.span.set_attribute(names.TOOL_CALL_RESULT, as_json(shown))
        if result.error is not None:
            self.fail(outcome, result.error if content else None)
            self._measured[names.ERROR_TYPE] = outcome
        if self._is_known and outcome not in _NOT_RUN:
            meters.tools.record(elapsed / 1e9, self._measured, self.context)
        self.end(elapsed)


@contextmanager
def tool_span(ctx: ToolContext[Any]) -> Iterator[Span]:
    """
    Make the span of a tool's call the current one, for the code within.

    Nothing is recorded of what that code raises. Without the plugin, or once the call has settled,
    nothing is changed, and the span given is one that takes everything and keeps nothing.

    Args:
        ctx: What the tool was handed as its first argument.
    """
    found = _OPEN.get((ctx.thread_id, ctx.run_id, ctx.call_id))
    if found is None:
        yield INVALID_SPAN
        return
    with use_span(found.span, record_exception=False, set_status_on_exception=False) as span:
        yield span
