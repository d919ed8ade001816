"""What a model is told before everything else (A-INSTR)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from pai.definition._behavior import AgentBehaviorInput
from pai.definition._checks import arity_faults, provider_options_faults
from pai.errors import Fault
from pai.protocol import SystemMessage

__all__ = ("Instructions", "InstructionsValue", "instruction_faults")

ContextT = TypeVar("ContextT")

InstructionsValue = str | SystemMessage | Sequence[SystemMessage]
Instructions = (
    InstructionsValue
    | Callable[[AgentBehaviorInput[ContextT]], "InstructionsValue | Awaitable[InstructionsValue]"]
)
"""Instructions, or a function that writes them for each step (A-INSTR-1)."""


def instruction_faults(instructions: object, at: str) -> list[Fault]:
    """Faults of instructions; what a function writes is looked at when it is asked."""
    if isinstance(instructions, str):
        return []
    if isinstance(instructions, SystemMessage):
        return _message_faults(instructions, at)
    if callable(instructions):
        return arity_faults(instructions, at)
    if isinstance(instructions, Sequence):
        faults = []
        for index, item in enumerate(instructions):
            faults += _message_faults(item, f"{at}[{index}]")
        return faults
    return [
        Fault(at, "expected text, SystemMessage objects or a function,"
              f" got {type(instructions).__name__}")
    ]  # fmt: skip


def _message_faults(message: object, at: str) -> list[Fault]:
    if not isinstance(message, SystemMessage):
        return [Fault(at, f"expected a SystemMessage, got {type(message).__name__}")]
    content: object = message.content
    faults = [] if isinstance(content, str) else [Fault(f"{at}.content", "expected text")]
    return faults + provider_options_faults(message.provider_options, f"{at}.provider_options")
