"""Commands: typed operations on a thread that no model makes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, Protocol, TypeVar, overload

import attrs

from pai.definition._capabilities import Capability, capability_faults
from pai.definition._checks import (
    described,
    function_faults,
    is_async,
    text_faults,
    yield_faults,
)
from pai.definition._metadata import MetadataPatch, MetadataSchemas, metadata_faults
from pai.definition._names import name_faults
from pai.definition._signal import Signal
from pai.definition._tool_context import Capabilities
from pai.errors import DefinitionError, Fault, MetadataSchemaError
from pai.schema import Schema

__all__ = ("CommandContext", "CommandDefinition", "CommandHost", "define_command")

ContextT = TypeVar("ContextT")
ContextT_co = TypeVar("ContextT_co", covariant=True)
InputT = TypeVar("InputT")
OutputT = TypeVar("OutputT")


class CommandHost(Protocol):
    """What stands behind a command's context: the runtime that runs it."""

    async def update_metadata(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None: ...


class CommandContext(Generic[ContextT_co]):
    """
    The first argument of a command.

    Attributes:
        context: The agent's runtime context.
        identity: Who the command is for.
        client_data: What the client sent along: untrusted.
        thread_id: The thread.
        capabilities: Bound capabilities by alias.
        signal: Set when the command is to stop.
    """

    __slots__ = (
        "_host", "capabilities", "client_data", "context", "identity", "signal", "thread_id",
    )  # fmt: skip

    def __init__(
        self,
        *,
        context: ContextT_co,
        identity: object,
        client_data: object,
        thread_id: str,
        capabilities: Capabilities,
        signal: Signal,
        host: CommandHost,
    ) -> None:
        self.context = context
        self.identity = identity
        self.client_data = client_data
        self.thread_id = thread_id
        self.capabilities = capabilities
        self.signal = signal
        self._host = host

    async def update_metadata(
        self,
        run: MetadataPatch | None = None,
        thread: MetadataPatch | None = None,
        message: MetadataPatch | None = None,
    ) -> None:
        """
        Patch metadata: merged, checked whole, committed all together or not at all (A-META-5).

        A sync command is in a worker thread: it calls
        ``anyio.from_thread.run(ctx.update_metadata, run, thread, message)``.

        Args:
            run: For the thread's newest run; only with the command's own *run_metadata* (A-META-8).
            thread: For the thread.
            message: For the thread's last message, whoever wrote it.

        Raises:
            InvalidInput: A result fits its schema no more; nothing is changed.
        """
        await self._host.update_metadata(run, thread, message)


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


@overload
def define_command(
    *,
    name: str,
    description: str,
    input: type[InputT],
    output: type[OutputT],
    execute: Callable[[CommandContext[ContextT], InputT], OutputT | Awaitable[OutputT]],
    exposed: bool = False,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
) -> CommandDefinition[ContextT]: ...
@overload
def define_command(
    *,
    name: str,
    description: str,
    input: type[InputT],
    output: object,
    execute: Callable[[CommandContext[ContextT], InputT], object],
    exposed: bool = False,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
) -> CommandDefinition[ContextT]: ...


def define_command(
    *,
    name: str,
    description: str,
    input: object,
    output: object,
    execute: Callable[..., object],
    exposed: bool = False,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    capabilities: Mapping[str, Capability[Any]] | None = None,
) -> CommandDefinition[Any]:
    """
    Make a command.

    Args:
        name: Its name.
        description: What it is for.
        input: The class of its input.
        output: The class, or plain type, of its output; ``object`` for any JSON.
        execute: Called with the context and the parsed input; sync or async.
        exposed: Whether clients may call it.
        run_metadata: The agent's pair of run metadata schemas, if the command writes it: the very
            object that the agent is given (A-META-8).
        capabilities: Needed capabilities by alias.

    Raises:
        DefinitionError: All that is wrong; a *MetadataSchemaError* if it is all about *run_metadata*.
    """
    label = str(name) or "command"
    faults = name_faults(name, f"{label}.name")
    faults += capability_faults(capabilities, f"{label}.capabilities")
    faults += text_faults(description, f"{label}.description", "people need to know what it is for")
    flag: object = exposed
    if not isinstance(flag, bool):
        faults.append(Fault(f"{label}.exposed", "expected True or False"))
    faults += function_faults(execute, f"{label}.execute")
    faults += yield_faults(execute, f"{label}.execute")
    input_schema = described(input, f"{label}.input", faults)
    output_schema = described(output, f"{label}.output", faults)
    metadata: list[Fault] = []
    if run_metadata is not None:
        metadata = metadata_faults(run_metadata, f"{label}.run_metadata")
    if faults or metadata or input_schema is None:
        kind = DefinitionError if faults else MetadataSchemaError
        raise kind([*faults, *metadata], subject=f"command {label!r}")
    return CommandDefinition(
        name=name,
        description=description,
        input=input_schema,
        output=output_schema,
        execute=execute,
        is_async=is_async(execute),
        exposed=exposed,
        run_metadata=run_metadata,
        capabilities=dict(capabilities or {}),
    )
