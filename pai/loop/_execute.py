"""Executing tool calls and settling each on its own (R-12, R-17, R-18)."""

from __future__ import annotations

import inspect
from functools import partial
from typing import Any

import anyio
import anyio.to_thread

from pai.contexts import ToolFailure, ToolOutput, ToolResultContext
from pai.definition import ObservedCall, ObservedOutput, ObservedTool, ToolContext, ToolDefinition
from pai.errors import FatalToolError, Fault, InvalidInput, ToolError, ToolRetry
from pai.lifecycle import broken_hook
from pai.loop._episode import Episode, wrong_answer
from pai.loop._observe import observe
from pai.loop._plan import PlannedCall
from pai.loop._prepare import behavior_input
from pai.protocol import CallError, CallOutput, CallRecord, Commit, Event
from pai.schema import JsonValue, Schema, check_json, compile_schema

__all__ = ("run_calls",)


class _Host:
    """What stands behind a tool's context."""

    __slots__ = ("_call_id", "_episode", "_tool")

    def __init__(self, episode: Episode, tool: str, call_id: str) -> None:
        self._episode = episode
        self._tool = tool
        self._call_id = call_id

    def write_data(self, name: str, value: object, id: str | None, transient: bool) -> None:  # noqa: A002
        self._episode.write_data(name, value, id, transient)

    def progress(self, value: object) -> None:
        self._episode.progress(self._call_id, self._tool, value)


async def run_calls(
    episode: Episode, planned: list[PlannedCall], message_id: str
) -> dict[str, ToolResultContext[Any]]:
    """
    Run calls side by side; each settles when it is finished, and no failure stops a sibling.

    Returns:
        The results by call id.

    Raises:
        FatalToolError: A tool ended the run, after its siblings settled.
        PluginError: A hook raised.
    """
    results: dict[str, ToolResultContext[Any]] = {}
    fatal: list[BaseException] = []

    async def one(item: PlannedCall) -> None:
        try:
            results[item.call.call_id] = await _one_call(episode, item, message_id, fatal)
        except Exception as error:  # noqa: BLE001  # raised below, when the siblings have settled
            fatal.append(error)

    if len(planned) == 1:
        await one(planned[0])
    else:
        async with anyio.create_task_group() as group:
            for item in planned:
                group.start_soon(one, item)
    if fatal:
        raise fatal[0]
    return results


async def _one_call(
    episode: Episode, planned: PlannedCall, message_id: str, fatal: list[BaseException]
) -> ToolResultContext[Any]:
    call = planned.call
    config = episode.agent.definition.tools.get(call.tool)
    result = planned.result
    if planned.tool is not None and config is not None:
        result = await _execute(episode, planned, planned.tool, config.map_context, fatal)
    elif result is not None and result.outcome == "skipped" and config is not None:
        _check_output(episode, config.tool.output, result, result.output)
    assert result is not None
    chains = episode.agent.chains
    if chains.after_tool_result:
        await _judged(episode, config.tool.output if config else None, result)
    if result.error is not None and chains.transform_aside:
        result.error = str(episode.aside("error", result.error, name=call.tool))
    if config is not None and config.on_output is not None and result.error is None:
        await _observed(episode, config.on_output, result)
    event: Event
    if result.error is None:
        event = CallOutput(call.call_id, result.output, result.outcome)
    else:
        event = CallError(call.call_id, result.error, result.outcome)
    record = CallRecord(
        call.call_id, message_id, call.tool, "settled", result.outcome, result.output, result.error
    )
    await episode.journal.commit(Commit([event], calls=(record,)))
    episode.open_calls.pop(call.call_id, None)
    if chains.tool_settled:
        await observe(episode, chains.tool_settled, result)
    return result


async def _execute(
    episode: Episode,
    planned: PlannedCall,
    tool: ToolDefinition[Any],
    map_context: Any,
    fatal: list[BaseException],
) -> ToolResultContext[Any]:
    """Run the body and take what came of it."""
    call, context = planned.call, planned.context
    run = context.run
    result = ToolResultContext(context, "completed")
    where = {"run_id": run.id, "thread_id": run.thread_id, "tool": call.tool,
             "call_id": call.call_id}  # fmt: skip
    try:
        tool_context: Any = run.runtime_context
        if map_context is not None:
            tool_context = map_context(behavior_input(episode))
            if inspect.isawaitable(tool_context):
                tool_context = await tool_context
        if tool.context is not None and not isinstance(tool_context, tool.context):
            raise FatalToolError(  # noqa: TRY301  # one way for all that ends the run
                f"tool {call.tool!r} wants a {tool.context.__name__} as its context"
                f" and got a {type(tool_context).__name__}: give it map_context"
            )
        ctx = ToolContext(
            context=tool_context,
            identity=run.identity,
            client_data=run.client_data,
            thread_id=run.thread_id,
            run_id=run.id,
            call_id=call.call_id,
            idempotency_key=f"{run.id}:{call.call_id}",
            capabilities=episode.agent.tool_capabilities[call.tool],
            signal=run.signal,
            host=_Host(episode, call.tool, call.call_id),
        )
        if tool.spread:
            body = partial(tool.execute, ctx, **context.input)  # type: ignore[arg-type]  # a dict of arguments
        else:
            body = partial(tool.execute, ctx, context.input)
        output: Any
        if tool.is_async or tool.inline:
            output = body()
        else:
            # An abandoned thread is told by the signal; waiting for it would make cancelling wait.
            output = await anyio.to_thread.run_sync(
                body, abandon_on_cancel=True, limiter=episode.tool_limiter()
            )
        if inspect.isawaitable(output):
            output = await output
    except ToolError as error:
        result.outcome, result.error = "failed", str(error)
    except ToolRetry as error:
        result.outcome = "failed"
        result.error = f"{error} Call the tool again with other input."
    except FatalToolError as error:
        episode.report(error, where)
        result.outcome, result.error = "failed", f"The tool {call.tool!r} ended the run."
        fatal.append(error)
    except Exception as error:  # noqa: BLE001  # R-18: the model sees a fixed sentence, no text of ours
        episode.report(error, where)
        result.outcome = "failed"
        result.error = f"{type(error).__name__}: the tool {call.tool!r} failed."
    else:
        _check_output(episode, tool.output, result, output)
    return result


def _check_output(
    episode: Episode, schema: Schema[object] | None, result: ToolResultContext[Any], output: object
) -> None:
    """Put the output on the result as JSON, or make it a failed one (A-TOOL-6)."""
    try:
        result.output = _as_json(schema, output)
    except (InvalidInput, TypeError, ValueError) as error:
        faults = error.faults if isinstance(error, InvalidInput) else (Fault("output", str(error)),)
        episode.report(
            InvalidInput(faults, subject=f"output of tool {result.tool!r}"),
            {"run_id": result.run.id, "thread_id": result.thread_id, "tool": result.tool,
             "call_id": result.call_id},
        )  # fmt: skip
        result.outcome, result.output = "failed", None
        result.error = f"The output of {result.tool!r} does not fit its schema."


def _as_json(schema: Schema[object] | None, output: object) -> JsonValue:
    if schema is not None:
        return schema.dump(schema.parse(output, at="output"))
    kind = type(output)
    if kind is str or kind is int or kind is bool or output is None:
        return output  # type: ignore[return-value]  # plain JSON
    if hasattr(kind, "__attrs_attrs__"):
        return compile_schema(kind).dump(output)
    if faults := check_json(output, at="output"):
        raise InvalidInput(faults, subject="output")
    return output  # type: ignore[return-value]  # checked just above


async def _judged(
    episode: Episode, schema: Schema[object] | None, result: ToolResultContext[Any]
) -> None:
    """What ``after_tool_result`` makes of it; a changed output is checked again."""
    for hook in episode.agent.chains.after_tool_result:
        try:
            answer = hook.call(result)
            if hook.is_async or inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            raise broken_hook(hook, error) from error
        if answer is None:
            continue
        if isinstance(answer, ToolOutput):
            if result.error is not None:
                result.outcome, result.error = "completed", None
            _check_output(episode, schema, result, answer.value)
        elif isinstance(answer, ToolFailure):
            result.outcome, result.output, result.error = "failed", None, answer.message
        else:
            raise wrong_answer(hook, answer, "ToolOutput or ToolFailure")


async def _observed(episode: Episode, on_output: Any, result: ToolResultContext[Any]) -> None:
    """Tell the application, before the output is written or reaches the model (A-TOOL-5)."""
    run = result.run
    answer = on_output(
        ObservedOutput(
            run.runtime_context, run.identity, run.client_data, run.thread_id, run.signal,
            result.input, result.output, ObservedTool(result.tool), ObservedCall(result.call_id),
        )
    )  # fmt: skip
    if inspect.isawaitable(answer):
        await answer
