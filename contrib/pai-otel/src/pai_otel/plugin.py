"""The plugin: spans and metrics of runs, model calls and tool calls."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from importlib.metadata import version
from typing import Any, Final

import attrs
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import TracerProvider, get_tracer

from pai import (
    Message,
    ModelRequest,
    RunContext,
    RunOutcome,
    StepContext,
    StepOutcome,
    StreamPart,
    ToolCallPart,
    ToolResultContext,
    hookimpl,
)
from pai_otel._chat import Chat
from pai_otel._meters import Meters
from pai_otel._open_runs import Hold, OpenRuns
from pai_otel._run import RunSpan
from pai_otel._senders import Senders
from pai_otel._tool import ToolSpan

__all__ = ("Options", "Telemetry", "otel", "register_lifecycle")

log = logging.getLogger("pai.otel")

_KEY = "run"
"""Where the state of an episode holds the run's span."""


class Telemetry:
    """
    Makes the spans.

    A run's span is kept in ``state``, and its children are told of it: no span is ever the current
    one over an await or a yield (R-28). Observers can't fail a run, and the two other hooks keep
    what goes wrong here to themselves.
    """

    name = "otel"

    def __init__(
        self,
        tracer_provider: TracerProvider | None,
        meter_provider: MeterProvider | None,
        *,
        content: bool,
    ) -> None:
        dist = version("pai-otel")
        self._tracer: Final = get_tracer("pai_otel", dist, tracer_provider)
        self._meters: Final = Meters(get_meter("pai_otel", dist, meter_provider))
        self._content: Final = content
        self._senders: Final = Senders()
        self._runs: Final = OpenRuns(self._meters)

    # ------------------------------------------------------------------ runs

    @hookimpl(tryfirst=True)
    def accept_message(self, message: Message) -> None:
        """Note who sends the run: its span belongs below the span that is current here."""
        try:
            self._senders.note(message.run_id)
        except Exception as error:
            _hide(error)

    @hookimpl(tryfirst=True)
    def run_started(self, run: RunContext[Any], state: dict[str, object]) -> None:
        """Open the run's span."""
        self._runs.sweep()
        span = RunSpan(self._tracer, self._senders.parent(run.id, run.operation), run)
        state[_KEY] = self._runs.add(span)

    @hookimpl(trylast=True)
    def run_settled(
        self, run: RunContext[Any], result: RunOutcome, state: dict[str, object]
    ) -> None:
        """Close it, with what is still open below."""
        span = _span_of(state)
        if span is not None:
            self._runs.discard(span)
            del state[_KEY]
            span.settle(self._meters, result)

    # ------------------------------------------------------------------ model calls

    @hookimpl(trylast=True)
    async def wrap_model_call(
        self,
        step: StepContext[Any],
        call_model: Callable[[ModelRequest], AsyncIterator[StreamPart]],
        state: dict[str, object],
    ) -> AsyncIterator[StreamPart]:
        """
        Pass the stream on as it is, and measure it.

        It stands innermost, so that each try of a plugin outside is a call of its own.
        """
        run = _span_of(state)
        chat = None if run is None else self._begin(run, step)
        last: StreamPart | None = None
        try:
            async for part in call_model(step.request):
                if last is None and chat is not None:
                    chat.saw_first()
                last = part
                yield part
        except BaseException as error:
            _finish(run, chat, last, error)
            raise
        _finish(run, chat, last)

    def _begin(self, run: RunSpan, step: StepContext[Any]) -> Chat | None:
        try:
            run.let_go()
            return Chat(self._tracer, self._meters, run.context, step, content=self._content)
        except Exception as error:
            _hide(error)
            return None

    @hookimpl(trylast=True)
    def step_finished(
        self, step: StepContext[Any], outcome: StepOutcome, state: dict[str, object]
    ) -> None:
        """Close the span of the step's model call, and open one for each call it made."""
        run = _span_of(state)
        if run is None:
            return
        waiting, run.waiting = run.waiting, None
        if waiting is not None:
            waiting.commit(outcome.message, outcome.reason)
        offered: set[str] | None = None
        for part in outcome.message.parts:
            if type(part) is ToolCallPart and part.outcome is None and not part.provider_executed:
                if offered is None:
                    offered = {spec.name for spec in step.request.tools}
                run.tools[part.call_id] = self._tool(
                    run, step.run, part.tool, part.call_id, is_known=part.tool in offered
                )

    # ------------------------------------------------------------------ tool calls

    @hookimpl(tryfirst=True)
    def tool_settled(self, result: ToolResultContext[Any], state: dict[str, object]) -> None:
        """Close the span of a call; one that never came to be run gets one now."""
        run = _span_of(state)
        if run is None:
            return
        span = run.tools.pop(result.call_id, None)
        if span is None:
            span = self._tool(run, result.run, result.tool, result.call_id, is_known=False)
        span.settle(self._meters, result, content=self._content)

    def _tool(
        self, span: RunSpan, run: RunContext[Any], tool: str, call_id: str, *, is_known: bool
    ) -> ToolSpan:
        return ToolSpan(self._tracer, span.context, run, tool, call_id, is_known=is_known)


def _span_of(state: dict[str, object]) -> RunSpan | None:
    held = state.get(_KEY)
    return held.span if isinstance(held, Hold) else None


def _finish(
    run: RunSpan | None,
    chat: Chat | None,
    last: StreamPart | None,
    error: BaseException | None = None,
) -> None:
    if run is None or chat is None:
        return
    try:
        if chat.finish(last, error):
            run.let_go()
            run.waiting = chat
    except Exception as failure:
        _hide(failure)


def _hide(error: Exception) -> None:
    """What fails here must not fail a run; the log is told its kind."""
    log.error("a span was lost: %s", type(error).__name__)


def otel(
    *,
    tracer_provider: TracerProvider | None = None,
    meter_provider: MeterProvider | None = None,
    content: bool = False,
) -> Telemetry:
    """
    Make a plugin that records spans and metrics.

    Args:
        tracer_provider: Makes the spans; ``None``: the global one, also if it is set later.
        meter_provider: Takes the metrics; ``None``: the global one, also if it is set later.
        content: Record instructions, messages, and what tools are given and give.
    """
    return Telemetry(tracer_provider, meter_provider, content=content)


@attrs.frozen
class Options:
    """
    What a configuration file may say; see :func:`otel`.

    Args:
        content: Record content.
    """

    content: bool = False


@hookimpl
def register_lifecycle(options: object) -> Telemetry:
    """Give the plugin that the options describe."""
    chosen = options if isinstance(options, Options) else Options()
    return otel(content=chosen.content)
