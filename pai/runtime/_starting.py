"""Starting a run: accepted, told to watchers, and worked on; or finding one."""

from __future__ import annotations

import anyio

from pai.contexts import Respond
from pai.protocol import Message
from pai.runtime._accepting import Accepting, Asked
from pai.runtime._run_handle import RunHandle

__all__ = ("find_run", "start_run")


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
    # The handle holds the hub before anything is published into it.
    hub = core.bound(hub, key, accepted.born, accepting.agent.key)
    if accepted.batch is None:
        return RunHandle(accepting, accepted.run.id, 1, hub)
    handle = RunHandle(accepting, run_id, accepted.batch.first, hub)
    core.begin(key, hub, accepted)
    if asked.when_busy == "interrupt" and accepted.active is not None:
        await core.cancel(key, accepted.active, "interrupted")
    return handle


async def find_run(accepting: Accepting, run_id: str) -> RunHandle | None:
    """A handle on a run of this agent, if there is one of this id."""
    core, key = accepting.core, accepting.key
    hub = core.hub(key)
    head = await core.store.head(key)
    record = None if head is None else await core.store.run(key, run_id)
    if head is None or record is None or record.agent != accepting.agent.key:
        return None
    # It is of this thread: whoever watches the run is told if that is deleted, whatever comes later.
    return RunHandle(accepting, run_id, 1, core.bound(hub, key, head.created_at, head.agent))
