"""What the tests of this plugin share: everything that was recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pai_otel import Telemetry, otel


class Opened(SpanProcessor):
    """Knows the spans that are open."""

    def __init__(self) -> None:
        self.spans: dict[int, str] = {}

    def on_start(self, span: Span, parent_context: object = None) -> None:
        self.spans[span.context.span_id] = span.name

    def on_end(self, span: ReadableSpan) -> None:
        del self.spans[span.context.span_id]


class Recorder:
    """Providers that keep all in memory."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self._opened = Opened()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider(shutdown_on_exit=False)
        self.tracers.add_span_processor(self._opened)
        self.tracers.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.tracer = self.tracers.get_tracer("test")

    def plugin(self, *, content: bool = False) -> Telemetry:
        return otel(tracer_provider=self.tracers, meter_provider=self.meters, content=content)

    @property
    def open(self) -> list[str]:
        return sorted(self._opened.spans.values())

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    def named(self, prefix: str) -> list[ReadableSpan]:
        """The spans of a name, in the order in which they were opened."""
        found = [span for span in self.spans if span.name.startswith(prefix)]
        return sorted(found, key=lambda span: span.start_time or 0)

    def one(self, prefix: str) -> ReadableSpan:
        [span] = self.named(prefix)
        return span

    def points(self, metric: str) -> list[Any]:
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for found in scope.metrics
            if found.name == metric
            for point in found.data.data_points
        ]

    def everything(self) -> str:
        """All that an exporter could write, as one text."""
        data = self._reader.get_metrics_data()
        metrics = json.loads(data.to_json()) if data is not None else None
        return json.dumps([*[json.loads(span.to_json()) for span in self.spans], metrics])


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()
