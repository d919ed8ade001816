"""OpenTelemetry spans and metrics of runs, model calls and tool calls, by the GenAI conventions."""

from pai_otel._tool import tool_span
from pai_otel.plugin import Options, Telemetry, otel

__all__ = ("Options", "Telemetry", "otel", "tool_span")
