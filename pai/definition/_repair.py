"""A function of the application that mends the input of a call (O-14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Generic, TypeVar

import attrs

from pai.definition._behavior import AgentBehaviorInput
from pai.errors import Fault
from pai.schema import JsonObject, JsonValue

__all__ = ("NOT_REPAIRED", "NotRepaired", "RepairToolInput", "ToolRepair")

ContextT = TypeVar("ContextT")


class NotRepaired:
    """The type of :data:`NOT_REPAIRED`."""

    def __repr__(self) -> str:
        return "NOT_REPAIRED"


NOT_REPAIRED: Final = NotRepaired()
"""The input could not be mended; the model is told what is wrong with it. ``None`` is an input."""


@attrs.frozen(eq=False)
class ToolRepair(AgentBehaviorInput[ContextT], Generic[ContextT]):
    """
    What a ``repair_tool_input`` function is handed.

    Args:
        tool: The name of the tool.
        call_id: The call.
        input: What the model sent.
        schema: The JSON Schema of the tool's input.
        faults: What is wrong with the input.
    """

    tool: str
    call_id: str
    input: JsonValue
    schema: JsonObject
    faults: tuple[Fault, ...]


RepairToolInput = Callable[[ToolRepair[ContextT]], Any]
"""Gives the input to check again, or :data:`NOT_REPAIRED`; sync or async."""
