"""How a call ended, and its output as JSON."""

from __future__ import annotations

from typing import Any, NamedTuple

from pai.errors import Fault, InvalidInput, PaiError
from pai.loop._episode import Episode
from pai.protocol import CallOutcome, ToolCall
from pai.schema import JsonValue, Schema, check_json, compile_schema

__all__ = ("Result", "checked_output", "failed")


class Result(NamedTuple):
    """
    How a call ended.

    Args:
        outcome: In one word.
        output: As JSON, for *completed* and *skipped*.
        error: What the model is told otherwise.
    """

    outcome: CallOutcome
    output: JsonValue = None
    error: str | None = None


def failed(error: str) -> Result:
    """A call that the model is told this of."""
    return Result("failed", None, error)


def checked_output(
    episode: Episode,
    call: ToolCall,
    schema: Schema[object] | None,
    output: object,
    outcome: CallOutcome,
) -> Result:
    """The output as JSON; one that does not fit its schema fails the call (A-TOOL-6)."""
    try:
        return Result(outcome, _as_json(schema, output))
    except (PaiError, TypeError, ValueError) as error:
        faults = error.faults if isinstance(error, InvalidInput) else (Fault("output", str(error)),)
        run = episode.context
        episode.report(
            InvalidInput(faults, subject=f"output of tool {call.tool!r}"),
            {"run_id": run.id, "thread_id": run.thread_id, "tool": call.tool,
             "call_id": call.call_id},
        )  # fmt: skip
        return failed(f"The output of {call.tool!r} does not fit its schema.")


def _as_json(schema: Schema[object] | None, output: object) -> JsonValue:
    if schema is not None:
        return schema.dump(schema.parse(output, at="output"))
    kind = type(output)
    if kind is str or kind is int or kind is bool or output is None:
        return output  # type: ignore[return-value]  # plain JSON
    if hasattr(kind, "__attrs_attrs__"):
        return compile_schema(kind).dump(output)
    if faults := check_json(output, at="output"):
        raise InvalidInput(faults, subject="output")
    return _copied(output)


def _copied(value: Any) -> JsonValue:
    """JSON of its own: what a tool keeps and changes later is not what was stored."""
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value  # type: ignore[no-any-return]  # checked JSON
