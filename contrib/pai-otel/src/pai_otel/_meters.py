"""The instruments that metrics are recorded with."""

from __future__ import annotations

from opentelemetry.metrics import Histogram, Meter

from pai_otel import genai_names as names

__all__ = ("Meters",)


class Meters:
    """
    The instruments.

    Attributes:
        tokens: Tokens of a model call, read and written.
        calls: Seconds of a model call.
        first_chunks: Seconds until its first part.
        runs: Seconds of a run.
        tools: Seconds of a tool call.
    """

    __slots__ = ("calls", "first_chunks", "runs", "tokens", "tools")

    def __init__(self, meter: Meter) -> None:
        self.tokens = meter.create_histogram(
            names.TOKEN_USAGE,
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BOUNDARIES,
        )
        self.calls = _seconds(meter, names.OPERATION_DURATION, "Duration of a model call.")
        self.first_chunks = _seconds(
            meter, names.TIME_TO_FIRST_CHUNK, "Time until the first part of a model's answer."
        )
        self.runs = _seconds(
            meter, names.INVOKE_AGENT_DURATION, "Duration of a run.", names.AGENT_BOUNDARIES
        )
        self.tools = _seconds(meter, names.EXECUTE_TOOL_DURATION, "Duration of a tool call.")


def _seconds(
    meter: Meter, name: str, description: str, boundaries: tuple[float, ...] = ()
) -> Histogram:
    return meter.create_histogram(
        name,
        "s",
        description,
        explicit_bucket_boundaries_advisory=boundaries or names.SECOND_BOUNDARIES,
    )
