"""Commands: typed operations on a thread that no model makes."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar, cast

import attrs

from pai.definition._capabilities import Capability
from pai.definition._checks import capability_faults, compiled
from pai.definition._metadata import MetadataSchemas
from pai.definition._names import name_faults
from pai.definition._signal import Signal
from pai.definition._tool_context import Capabilities
from pai.errors import DefinitionError, Fault
from pai.schema import Schema

__all__ = ("CommandContext", "CommandDefinition", "define_command")

ContextT = TypeVar("ContextT")
ContextT_co = TypeVar("ContextT_co", covariant=True)
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class CommandContext(Generic[ContextT_co]):
    """The first argument of a command; the fields are those of a tool's context without a call."""

    __slots__ = ("capabilities", "client_data", "context", "identity", "signal", "thread_id")

    def __init__(
        self,
        *,
        context: ContextT_co,
        identity: object,
        client_data: object,
        thread_id: str,
        capabilities: Capabilities,
        signal: Signal,
    ) -> None:
        self.context = context
        self.identity = identity
        self.client_data = client_data
        self.thread_id = thread_id
        self.capabilities = capabilities
        self.signal = signal


@attrs.frozen(eq=False)
class CommandDefinition(Generic[ContextT]):
    """
    A command, made by :func:`define_command`.

    Args:
        exposed: Whether clients may call it; else it is for the server alone.
        run_metadata: The very object the agent declares, where the command touches it (A-META-8).
    """

    name: str
    description: str
    input: Schema[object]
    output: Schema[object] | None
    execute: Callable[..., object]
    is_async: bool
    exposed: bool = False
    run_metadata: MetadataSchemas[Any, Any] | None = None
    capabilities: Mapping[str, Capability[Any]] = attrs.field(factory=dict)


def define_command(
    *,
    name: str,
    description: str,
    input: type[InputT],  # noqa: A002  # fixed public names
    output: type[OutputT],
    execute: Callable[[CommandContext[ContextT], InputT], OutputT | Awaitable[OutputT]],
    exposed: bool = False,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
) -> CommandDefinition[ContextT]:
    """
    Make a command.

    Args:
        name: Its name.
        description: What it is for.
        input: The class of its input.
        output: The class, or plain type, of its output.
        execute: Called with the context and the parsed input; sync or async.
        exposed: Whether clients may call it.
        run_metadata: The agent's pair of run metadata schemas, if the command writes it.
        capabilities: Needed capabilities by alias.

    Raises:
        DefinitionError: All that is wrong.
    """
    label = name if isinstance(name, str) and name else "command"
    faults = name_faults(name, f"{label}.name")
    faults += capability_faults(capabilities or {}, f"{label}.capabilities")
    if not callable(execute):
        faults.append(Fault(f"{label}.execute", "expected a function of (ctx, input)"))
    input_schema = compiled(input, f"{label}.input", faults)
    output_schema = compiled(output, f"{label}.output", faults)
    if faults or input_schema is None:
        raise DefinitionError(faults, subject=f"command {label!r}")
    return CommandDefinition(
        name=name,
        description=description,
        input=input_schema,
        output=output_schema,
        execute=cast("Callable[..., object]", execute),
        is_async=inspect.iscoroutinefunction(execute),
        exposed=exposed,
        run_metadata=run_metadata,
        capabilities=dict(capabilities or {}),
    )
