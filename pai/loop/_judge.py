"""What hooks and the application make of how a call ended."""

from __future__ import annotations

import inspect
from typing import Any

from pai.contexts import ToolCallContext, ToolFailure, ToolOutput, ToolResultContext
from pai.definition import ObservedCall, ObservedOutput, ObservedTool
from pai.lifecycle import next_answer, wrong_answer
from pai.loop._aside import error_text
from pai.loop._episode import Episode
from pai.loop._result import Result, checked_output, failed
from pai.protocol import ToolCall
from pai.schema import Schema

__all__ = ("decided", "judged", "observed")


async def judged(
    episode: Episode,
    context: ToolCallContext[Any],
    schema: Schema[object] | None,
    result: Result,
) -> tuple[ToolResultContext[Any], Result]:
    """
    The result after all of ``after_tool_result``, and after ``transform_aside`` had its error.

    Raises:
        PluginError: A hook raised.
    """
    shown = ToolResultContext(context, *result)
    chain, at = episode.agent.chains.after_tool_result, 0
    while found := await next_answer(chain, at, shown):
        at, hook, answer = found
        if isinstance(answer, ToolOutput):
            outcome = "completed" if result.error is not None else result.outcome
            call = ToolCall(context.call_id, context.tool)
            result = checked_output(episode, call, schema, answer.value, outcome)
        elif isinstance(answer, ToolFailure):
            result = failed(answer.message)
        else:
            raise wrong_answer(hook, answer, "None, ToolOutput or ToolFailure")
        shown = ToolResultContext(context, *result)
    told = _told(episode, context, result)
    return (shown, result) if told is result else (ToolResultContext(context, *told), told)


def decided(
    episode: Episode, context: ToolCallContext[Any], result: Result
) -> tuple[ToolResultContext[Any], Result]:
    """
    The decision on a call that the provider runs, after ``transform_aside`` had its reason (O-3).

    It is no result: a hook that made one good would approve what was denied.
    """
    told = _told(episode, context, result)
    return ToolResultContext(context, *told), told


def _told(episode: Episode, context: ToolCallContext[Any], result: Result) -> Result:
    if result.error is None:
        return result
    text = error_text(episode, result.error, context.tool)
    return result if text == result.error else result._replace(error=text)


async def observed(on_output: Any, result: ToolResultContext[Any]) -> None:
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
