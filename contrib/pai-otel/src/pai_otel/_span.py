"""A span that is open, and how long it has been."""

from __future__ import annotations

from time import perf_counter_ns, time_ns

from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, set_span_in_context
from opentelemetry.util.types import AttributeValue

from pai_otel.genai_names import ERROR_TYPE

__all__ = ("Attributes", "OpenSpan")

Attributes = dict[str, AttributeValue]

_FAILED = Status(StatusCode.ERROR)


class OpenSpan:
    """
    A span that is open. It is nobody's current span: what belongs under it is given its context.

    Args:
        tracer: Makes the span.
        name: Its name.
        parent: The context it stands in; an empty one makes it the root of a trace.
        attributes: What a sampler may look at.
        kind: Its kind.

    Attributes:
        span: The span.
        context: For its children, and for what is measured within it.
    """

    __slots__ = ("__weakref__", "_begun", "_started", "context", "span")

    def __init__(
        self,
        tracer: Tracer,
        name: str,
        parent: Context,
        attributes: Attributes,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> None:
        self._started = time_ns()
        self._begun = perf_counter_ns()
        self.span = tracer.start_span(
            name,
            parent,
            kind,
            attributes,
            start_time=self._started,
            record_exception=False,
            set_status_on_exception=False,
        )
        self.context = set_span_in_context(self.span, parent)

    def elapsed(self) -> int:
        """Nanoseconds since it was opened, by a clock that is never set."""
        return perf_counter_ns() - self._begun

    def fail(self, error: str, text: str | None = None) -> None:
        """
        Say that what it stands for failed.

        Args:
            error: Of what kind: a code or a type.
            text: What more may be told.
        """
        self.span.set_attribute(ERROR_TYPE, error)
        self.span.set_status(_FAILED if text is None else Status(StatusCode.ERROR, text))

    def end(self, elapsed: int | None = None) -> None:
        """
        End it.

        Args:
            elapsed: Nanoseconds after it was opened; ``None``: now.
        """
        self.span.end(self._started + (self.elapsed() if elapsed is None else elapsed))
