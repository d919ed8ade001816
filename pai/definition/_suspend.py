"""What a tool waits for, and shows, when it suspends itself (A-TOOL-6)."""

from __future__ import annotations

from typing import Any

import attrs

from pai.definition._checks import compiled
from pai.errors import DefinitionError, Fault
from pai.schema import Schema

__all__ = ("Suspend",)


@attrs.frozen(eq=False)
class Suspend:
    """
    The types of ``ctx.suspend``.

    Args:
        payload: What the tool shows: ``await ctx.suspend(payload)``.
        answer: What it gets back: ``Provide(call_id, value)``.

    Raises:
        DefinitionError: A type cannot be described.
    """

    payload: Any = object
    answer: Any = object
    payload_schema: Schema[object] = attrs.field(init=False, repr=False)
    answer_schema: Schema[object] = attrs.field(init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        faults: list[Fault] = []
        payload = compiled(self.payload, "payload", faults)
        answer = compiled(self.answer, "answer", faults)
        if payload is None:
            faults.append(Fault("payload", "expected a type; write object for any JSON"))
        if answer is None:
            faults.append(Fault("answer", "expected a type; write object for any JSON"))
        if faults or payload is None or answer is None:
            raise DefinitionError(faults, subject="Suspend")
        object.__setattr__(self, "payload_schema", payload)
        object.__setattr__(self, "answer_schema", answer)
