"""Tools: what a model may call (A-TOOL)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import attrs

from pai.definition._behavior import AgentBehaviorInput, ObservedOutput
from pai.definition._capabilities import Capability
from pai.definition._checks import arity_faults
from pai.definition._suspend import Suspend
from pai.errors import Fault
from pai.protocol import ToolSpec
from pai.schema import Schema, ValueSchema

__all__ = ("AgentToolConfig", "ToolDefinition")

ContextT = TypeVar("ContextT")
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)


@attrs.frozen(eq=False)
class ToolDefinition(Generic[ContextT_contra]):
    """
    A tool, made by :func:`tool` or :func:`define_tool`.

    Args:
        name: Its own name; the key it is registered under is what the model sees.
        description: What it is for, as the model is told.
        input: The schema of its input.
        output: The schema of its output; ``None``: any JSON.
        execute: Called with the context and the parsed input; sync or async. ``None``: a client
            answers.
        is_async: Whether *execute* is a coroutine function.
        spread: The parsed input is a dict of keyword arguments.
        inline: A quick sync function that runs on the event loop, in no thread.
        idempotent: It may be run again after a crash, with the same idempotency key (R-12).
        timeout: Seconds a call may take.
        lazy: Offered only after discovery (O-6).
        data: The schema of what it reports as progress.
        context: The class its context is an instance of, where it says so (A-TOOL-4).
        capabilities: Needed capabilities by alias.
        needs_approval: Somebody has to approve each call.
        suspend: The types of ``ctx.suspend``; ``None``: any JSON.
        expires_after: Seconds until an unanswered call fails; ``None``: it waits for good.
    """

    name: str
    description: str
    input: ValueSchema
    output: Schema[object] | None
    execute: Callable[..., object] | None
    is_async: bool
    spread: bool = False
    inline: bool = False
    idempotent: bool = False
    timeout: float | None = None
    lazy: bool = False
    data: Schema[object] | None = None
    context: type | None = None
    capabilities: Mapping[str, Capability[Any]] = attrs.field(factory=dict)
    needs_approval: bool = False
    suspend: Suspend | None = None
    expires_after: float | None = None

    def spec(self, name: str) -> ToolSpec:
        """The tool as a model is told of it, under *name*."""
        from pai.schema import strict_form

        schema = self.input.json_schema
        return ToolSpec(name, self.description, schema, strict_form(schema))

    def _accepts(self, context: ContextT_contra, /) -> None:
        """Only types: the context the tool takes, so that checkers see the parameter used."""


@attrs.frozen(eq=False)
class AgentToolConfig(Generic[ContextT]):
    """
    A tool with the agent's own say on it (A-TOOL-2).

    Args:
        tool: The tool.
        enabled: Whether it is offered, asked at each model step (A-TOOL-3).
        map_context: Makes the tool's context from the agent's (A-TOOL-4).
        on_output: Called once with each settled, validated output (A-TOOL-5).
    """

    tool: ToolDefinition[Any]
    enabled: bool | Callable[[AgentBehaviorInput[ContextT]], bool | Awaitable[bool]] = True
    map_context: Callable[[AgentBehaviorInput[ContextT]], object] | None = None
    on_output: Callable[[ObservedOutput[ContextT]], object] | None = None

    def faults(self, at: str) -> list[Fault]:
        """What is wrong with it, as far as it shows before it is called."""
        found = []
        enabled: object = self.enabled
        if enabled is None:
            found.append(Fault(f"{at}.enabled", "expected a bool or a function, got None"))
        elif not isinstance(enabled, bool):
            found += arity_faults(enabled, f"{at}.enabled")
        found += arity_faults(self.map_context, f"{at}.map_context")
        return found + arity_faults(self.on_output, f"{at}.on_output")
