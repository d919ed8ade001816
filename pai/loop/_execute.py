"""Executing tool calls and settling each on its own (R-12, R-17, R-18)."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import anyio.to_thread
import attrs

from pai.contexts import ToolResultContext
from pai.definition import AgentToolConfig, Signal, ToolContext, ToolDefinition
from pai.errors import FatalToolError, PluginError, ToolError, ToolRetry
from pai.lifecycle import is_stray
from pai.loop._children import settled_rows, waiting_rows
from pai.loop._episode import Episode
from pai.loop._host import CallHost
from pai.loop._judge import decided, judged, observed
from pai.loop._logs import tool_ended
from pai.loop._observe import observe
from pai.loop._parallel import at_once, side_by_side
from pai.loop._plan import PlannedCall
from pai.loop._prepare import behavior_input
from pai.loop._result import Result, checked_output, failed
from pai.loop._tool_timeout import LateTool, within
from pai.loop._wait import CallSuspended, waiting
from pai.protocol import CallError, CallOutput, CallRecord, Commit, Event

__all__ = ("run_calls",)


async def run_calls(episode: Episode, planned: list[PlannedCall]) -> None:
    """
    Run calls side by side; each settles when it is finished, and no failure stops a sibling.

    Those that wait for an answer are passed over, and a body that suspends itself waits from then on.

    Raises:
        FatalToolError: A tool ended the run, after its siblings settled.
        PluginError: A hook raised.
    """
    fatal: list[BaseException] = []
    planned = [item for item in planned if item.wait is None]

    async def one(item: PlannedCall) -> None:
        try:
            await _one_call(episode, item, fatal)
        except Exception as error:  # raised below, when the siblings have settled
            fatal.append(error)

    await side_by_side(planned, one, at_once(episode), lambda: fatal)
    if fatal:
        raise fatal[0]


async def _one_call(episode: Episode, planned: PlannedCall, fatal: list[BaseException]) -> None:
    call = planned.call
    if call.provider_executed:
        # Of a tool of ours that has its name, nothing holds for it.
        result = Result(planned.outcome or "failed", None, planned.error)
        await _end_call(episode, planned, *decided(episode, planned.context, result))
        return
    config = episode.tools.get(call.tool)
    schema = None if config is None else config.tool.output
    if planned.tool is not None and config is not None:
        host = CallHost(episode, planned.tool, call.call_id, planned.answers)
        result = await _execute(episode, planned, planned.tool, config, host, fatal)
        if host.held:
            await _commit_wait(episode, planned, host)
            return
        await host.leave()
    elif planned.outcome in ("skipped", "completed"):
        result = checked_output(episode, call, schema, planned.output, planned.outcome)
    else:
        result = Result(planned.outcome or "failed", None, planned.error)
    shown, result = await judged(episode, planned.context, schema, result)
    if config is not None and config.on_output is not None and result.error is None:
        await observed(config.on_output, shown)
    await _end_call(episode, planned, shown, result)


async def _end_call(
    episode: Episode, planned: PlannedCall, shown: ToolResultContext[Any], result: Result
) -> None:
    """Write how a call ended, and tell of it."""
    call = planned.call
    event: Event
    if result.error is None:
        event = CallOutput(call.call_id, result.output, result.outcome)
    else:
        event = CallError(call.call_id, result.error, result.outcome)
    await _commit(episode, planned, event, result)
    tool_ended(episode, call.tool, call.call_id, result.outcome, result.output)
    if chain := episode.agent.chains.tool_settled:
        await observe(episode, chain, shown)


async def _commit(episode: Episode, planned: PlannedCall, event: Event, result: Result) -> None:
    """Write how the call ended and, where data was written meanwhile, the message again."""
    call, draft = planned.call, episode.draft
    before = episode.open_calls.get(call.call_id)
    record = CallRecord(
        call.call_id,
        draft.id,
        call.tool,
        "settled",
        result.outcome,
        result.output,
        result.error,
    )
    if before is not None and before.decisions:
        # What was decided stays on it: the same answers again are safe (O-16).
        record = attrs.evolve(
            record, decisions=before.decisions, kind=before.kind, input=before.input,
            rewritten=before.rewritten,
        )  # fmt: skip
    change = Commit([event], calls=(record,))
    if episode.questions:
        stale = settled_rows(episode, f"{call.call_id}~", set())
        change.calls = (record, *stale)
    draft.settle(call.call_id, result)
    if draft.changed:
        async with episode.rewriting():
            change.message = draft.take()
            await episode.commit(change)
    else:
        await episode.commit(change)
    episode.open_calls.pop(call.call_id, None)


async def _commit_wait(episode: Episode, planned: PlannedCall, host: CallHost) -> None:
    """Write that the call waits; what its body has done before is done again."""
    call_id = planned.call.call_id
    before = episode.open_calls[call_id]
    change = Commit()
    if host.waits is not None:
        record, event = waiting(episode, before, planned.stored_input, host.waits)
        change.events.append(event)
        planned.wait = host.waits
    else:
        record = attrs.evolve(before, status="held")
    rows = [record]
    for name, place, pending in host.children:
        shown, events = waiting_rows(episode, name, call_id, place, pending)
        rows += shown
        change.events += events
    change.calls = tuple(rows)
    await episode.commit(change)
    episode.open_calls[call_id] = record


async def _execute(
    episode: Episode,
    planned: PlannedCall,
    tool: ToolDefinition[Any],
    config: AgentToolConfig[Any],
    host: CallHost,
    fatal: list[BaseException],
) -> Result:
    """Run the body and take what came of it; nothing did if the host says that it waits."""
    call = planned.call
    await _begin(episode, call.call_id, tool)
    try:
        output = await within(
            tool.timeout,
            episode.signal,
            lambda signal: _run_body(episode, planned, tool, config, host, signal),
        )
    except CallSuspended:
        return Result("interrupted")
    except ToolError as error:
        return failed(str(error))
    except ToolRetry as error:
        return failed(f"{error} Call the tool again with other input.")
    except (FatalToolError, PluginError) as error:
        fatal.append(error)
        return failed(f"The tool {call.tool!r} ended the run.")
    except LateTool:
        return failed(f"The tool {call.tool!r} took longer than {tool.timeout:g} s.")
    except (Exception, SystemExit) as error:
        # the model sees the type and a fixed sentence, no text of ours.
        episode.report(error, _where(episode, planned))
        return failed(f"{type(error).__name__}: the tool {call.tool!r} failed.")
    except BaseException as error:
        if host.held and not episode.signal.is_set():
            return Result("interrupted")  # it came through a task group of the tool's
        if not is_stray(error):
            raise
        # the tool was cancelled, by itself; the run was not.
        episode.report(error, _where(episode, planned))
        return Result("cancelled", None, f"The tool {call.tool!r} was cancelled.")
    return checked_output(episode, call, tool.output, output, "completed")


async def _begin(episode: Episode, call_id: str, tool: ToolDefinition[Any]) -> None:
    """Write that a call begins which had to wait for others (R-12)."""
    record = episode.open_calls.get(call_id)
    if record is not None and record.status in ("requested", "answered") and not tool.idempotent:
        started = episode.open_calls[call_id] = attrs.evolve(record, status="started")
        await episode.commit(Commit(calls=(started,)))


def _where(episode: Episode, planned: PlannedCall) -> dict[str, object]:
    run, call = episode.context, planned.call
    return {
        "run_id": run.id, "thread_id": run.thread_id, "tool": call.tool, "call_id": call.call_id,
    }  # fmt: skip


async def _run_body(
    episode: Episode,
    planned: PlannedCall,
    tool: ToolDefinition[Any],
    config: AgentToolConfig[Any],
    host: CallHost,
    signal: Signal,
) -> object:
    call, run = planned.call, episode.context
    context: Any = run.runtime_context
    if config.map_context is not None:
        context = config.map_context(behavior_input(episode))
        if inspect.isawaitable(context):
            context = await context
    if tool.context is not None and not isinstance(context, tool.context):
        raise FatalToolError(
            f"tool {call.tool!r} wants a {tool.context.__name__} as its context"
            f" and got a {type(context).__name__}: give it map_context"
        )
    ctx = ToolContext(
        context=context,
        identity=run.identity,
        client_data=run.client_data,
        thread_id=run.thread_id,
        run_id=run.id,
        call_id=call.call_id,
        idempotency_key=f"{run.id}:{call.call_id}",
        capabilities=episode.agent.tool_capabilities[call.tool],
        signal=signal,
        host=host,
    )
    assert tool.execute is not None
    if tool.spread:
        body = partial(tool.execute, ctx, **planned.input)  # type: ignore[arg-type]  # a dict of arguments
    else:
        body = partial(tool.execute, ctx, planned.input)
    output: object
    if tool.is_async or tool.inline:
        output = body()
    else:
        # An abandoned thread is told by the signal; waiting for it would make cancelling wait.
        output = await anyio.to_thread.run_sync(
            body, abandon_on_cancel=True, limiter=episode.tool_limiter()
        )
    if inspect.isawaitable(output):
        output = await output
    return output
