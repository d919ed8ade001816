"""A run without a thread: :func:`run_once`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import anyio

from pai.definition import AgentDefinition, RunOptions
from pai.errors import Fault, PaiError, UnknownOptionError
from pai.protocol import ThreadKey
from pai.runtime._accepting import Content
from pai.runtime._core import ErrorHandler
from pai.runtime._for_once import for_once
from pai.runtime._given_messages import GivenMessage, given_messages, keep_messages
from pai.runtime._pai import create_pai
from pai.runtime._result import RunResult
from pai.stores import MemoryStore

__all__ = ("run_once", "run_once_sync")


async def run_once(
    agent: AgentDefinition[Any],
    content: Content | None = None,
    *,
    messages: Sequence[GivenMessage] | None = None,
    identity: object = None,
    client_data: object = None,
    options: RunOptions | Mapping[str, object] | None = None,
    output: object = None,
    capabilities: Mapping[str, object] | None = None,
    plugins: Sequence[object] | Mapping[str, object] | None = (),
    on_runtime_error: ErrorHandler | None = None,
    **unknown: object,
) -> RunResult:
    """
    Run an agent once, in memory, on the same engine as every other run.

    Args:
        agent: The agent.
        content: The user's message; ``None`` triggers the run without one.
        messages: What was said before (O-8), oldest first: messages, or mappings with ``role`` and
            ``content``. If there is no *content* and the last one is a user's, it is the message
            that the run answers.
        identity: Who it is for.
        client_data: What the client sent along.
        options: Options of the run. Nothing is stored here, so a mapping may also hold a driver as
            its ``model``, and functions as ``stop_when`` and ``repair_tool_input``.
        output: The structured output that is asked for (O-11): a class, a type, the name of one of
            the agent's ``outputs``, or a JSON Schema. It wins over the options.
        capabilities: Bindings by id.
        plugins: As in :func:`create_pai`; no installed one is loaded unless it is asked for.
        on_runtime_error: Takes every error whole.

    Raises:
        UnknownOptionError: An option nobody knows.
        DefinitionError: The agent's lifecycle or the bindings are wrong.
        InvalidInput: The messages, the identity, the client data or an option does not fit.
    """
    if unknown:
        strangers = [Fault(name, "is no option of run_once") for name in unknown]
        raise UnknownOptionError(strangers, subject="run_once")
    before = [] if messages is None else given_messages(messages)
    if content is None and before and before[-1].role == "user":
        content = before.pop().parts  # type: ignore[assignment]  # a user's
    agent, options = for_once(agent, options, output)
    store = MemoryStore()
    app = create_pai(
        agents={agent.name: agent},
        store=store,
        capabilities=capabilities,
        plugins=plugins,
        on_runtime_error=on_runtime_error,
    )
    async with app:
        thread = app.thread(agent.name, identity=identity)
        if before:
            await keep_messages(store, ThreadKey("default", thread.id), agent, before)
        if content is None:
            run = await thread.trigger(options=options, client_data=client_data)
        else:
            run = await thread.send(content, options=options, client_data=client_data)
        return await run.result()


def run_once_sync(
    agent: AgentDefinition[Any],
    content: Content | None = None,
    **options: Any,
) -> RunResult:
    """
    :func:`run_once` for code without an event loop; arguments and errors are the same.

    Raises:
        PaiError: There is an event loop in this thread: ``await run_once(...)`` there.
    """
    if _in_event_loop():
        raise PaiError("run_once_sync() was called in an event loop: use `await run_once(...)`")

    async def main() -> RunResult:
        return await run_once(agent, content, **options)

    return anyio.run(main)


def _in_event_loop() -> bool:
    try:
        anyio.get_current_task()
    except RuntimeError:
        return False
    return True
