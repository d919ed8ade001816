"""Planning a tool call: from what the model sent to what will be done (run-options, tool input)."""

from __future__ import annotations

import inspect
from typing import Any

from pai.contexts import DenyCall, ReplaceInput, SkipCall, ToolCallContext, ToolResultContext
from pai.definition import ToolDefinition
from pai.errors import Fault, InvalidInput
from pai.lifecycle import broken_hook
from pai.loop._episode import Episode, wrong_answer
from pai.loop._request import is_enabled
from pai.protocol import ToolCall
from pai.schema import JsonValue

__all__ = ("PlannedCall", "plan_call")


class PlannedCall:
    """
    A call and what will be done with it.

    Attributes:
        call: What the model sent.
        context: What hooks see; its input is final.
        tool: The tool to run; ``None`` if nothing runs.
        result: How it has ended already, if nothing runs.
        stored_input: The input as JSON, as it is stored and executed.
    """

    __slots__ = ("call", "context", "judged", "result", "stored_input", "tool")

    def __init__(self, call: ToolCall, context: ToolCallContext[Any]) -> None:
        self.call = call
        self.context = context
        self.tool: ToolDefinition[Any] | None = None
        self.result: ToolResultContext[Any] | None = None
        self.stored_input: JsonValue = call.input
        # Hooks have a say only on calls that reached the policy, or failed on their own input.
        self.judged = True

    def settle(self, outcome: Any, *, output: JsonValue = None, error: str | None = None) -> None:
        """Nothing runs: this is how it ended."""
        self.tool = None
        self.result = ToolResultContext(self.context, outcome, output, error)


def _issues(faults: tuple[Fault, ...]) -> str:
    return "The input does not fit the tool's schema: " + "; ".join(map(str, faults))


async def plan_call(episode: Episode, step_index: int, call: ToolCall) -> PlannedCall:
    """Parse, look up, check, rewrite, judge: in this order, and no further than it gets."""
    agent = episode.agent
    context = ToolCallContext(
        episode.context, step_index, call.tool, call.call_id, call.input, call.input
    )
    planned = PlannedCall(call, context)
    config = agent.definition.tools.get(call.tool)
    if call.raw is not None:
        planned.settle("failed", error="The input is no valid JSON. Send one JSON object.")
        return planned
    if config is None:
        known = ", ".join(agent.definition.tools) or "none"
        planned.settle("failed", error=f"There is no tool named {call.tool!r}. Tools: {known}.")
        return planned
    if not _selected(episode, call.tool) or not await is_enabled(episode, config.enabled):
        planned.settle("failed", error=f"The tool {call.tool!r} is not available now.")
        return planned
    tool = config.tool
    try:
        context.input = tool.input.parse(call.input, at="input")
    except InvalidInput as error:
        if call.input is not None:
            planned.settle("failed", error=_issues(error.faults))
            return planned
        # Null where the schema refuses null counts as an empty object.
        try:
            context.input = tool.input.parse({}, at="input")
        except InvalidInput as again:
            planned.settle("failed", error=_issues(again.faults))
            return planned
        planned.stored_input = context.raw_input = {}
    planned.tool = tool
    if agent.chains.rewrite_tool_input:
        await _rewrite(episode, planned, tool)
        if planned.result is not None:
            return planned
    if agent.chains.before_tool_call:
        await _judge(episode, planned)
    return planned


def _selected(episode: Episode, name: str) -> bool:
    patch = episode.patch
    return patch is None or not patch.tools or name in patch.tools


async def _rewrite(episode: Episode, planned: PlannedCall, tool: ToolDefinition[Any]) -> None:
    context = planned.context
    for hook in episode.agent.chains.rewrite_tool_input:
        try:
            answer = hook.call(context)
            if hook.is_async or inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            raise broken_hook(hook, error) from error
        if answer is None:
            continue
        if not isinstance(answer, ReplaceInput):
            raise wrong_answer(hook, answer, "ReplaceInput")
        try:
            context.input = tool.input.parse(answer.value, at="input")
        except InvalidInput as error:
            planned.settle("failed", error=_issues(error.faults))
            return
        planned.stored_input = context.raw_input = tool.input.dump(context.input)


async def _judge(episode: Episode, planned: PlannedCall) -> None:
    """All are asked; the strictest answer wins, among equals the leftmost (R-23)."""
    denied: DenyCall | None = None
    skipped: SkipCall | None = None
    for hook in episode.agent.chains.before_tool_call:
        try:
            answer = hook.call(planned.context)
            if hook.is_async or inspect.isawaitable(answer):
                answer = await answer
        except Exception as error:
            raise broken_hook(hook, error) from error
        if answer is None:
            continue
        if isinstance(answer, DenyCall):
            denied = denied or answer
        elif isinstance(answer, SkipCall):
            skipped = skipped or answer
        else:
            raise wrong_answer(hook, answer, "SkipCall or DenyCall")
    if denied is not None:
        planned.settle("denied", error=denied.message)
    elif skipped is not None:
        planned.settle("skipped", output=skipped.output)  # type: ignore[arg-type]  # checked when it settles
