"""The span of a run, and what is open below it."""

from __future__ import annotations

from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Tracer

from pai import RunContext, RunOutcome
from pai_otel import genai_names as names
from pai_otel._chat import Chat
from pai_otel._finish import CANCELLED
from pai_otel._meters import Meters
from pai_otel._span import Attributes, OpenSpan
from pai_otel._tool import ToolSpan
from pai_otel._usage import usage_attributes

__all__ = ("RunSpan",)

LEFT = "left"
"""The kind of error of a run that this process left to others: it did not settle here."""


class RunSpan(OpenSpan):
    """
    One episode of a run in this process, from *run_started* to *run_settled*.

    Args:
        tracer: Makes the span.
        parent: The context of whoever sent the run; an empty one where that is not known.
        run: The run.

    Attributes:
        tools: Calls that have not settled, by their ids.
        waiting: The model call whose step is not committed yet, where content is recorded.
    """

    __slots__ = ("_measured", "tools", "waiting")

    def __init__(self, tracer: Tracer, parent: Context, run: RunContext[Any]) -> None:
        self._measured: Attributes = {
            names.OPERATION_NAME: names.INVOKE_AGENT,
            names.AGENT_NAME: run.agent.name,
        }
        attributes: Attributes = {
            **self._measured,
            names.AGENT_VERSION: run.agent.version,
            names.CONVERSATION_ID: run.thread_id,
            names.RUN_ID: run.id,
            names.RUN_OPERATION: run.operation,
            names.RUN_ATTEMPT: run.attempt,
            names.RUN_EPISODE: run.episode,
        }
        name = f"{names.INVOKE_AGENT} {run.agent.name}"
        super().__init__(tracer, name, parent, attributes)
        self.tools: dict[str, ToolSpan] = {}
        self.waiting: Chat | None = None

    def settle(self, meters: Meters, result: RunOutcome) -> None:
        """The run has ended, and with it all that is open below."""
        self.span.set_attribute(names.RUN_STATUS, result.status)
        if result.stop_reason is not None:
            self.span.set_attribute(names.RUN_STOP_REASON, result.stop_reason)
        self.span.set_attributes(usage_attributes(result.usage))
        error = None
        if result.status == "failed":
            error = str((result.error or {}).get("code", "failed"))
        elif result.status == "cancelled":
            error = CANCELLED
        self._close(meters, error)

    def leave(self, meters: Meters) -> None:
        """The run goes on elsewhere, or nowhere: nobody told us of its end."""
        self._close(meters, LEFT)

    def let_go(self) -> None:
        """The model call that waits for its step waits no longer."""
        waiting, self.waiting = self.waiting, None
        if waiting is not None:
            waiting.let_go()

    def _close(self, meters: Meters, error: str | None) -> None:
        elapsed = self.elapsed()
        self.let_go()
        for tool in self.tools.values():
            tool.fail(error or LEFT)
            tool.end()
        self.tools.clear()
        if error is not None:
            self.fail(error)
            self._measured[names.ERROR_TYPE] = error
        meters.runs.record(elapsed / 1e9, self._measured, self.context)
        self.end(elapsed)
