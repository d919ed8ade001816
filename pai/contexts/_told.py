"""What hooks are told of how a step or a run ended, and of what is written beside the stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from pai.protocol import Message, Usage
from pai.schema import JsonValue

__all__ = ("AsideItem", "RunOutcome", "StepOutcome")


@attrs.frozen(eq=False)
class StepOutcome:
    """How a step ended: what ``step_finished`` is handed."""

    reason: str
    usage: Usage | None
    message: Message


@attrs.frozen(eq=False)
class RunOutcome:
    """How a run ended: what ``run_settled`` is handed."""

    status: Literal["completed", "failed", "cancelled", "blocked"]
    outcome: str | None
    reason: str | None
    stop_reason: str | None
    usage: Usage
    error: Mapping[str, JsonValue] | None


@attrs.frozen(eq=False)
class AsideItem:
    """
    Something written beside the step's stream: what ``transform_aside`` is handed.

    Args:
        kind: What it is.
        value: Its JSON; text for titles, labels and errors.
        name: The data part's or tool's name, where there is one.
    """

    kind: Literal[
        "data", "progress", "plugin", "respond", "title", "label", "error", "suspend", "rename"
    ]
    value: JsonValue
    name: str | None = None
