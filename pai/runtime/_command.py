"""Running a command: a typed operation on a thread that no model makes."""

from __future__ import annotations

import inspect
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from pai.definition import (
    Capabilities,
    CommandContext,
    CommandDefinition,
    ContextInput,
    MetadataPatch,
    Signal,
)
from pai.errors import CommandFailed, Fault, InvalidInput, PaiError, ThreadNotFound
from pai.lifecycle import is_stray
from pai.protocol import Latest, Merge, ThreadChange
from pai.runtime._edit import change_of
from pai.schema import JsonValue, check_json

if TYPE_CHECKING:
    from pai.runtime._accepting import Accepting

__all__ = ("run_command",)


async def run_command(
    accepting: Accepting, name: str, given: object, client_data: object
) -> JsonValue:
    """
    Run a command of the agent; its output as JSON is returned.

    Args:
        accepting: The thread, and who asks.
        name: The command's name.
        given: Its input: what its class describes, as an instance or as JSON.
        client_data: What the agent's ``client_data`` describes: untrusted.

    Raises:
        InvalidInput: There is no such command, or input or client data do not fit: it did not run.
        ThreadNotFound: There is no such thread.
        CommandFailed: It raised, or its output does not fit.
    """
    core, agent, key = accepting.core, accepting.agent, accepting.key
    definition = agent.definition
    command = definition.commands.get(name)
    if command is None:
        # The others are not told: some are for the server alone.
        fault = Fault("command", f"the agent has no command {name!r}")
        raise InvalidInput([fault], subject="command")
    value, data = _parsed(accepting, command, name, given, client_data)
    core.must_be_open()
    head = await core.store.head(key)
    if head is None or head.agent != agent.key:
        raise ThreadNotFound(key.thread_id)
    signal = Signal()
    core.signals.add(signal)
    try:
        return await _run(accepting, command, value, data, signal)
    except anyio.get_cancelled_exc_class() as error:
        signal.set("cancelled")
        if not is_stray(error):
            raise
        failure: BaseException = error
    except _Refused as error:
        # Nobody may take it for a fault of the command's own input.
        failure = error.__cause__ or error
    except PaiError:
        raise
    except Exception as error:
        failure = error
    finally:
        core.signals.discard(signal)
    core.report(failure, {"command": name, "thread_id": key.thread_id})
    raise CommandFailed(name) from failure


def _parsed(
    accepting: Accepting,
    command: CommandDefinition[Any],
    name: str,
    given: object,
    client_data: object,
) -> tuple[object, object]:
    """Input and client data, with all that is wrong with them at once."""
    faults: list[Fault] = []
    value: object = None
    try:
        value = command.input.parse(given, at="input")
    except InvalidInput as error:
        faults += error.faults
    schema = accepting.agent.definition.client_data
    if schema is not None:
        try:
            client_data = schema.parse({} if client_data is None else client_data, at="client_data")
        except InvalidInput as error:
            faults += error.faults
    elif client_data is not None:
        depth = accepting.limits.client_data_depth
        faults += check_json(client_data, at="client_data", max_depth=depth)
    if faults:
        raise InvalidInput(faults, subject=f"command {name!r}")
    return value, client_data


async def _run(
    accepting: Accepting,
    command: CommandDefinition[Any],
    value: object,
    client_data: object,
    signal: Signal,
) -> JsonValue:
    core, agent, thread_id = accepting.core, accepting.agent, accepting.key.thread_id
    definition = agent.definition
    identity: object = accepting.identity
    if definition.identity is not None and identity is not None:
        identity = definition.identity.parse(identity, at="identity")
    context: Any = None
    if definition.runtime_context is not None:
        context = definition.runtime_context(ContextInput(identity, client_data, thread_id, signal))
        if inspect.isawaitable(context):
            context = await context
    bound = {alias: agent.bindings[item.id] for alias, item in command.capabilities.items()}
    ctx: CommandContext[Any] = CommandContext(
        context=context,
        identity=identity,
        client_data=client_data,
        thread_id=thread_id,
        capabilities=Capabilities(bound),
        signal=signal,
        host=_Host(accepting, command),
    )
    body = partial(command.execute, ctx, value)
    output: Any
    if command.is_async:
        output = body()
    else:
        # An abandoned thread is told by the signal.
        output = await anyio.to_thread.run_sync(
            body, abandon_on_cancel=True, limiter=core.limiter()
        )
    if inspect.isawaitable(output):
        output = await output
    return _as_json(command, output)


def _as_json(command: CommandDefinition[Any], output: object) -> JsonValue:
    schema = command.output
    if schema is None:
        return None
    try:
        dumped = schema.dump(schema.parse(output, at="output"))
    except InvalidInput as error:
        # Not the caller's fault.
        raise _Misfit(error) from error
    return dumped


class _Misfit(Exception):
    """The output does not fit its schema; holds the faults."""


class _Refused(InvalidInput):
    """What the command made of metadata does not fit; its cause says the same to the application."""


class _Host:
    """Behind :class:`~pai.definition.CommandContext`."""

    __slots__ = ("_accepting", "_command")

    def __init__(self, accepting: Accepting, command: CommandDefinition[Any]) -> None:
        self._accepting: Final = accepting
        self._command: Final = command

    async def update_metadata(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None:
        try:
            await self._update(run, thread, message)
        except InvalidInput as error:
            raise _Refused(error.faults, subject="metadata") from error

    async def _update(
        self,
        run: MetadataPatch | None,
        thread: MetadataPatch | None,
        message: MetadataPatch | None,
    ) -> None:
        core, agent, key = self._accepting.core, self._accepting.agent, self._accepting.key
        definition = agent.definition
        # The command's pair is the agent's very object, or none (A-META-8).
        run_merge = _merge(self._command.run_metadata, run, "run_metadata", "the command")
        thread_merge = _merge(definition.thread_metadata, thread, "thread_metadata", "the agent")
        message_merge = _merge(
            definition.message_metadata, message, "message_metadata", "the agent"
        )
        newest = Latest(None, None)
        if run_merge is not None or message_merge is not None:
            newest = await core.store.latest(key)
        messages: dict[str, Merge] = {}
        if message_merge is not None:
            if newest.message_id is None:
                fault = Fault("message_metadata", "the thread has no message")
                raise InvalidInput([fault], subject="metadata")
            messages[newest.message_id] = message_merge
        run_id = None if run_merge is None else newest.run_id
        change = ThreadChange(None, None, thread_merge, run_id, run_merge, messages)
        await core.update(key, agent.key, change)


def _merge(schemas: Any, patch: MetadataPatch | None, at: str, whose: str) -> Merge | None:
    if patch is None:
        return None
    return change_of(schemas, patch.private, patch.public, replace=False, at=at, whose=whose)
