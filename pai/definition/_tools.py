"""Tools: what a model may call (A-TOOL)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import attrs

from pai.definition._behavior import AgentBehaviorInput, ObservedOutput
from pai.definition._capabilities import Capability
from pai.definition._checks import LATER, capability_faults, compiled, later_faults
from pai.definition._names import tool_name_faults
from pai.definition._tool_context import ToolContext
from pai.errors import DefinitionError, Fault
from pai.protocol import ToolSpec
from pai.schema import Schema, ValueSchema, function_schema, strict_form

__all__ = ("AgentToolConfig", "ToolDefinition", "define_tool", "tool")

ContextT = TypeVar("ContextT")
ContextT_contra = TypeVar("ContextT_contra", contravariant=True)
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")
P = ParamSpec("P")

@attrs.frozen(eq=False)
class ToolDefinition(Generic[ContextT_contra]):
    """
    A tool, made by :func:`tool` or :func:`define_tool`.

    Args:
        name: Its own name; the key it is registered under is what the model sees.
        description: What it is for, as the model is told.
        input: The schema of its input.
        output: The schema of its output; ``None``: any JSON.
        execute: Called with the context and the parsed input; sync or async.
        is_async: Whether *execute* is a coroutine function.
        spread: The parsed input is a dict of keyword arguments.
        inline: A quick sync function that runs on the event loop, in no thread.
        idempotent: It may be run again after a crash, with the same idempotency key (R-12).
        data: The schema of what it reports as progress.
        context: The class its context is an instance of, where it says so (A-TOOL-4).
        capabilities: Needed capabilities by alias.
    """

    name: str
    description: str
    input: ValueSchema
    output: Schema[object] | None
    execute: Callable[..., object]
    is_async: bool
    spread: bool = False
    inline: bool = False
    idempotent: bool = False
    data: Schema[object] | None = None
    context: type | None = None
    capabilities: Mapping[str, Capability[Any]] = attrs.field(factory=dict)

    def spec(self, name: str) -> ToolSpec:
        """The tool as a model is told of it, under *name*."""
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


ToolFunction = Callable[Concatenate[ToolContext[ContextT], P], OutputT]


@overload
def tool(fn: ToolFunction[ContextT, P, OutputT], /) -> ToolDefinition[ContextT]: ...
@overload
def tool(
    fn: None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: object = None,
    data: object = None,
    inline: bool = False,
) -> Callable[[ToolFunction[ContextT, P, OutputT]], ToolDefinition[ContextT]]: ...


def tool(
    fn: ToolFunction[ContextT, P, OutputT] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: object = None,
    data: object = None,
    inline: bool = False,
) -> (
    ToolDefinition[ContextT]
    | Callable[[ToolFunction[ContextT, P, OutputT]], ToolDefinition[ContextT]]
):
    """
    Make a tool of a function: ``ctx`` first, then one argument a field of the input.

    The schema comes from the signature, the description from the docstring. A sync function runs
    in a worker thread; cancellation reaches it through ``ctx.signal``.

    Args:
        fn: The function, sync or async.
        name: Its name; default: the function's.
        description: What the model is told; default: the docstring's summary and text.
        needs_approval: Ask before each call.
        idempotent: It may run again after a crash, with the same ``ctx.idempotency_key``.
        lazy: Offered only after discovery.
        timeout: Seconds a call may take.
        capabilities: Needed capabilities by alias.
        context: The class its ``ctx.context`` is an instance of.
        suspend: The schemas of ``ctx.suspend``.
        data: The schema of what ``ctx.progress`` sends.
        inline: The function is quick and never blocks: run it on the event loop.

    Raises:
        DefinitionError: All that is wrong with the signature and the options.
    """
    if fn is None:

        def decorate(
            fn: ToolFunction[ContextT, P, OutputT],
        ) -> ToolDefinition[ContextT]:
            return _from_function(
                fn, name, description, capabilities or {}, context, data,
                idempotent=idempotent, inline=inline,
                later={"needs_approval": needs_approval, "lazy": lazy, "timeout": timeout,
                       "suspend": suspend},
            )  # fmt: skip

        return decorate
    return _from_function(fn, None, None, {}, None, None, idempotent=False, inline=False, later={})


def _from_function(
    fn: Callable[..., object],
    name: str | None,
    description: str | None,
    capabilities: Mapping[str, Capability[Any]],
    context: type | None,
    data: object,
    *,
    idempotent: bool,
    inline: bool,
    later: Mapping[str, object],
) -> ToolDefinition[ContextT]:
    label = name or getattr(fn, "__name__", repr(fn))
    if not callable(fn):
        raise DefinitionError(
            [Fault(label, "@tool takes a function; options go by keyword")], subject="tool"
        )
    faults = tool_name_faults(label, f"{label}.name") + later_faults(label, **later)
    faults += capability_faults(capabilities, f"{label}.capabilities")
    data_schema = compiled(data, f"{label}.data", faults)
    is_async = inspect.iscoroutinefunction(fn)
    if inline and is_async:
        faults.append(Fault(f"{label}.inline", "is for sync functions; an async one runs inline"))
    signature = None
    try:
        signature = function_schema(fn, skip_first=True)
    except DefinitionError as error:
        faults += [fault.under(label) for fault in error.faults]
    text = description if description is not None else signature and signature.description
    if signature is not None and not text:
        faults.append(
            Fault(f"{label}.description", "a model needs to know what it is for: add a docstring")
        )
    if faults or signature is None:
        raise DefinitionError(faults, subject=f"tool {label!r}")
    return ToolDefinition(
        name=label,
        description=text or "",
        input=signature.input,
        output=cast("Schema[object] | None", signature.output),
        execute=fn,
        is_async=is_async,
        spread=True,
        inline=inline,
        idempotent=idempotent,
        data=data_schema,
        context=context,
        capabilities=dict(capabilities),
    )


def define_tool(
    *,
    name: str,
    description: str,
    input: type[InputT],  # noqa: A002  # fixed public names
    output: type[OutputT],
    execute: Callable[[ToolContext[ContextT], InputT], OutputT | Awaitable[OutputT]] | None = None,
    needs_approval: bool = False,
    idempotent: bool = False,
    lazy: bool = False,
    timeout: float | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
    context: type | None = None,
    suspend: object = None,
    data: object = None,
    inline: bool = False,
    expires_after: float | None = None,
) -> ToolDefinition[ContextT]:
    """
    Make a tool whose input and output are classes (A-TOOL-6).

    Args:
        name: Its name.
        description: What the model is told.
        input: The class of its input: ``execute(ctx, input)`` gets an instance.
        output: The class, or plain type, of its output.
        execute: Sync or async. Without it a client answers.
        needs_approval: See :func:`tool`, as for the others.
        expires_after: Seconds until an unanswered call fails.

    Raises:
        DefinitionError: All that is wrong.
    """
    label = name if isinstance(name, str) and name else "tool"
    faults = tool_name_faults(name, f"{label}.name")
    faults += later_faults(
        label, needs_approval=needs_approval, lazy=lazy, timeout=timeout, suspend=suspend,
        expires_after=expires_after,
    )  # fmt: skip
    faults += capability_faults(capabilities or {}, f"{label}.capabilities")
    if not isinstance(description, str) or not description.strip():
        faults.append(Fault(f"{label}.description", "a model needs to know what it is for"))
    if execute is None:
        faults.append(Fault(f"{label}.execute", f"a tool that a client answers {LATER}"))
    elif not callable(execute):
        faults.append(Fault(f"{label}.execute", "expected a function of (ctx, input)"))
    is_async = inspect.iscoroutinefunction(execute)
    if inline and is_async:
        faults.append(Fault(f"{label}.inline", "is for sync functions; an async one runs inline"))
    input_schema = compiled(input, f"{label}.input", faults)
    if input_schema is not None and input_schema.json_schema.get("type") != "object":
        reference = input_schema.json_schema.get("$ref")
        if reference is None:
            faults.append(Fault(f"{label}.input", "a tool's input is an object: use a class"))
    output_schema = compiled(output, f"{label}.output", faults)
    data_schema = compiled(data, f"{label}.data", faults)
    if faults or input_schema is None or execute is None:
        raise DefinitionError(faults, subject=f"tool {label!r}")
    return ToolDefinition(
        name=name,
        description=description,
        input=input_schema,
        output=output_schema,
        execute=execute,
        is_async=is_async,
        inline=inline,
        idempotent=idempotent,
        data=data_schema,
        context=context,
        capabilities=dict(capabilities or {}),
    )
