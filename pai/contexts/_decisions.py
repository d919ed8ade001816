"""What hooks decide: small frozen values, never exceptions."""

from __future__ import annotations

from typing import Literal

import attrs

from pai.errors import Fault, InvalidInput
from pai.protocol import (
    DataPart,
    FilePart,
    MessagePart,
    ReasoningPart,
    SourcePart,
    TextPart,
)
from pai.schema import JsonValue

__all__ = (
    "Ask",
    "DenyCall",
    "ReplaceInput",
    "ReplaceValue",
    "RequireApproval",
    "Respond",
    "SkipCall",
    "ToolFailure",
    "ToolOutput",
)


_ANSWERS = (TextPart, ReasoningPart, FilePart, SourcePart, DataPart)


def _parts(value: str | tuple[MessagePart, ...] | list[MessagePart]) -> tuple[MessagePart, ...]:
    parts = (TextPart(value),) if isinstance(value, str) else tuple(value)
    faults = [
        Fault(f"parts[{index}]", "an answer has text, reasoning, files, sources and data")
        for index, part in enumerate(parts)
        if not isinstance(part, _ANSWERS)
    ]
    if faults:
        raise InvalidInput(faults, subject="Respond")
    return parts


@attrs.frozen(eq=False)
class Respond:
    """
    End the run with this message of the assistant, without asking the model (A-LIFE-3).

    What hooks further left patched is kept and committed.

    Args:
        parts: The message: text, or parts; data parts fit the agent's ``ui_data`` (A-UI-2).
        outcome: ``"blocked"`` makes the run's status ``blocked``; anything else is completed.
        reason: Why, for machines: ``"quota_exceeded"``.
    """

    parts: tuple[MessagePart, ...] = attrs.field(converter=_parts)
    outcome: str = "completed"
    reason: str | None = None

    @property
    def status(self) -> Literal["completed", "blocked"]:
        """The status of a run that ends so."""
        return "blocked" if self.outcome == "blocked" else "completed"


@attrs.frozen(eq=False)
class ReplaceInput:
    """Give the call this input instead; it is checked against the tool's schema again."""

    value: object


@attrs.frozen(eq=False)
class SkipCall:
    """Do not run the tool: this is its output."""

    output: object


@attrs.frozen(eq=False)
class DenyCall:
    """Do not run the tool: the model is told *message*."""

    message: str


def _seconds(instance: object, attribute: attrs.Attribute[float | None], value: object) -> None:
    if value is not None and not (isinstance(value, (int, float)) and value > 0):
        fault = Fault(attribute.name, "expected a number of seconds above 0")
        raise InvalidInput([fault], subject=type(instance).__name__)


@attrs.frozen(eq=False)
class RequireApproval:
    """
    Do not run the tool before somebody approves this very input (R-20).

    Args:
        reason: Shown to whoever shall approve.
        expires_after: Seconds after which the unanswered call fails; ``None``: it waits for good.
    """

    reason: str | None = None
    expires_after: float | None = attrs.field(default=None, validator=_seconds)


@attrs.frozen(eq=False)
class Ask:
    """
    Suspend the run until this is answered: ``Answer(question_id, value)``.

    Then the phase is gone through again. ``run.answers`` has the answer by then, and asking the same
    question once more counts as ``None``.

    Args:
        question_id: Unique within the run, and none of its calls' ids.
        schema: The type of the answer.
        message: What is asked.
    """

    question_id: str
    schema: object
    message: str = ""


@attrs.frozen(eq=False)
class ToolOutput:
    """Give the call this output instead, also where it had failed; it is checked again."""

    value: object


@attrs.frozen(eq=False)
class ToolFailure:
    """Make the call a failed one: the model is told *message*."""

    message: str


@attrs.frozen(eq=False)
class ReplaceValue:
    """Write this value instead."""

    value: JsonValue
