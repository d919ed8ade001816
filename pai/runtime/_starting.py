"""Starting a run: accepted, told to watchers, and worked on."""

from __future__ import annotations

import anyio

from pai.contexts import Respond
from pai.protocol import Message
from pai.runtime._accepting import Accepting, Asked
from pai.runtime._run_handle import RunHandle

__all__ = ("start_run",)


async def start_run(
    accepting: Accepting,
    asked: Asked,
    run_id: str,
    message: Message | None = None,
    respond: Respond | None = None,
    after: str | None = None,
) -> RunHandle:
    """
    Start a run, or find the one that the same request has started.

    Args and errors are those of :meth:`Accepting.accept`.
    """
    if not accepting.core.store.durable:
        return await _start(accepting, asked, run_id, message, respond, after)
    # What is accepted is begun, also for a caller who is cancelled at this moment: else the run would
    # wait for the end of its lease.
    with anyio.CancelScope(shield=True):
        handle = await _start(accepting, asked, run_id, message, respond, after)
    return handle  # noqa: RET504  # mypy: a scope may swallow what it holds


async def _start(
    accepting: Accepting,
    asked: Asked,
    run_id: str,
    message: Message | None,
    respond: Respond | None,
    after: str | None,
) -> RunHandle:
    core, key = accepting.core, accepting.key
    hub = core.hub(key)
    accepted = await accepting.accept(asked, run_id, message, respond, after)
    if accepted.batch is None or accepted.born is None:
        return RunHandle(accepting, accepted.run.id, 1)
    # The handle holds the hub before anything is published into it.
    hub = core.bound(hub, key, accepted.born, accepting.agent.key)
    handle = RunHandle(accepting, run_id, accepted.batch.first, hub)
    core.begin(key, hub, accepted)
    if asked.when_busy == "interrupt" and accepted.active is not None:
        await core.cancel(key, accepted.active, "interrupted")
    return handle
