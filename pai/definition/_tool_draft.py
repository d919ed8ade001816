"""What both ways to make a tool check alike."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, cast

from pai.definition._capabilities import Capability, capability_faults
from pai.definition._checks import (
    class_faults,
    compiled,
    described,
    function_faults,
    is_async,
    seconds_faults,
    text_faults,
    yield_faults,
)
from pai.definition._names import tool_name_faults
from pai.definition._suspend import Suspend
from pai.definition._tools import ToolDefinition
from pai.errors import DefinitionError, Fault
from pai.schema import Schema, ValueSchema, function_schema

__all__ = ("ToolDraft",)


class ToolDraft:
    """A tool on its way: what both makers check, and the faults so far."""

    def __init__(
        self,
        name: object,
        *,
        name_given: bool,
        capabilities: Mapping[str, Capability[Any]] | None,
        context: object,
        data: object,
        inline: bool,
        idempotent: bool,
        timeout: float | None,
        lazy: bool,
        needs_approval: object = False,
        suspend: object = None,
        expires_after: object = None,
    ) -> None:
        label = self.label = str(name) or "tool"
        faults = self.faults = tool_name_faults(name, f"{label}.name")
        if faults and not name_given:
            faults[:] = [Fault(f"{label}.name", f"{faults[0].message}; give it one: name=...")]
        faults += capability_faults(capabilities, f"{label}.capabilities")
        if context is not None:
            faults += class_faults(context, f"{label}.context")
        self.data = compiled(data, f"{label}.data", faults)
        self.capabilities = capabilities
        self.context = context if isinstance(context, type) else None
        self.inline = inline
        self.idempotent = idempotent
        faults += _timeout_faults(timeout, f"{label}.timeout")
        self.timeout = timeout
        self.lazy = lazy
        if not isinstance(needs_approval, bool):
            message = "expected a bool; a before_tool_call hook decides call by call"
            faults.append(Fault(f"{label}.needs_approval", message))
        if not (suspend is None or isinstance(suspend, Suspend)):
            faults.append(Fault(f"{label}.suspend", "expected Suspend(payload=..., answer=...)"))
        faults += seconds_faults(expires_after, f"{label}.expires_after")
        self.needs_approval = needs_approval is True
        self.suspend = suspend if isinstance(suspend, Suspend) else None
        self.expires_after = expires_after if isinstance(expires_after, (int, float)) else None

    def from_function(self, fn: object, description: str | None) -> ToolDefinition[Any]:
        if not callable(fn):
            # Nothing else about it can be known.
            fault = Fault(self.label, f"@tool takes a function, got {type(fn).__name__}")
            raise DefinitionError([fault], subject="tool")
        self._check_body(fn)
        try:
            signature = function_schema(fn, skip_first=True)
        except DefinitionError as error:
            self.faults += [fault.under(self.label) for fault in error.faults]
            signature = None
        if description is None and signature is not None:
            description = signature.description
        if description is not None or signature is not None:
            self._check_description(description)
        if self.faults or signature is None or description is None:
            raise self._refusal()
        return self._tool(description, signature.input, signature.output, fn, spread=True)

    def from_types(
        self, description: str, input: object, output: object, execute: Callable[..., object] | None
    ) -> ToolDefinition[Any]:
        self._check_description(description)
        if execute is not None:
            self.faults += function_faults(execute, f"{self.label}.execute")
            self._check_body(execute)
        input_schema = described(input, f"{self.label}.input", self.faults)
        if input_schema is not None and input_schema.json_schema.get("type") != "object":
            # Model providers take nothing else, no union either.
            self.faults.append(
                Fault(f"{self.label}.input", "a tool's input is an object: use a class")
            )
        output_schema = described(output, f"{self.label}.output", self.faults)
        if self.faults or input_schema is None:
            raise self._refusal()
        return self._tool(description, input_schema, output_schema, execute, spread=False)

    def _check_description(self, description: object) -> None:
        self.faults += text_faults(
            description,
            f"{self.label}.description",
            "a model needs to know what it is for: write a docstring, or give description=...",
        )

    def _check_body(self, fn: object) -> None:
        self.faults += yield_faults(fn, self.label)
        if self.inline and is_async(fn):
            self.faults.append(
                Fault(f"{self.label}.inline", "is for sync functions; an async one runs inline")
            )

    def _refusal(self) -> DefinitionError:
        return DefinitionError(self.faults, subject=f"tool {self.label!r}")

    def _tool(
        self,
        description: str,
        input: ValueSchema,
        output: Schema[object] | None,
        execute: Callable[..., object] | None,
        *,
        spread: bool,
    ) -> ToolDefinition[Any]:
        return ToolDefinition(
            name=self.label,
            description=description,
            input=input,
            output=output,
            execute=execute,
            is_async=execute is not None and is_async(execute),
            spread=spread,
            inline=self.inline,
            idempotent=self.idempotent,
            timeout=self.timeout,
            lazy=self.lazy,
            data=self.data,
            context=self.context,
            capabilities=dict(self.capabilities or {}),
            needs_approval=self.needs_approval,
            suspend=self.suspend,
            expires_after=self.expires_after,
        )


def _timeout_faults(timeout: object, at: str) -> list[Fault]:
    if timeout is None:
        return []
    if type(timeout) in (int, float) and 0 < cast("float", timeout) < math.inf:
        return []
    return [Fault(at, "expected seconds above 0, or None")]
