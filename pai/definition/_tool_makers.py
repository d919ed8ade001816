"""Making a tool: of a function, or of types (A-TOOL)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from pai.definition._capabilities import Capability
from pai.definition._suspend import Suspend
from pai.definition._tool_context import ToolContext
from pai.definition._tool_draft import ToolDraft
from pai.definition._tools import ToolDefinition

__all__ = ("define_tool", "tool")

ContextT = TypeVar("ContextT")
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
P = ParamSpec("P")

ToolFunction = Callable[Concatenate[ToolContext[ContextT], P], object]


@overload
def tool(
    fn: ToolFunction[ContextT, P],
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: Suspend | None = None,
    data: object = None,
    inline: bool = False,
) -> ToolDefinition[ContextT]: ...
@overload
def tool(
    fn: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: Suspend | None = None,
    data: object = None,
    inline: bool = False,
) -> Callable[[ToolFunction[ContextT, P]], ToolDefinition[ContextT]]: ...


def tool(
    fn: ToolFunction[ContextT, P] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: Suspend | None = None,
    data: object = None,
    inline: bool = False,
) -> ToolDefinition[ContextT] | Callable[[ToolFunction[ContextT, P]], ToolDefinition[ContextT]]:
    """
    Make a tool of a function: ``ctx`` first, then one argument a field of the input.

    The schema comes from the signature, the description from the docstring. A sync function runs
    in a worker thread; cancellation reaches it through ``ctx.signal``.

    Args:
        fn: The function, sync or async.
        name: Its name; default: the function's.
        description: What the model is told; default: the docstring's summary and text.
        needs_approval: Somebody has to approve each call (R-20).
        idempotent: It may run again after a crash, with the same ``ctx.idempotency_key``.
        lazy: Offered only after discovery.
        timeout: Seconds a call may take; then it fails, and ``ctx.signal`` tells a thread.
        capabilities: Needed capabilities by alias.
        context: The class its ``ctx.context`` is an instance of.
        suspend: The types of ``ctx.suspend``; without it any JSON will do.
        data: The schema of what ``ctx.progress`` sends.
        inline: The function is quick and never blocks: run it on the event loop.

    Raises:
        DefinitionError: All that is wrong with the signature and the options.
    """

    def decorate(fn: ToolFunction[ContextT, P]) -> ToolDefinition[ContextT]:
        draft = ToolDraft(
            name if name is not None else getattr(fn, "__name__", type(fn).__name__),
            name_given=name is not None, capabilities=capabilities, context=context, data=data,
            inline=inline, idempotent=idempotent, timeout=timeout, lazy=lazy,
            needs_approval=needs_approval, suspend=suspend,
        )  # fmt: skip
        return draft.from_function(fn, description)

    return decorate if fn is None else decorate(fn)


@overload
def define_tool(
    *,
    name: str,
    description: str,
    input: type[InputT],
    output: type[OutputT],
    execute: Callable[[ToolContext[ContextT], InputT], OutputT | Awaitable[OutputT]] | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: Suspend | None = None,
    data: object = None,
    inline: bool = False,
    expires_after: float | None = None,
) -> ToolDefinition[ContextT]: ...
@overload
def define_tool(
    *,
    name: str,
    description: str,
    input: type[InputT],
    output: object,
    execute: Callable[[ToolContext[ContextT], InputT], object] | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: Suspend | None = None,
    data: object = None,
    inline: bool = False,
    expires_after: float | None = None,
) -> ToolDefinition[ContextT]: ...


def define_tool(
    *,
    name: str,
    description: str,
    input: object,
    output: object,
    execute: Callable[..., object] | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: Suspend | None = None,
    data: object = None,
    inline: bool = False,
    expires_after: float | None = None,
) -> ToolDefinition[Any]:
    """
    Make a tool whose input and output are classes (A-TOOL-6).

    Args:
        name: Its name.
        description: What the model is told.
        input: The class of its input: ``execute(ctx, input)`` gets an instance.
        output: The class, or plain type, of its output; ``object`` for any JSON.
        execute: Sync or async. Without it a client answers.
        needs_approval: Somebody has to approve each call (R-20).
        idempotent: It may run again after a crash, with the same ``ctx.idempotency_key``.
        lazy: Offered only after discovery.
        timeout: Seconds a call may take; then it fails, and ``ctx.signal`` tells a thread.
        capabilities: Needed capabilities by alias.
        context: The class its ``ctx.context`` is an instance of.
        suspend: The types of ``ctx.suspend``; without it any JSON will do.
        data: The schema of what ``ctx.progress`` sends.
        inline: *execute* is quick and never blocks: run it on the event loop.
        expires_after: Seconds until an unanswered call fails.

    Raises:
        DefinitionError: All that is wrong.
    """
    draft = ToolDraft(
        name, name_given=True, capabilities=capabilities, context=context, data=data,
        inline=inline, idempotent=idempotent, timeout=timeout, lazy=lazy,
        needs_approval=needs_approval, suspend=suspend, expires_after=expires_after,
    )  # fmt: skip
    return draft.from_types(description, input, output, execute)
