"""Planning a tool call: from what the model sent to what will be done (run-options, tool input)."""

from __future__ import annotations

import copy
from typing import Any

from pai.contexts import (
    Ask,
    DenyCall,
    ReplaceInput,
    RequireApproval,
    SkipCall,
    StepContext,
    ToolCallContext,
    renew,
)
from pai.definition import DISCOVERY_TOOL, ToolDefinition
from pai.errors import Fault, InvalidInput
from pai.lifecycle import next_answer, wrong_answer
from pai.loop._episode import Episode
from pai.loop._lazy import discover, undiscovered
from pai.loop._repair import repaired_input
from pai.loop._request import available_tools
from pai.loop._wait import Wait, asked
from pai.protocol import CallOutcome, ToolCall
from pai.schema import JsonValue

__all__ = ("PlannedCall", "plan_again", "plan_call")


class PlannedCall:
    """
    A call and what will be done with it.

    Attributes:
        call: What the model sent.
        context: What hooks are shown.
        tool: The tool to run; ``None`` if nothing runs.
        input: The checked input it runs with.
        stored_input: The same as JSON, as it is stored.
        outcome: How it has ended already, if nothing runs.
        output: What was given for an output, if nothing runs.
        error: What the model is told, if nothing runs.
        misfit: The tool whose schema the input does not fit, and what is wrong.
        wait: What it waits for first.
        answers: What its body was given so far, for each ``ctx.suspend``.
    """

    __slots__ = (
        "answers", "call", "context", "error", "input", "misfit", "outcome", "output",
        "stored_input", "tool", "wait",
    )  # fmt: skip

    def __init__(self, call: ToolCall, context: ToolCallContext[Any]) -> None:
        self.call = call
        self.context = context
        self.tool: ToolDefinition[Any] | None = None
        self.input: object = None
        self.stored_input: JsonValue = call.input
        self.outcome: CallOutcome | None = None
        self.output: object = None
        self.error: str | None = None
        self.misfit: tuple[ToolDefinition[Any], tuple[Fault, ...]] | None = None
        self.wait: Wait | None = None
        self.answers: tuple[JsonValue, ...] = ()

    def fail(self, error: str) -> PlannedCall:
        """Nothing runs: the model is told *error*."""
        return self.end("failed", error)

    def end(self, outcome: CallOutcome, error: str) -> PlannedCall:
        """Nothing runs: it has ended so, and the model is told *error*."""
        self.outcome, self.error, self.tool, self.wait = outcome, error, None, None
        return self

    def take(self, value: object, stored: JsonValue) -> None:
        """This is the input from now on."""
        self.input, self.stored_input = value, stored
        renew(self.context, input=value, raw_input=stored)


def _issues(faults: tuple[Fault, ...]) -> str:
    return "The input does not fit the tool's schema: " + "; ".join(map(str, faults))


async def plan_call(episode: Episode, step: StepContext[Any], call: ToolCall) -> PlannedCall:
    """Parse, look up, check, rewrite, judge: in this order, and no further than it gets."""
    if call.provider_executed:
        return _asked_by_provider(episode, step.index, call)
    offered = [spec.name for spec in step.request.tools]
    planned = await _seen_to(episode, _looked_up(episode, step.index, offered, call))
    chains = episode.agent.chains
    if planned.tool is not None and chains.rewrite_tool_input:
        await _rewrite(episode, planned, planned.tool)
    if planned.tool is not None and chains.before_tool_call:
        await _judge(episode, planned)
    _hold_back(planned)
    return planned


async def plan_again(
    episode: Episode,
    index: int,
    offered: list[str],
    call: ToolCall,
    *,
    judge: bool,
    approved: bool = False,
) -> PlannedCall:
    """
    Plan a call that was left in an earlier episode, or by a former worker: it is rewritten already.

    Args:
        episode: The run.
        index: The step of the call.
        offered: Names of the tools that are offered now.
        call: The call, with the input that is to be executed.
        judge: Ask ``before_tool_call``: it has not decided on this input.
        approved: Somebody has approved it.
    """
    if call.provider_executed:
        return _asked_by_provider(episode, index, call, approved=approved)
    planned = await _seen_to(episode, _looked_up(episode, index, offered, call))
    if judge and planned.tool is not None and episode.agent.chains.before_tool_call:
        await _judge(episode, planned, approved=approved)
    _hold_back(planned, approved=approved)
    return planned


def _asked_by_provider(
    episode: Episode, index: int, call: ToolCall, *, approved: bool = False
) -> PlannedCall:
    """A call that the provider runs once it is approved: nothing of it is ours to check (O-3)."""
    planned = PlannedCall(call, _context(episode, index, call))
    if approved:
        planned.outcome = "completed"
    else:
        planned.wait = Wait("approval", call.approval)
    return planned


def _context(episode: Episode, index: int, call: ToolCall) -> ToolCallContext[Any]:
    return ToolCallContext(episode.context, index, call.tool, call.call_id, call.input, call.input)


def _hold_back(planned: PlannedCall, *, approved: bool = False) -> None:
    """What the tool itself asks for: an approval, and then a client."""
    tool = planned.tool
    if tool is None or planned.wait is not None:
        return
    if tool.needs_approval and not approved:
        planned.wait = Wait("approval", None, tool.expires_after)
    elif tool.execute is None:
        planned.wait = Wait("client", None, tool.expires_after)


def _looked_up(episode: Episode, index: int, offered: list[str], call: ToolCall) -> PlannedCall:
    """The call with its tool and its checked input, as far as it has them."""
    planned = PlannedCall(call, _context(episode, index, call))
    if call.raw is not None:
        return planned.fail("The input is no valid JSON. Send one JSON object.")
    config = episode.tools.get(call.tool)
    if config is None:
        known = ", ".join(offered) or "none"
        return planned.fail(f"There is no tool named {call.tool!r}. Tools: {known}.")
    if call.tool not in offered:
        if DISCOVERY_TOOL in offered and undiscovered(episode, [call.tool]):
            return planned.fail(f"Discover {call.tool!r} first: call {DISCOVERY_TOOL} with it.")
        # Disabled, or left out by a patch: a stale or forged call does not run it (A-TOOL-3).
        return planned.fail(f"The tool {call.tool!r} is not available now.")
    tool = config.tool
    try:
        planned.take(*_checked(tool, call.input))
    except InvalidInput as error:
        planned.misfit = tool, error.faults
        return planned.fail(_issues(error.faults))
    planned.tool = tool
    return planned


async def _seen_to(episode: Episode, planned: PlannedCall) -> PlannedCall:
    """The call, its input repaired if it did not fit and could be; discovery is done at once."""
    call = planned.call
    if call.tool == DISCOVERY_TOOL and episode.agent.lazy and call.raw is None:
        # Also where it is not offered any more, as all is discovered.
        available = episode.agent.lazy.intersection(await available_tools(episode))
        output, error = discover(episode.agent, available, call.input)
        if error is not None:
            return planned.fail(error)
        planned.outcome, planned.output, planned.error = "completed", output, None
    if planned.misfit is not None:
        tool, faults = planned.misfit
        made = await repaired_input(episode, planned.call, tool, faults)
        if made is not None:
            planned.outcome, planned.error, planned.tool = None, None, tool
            planned.take(*made)
    return planned


def _checked(tool: ToolDefinition[Any], value: JsonValue) -> tuple[object, JsonValue]:
    """The input as the tool takes it, and as it is stored."""
    try:
        return tool.input.parse(value, at="input"), value
    except InvalidInput:
        if value is not None:
            raise
    # Null where the schema refuses null counts as an empty object.
    return tool.input.parse({}, at="input"), {}


async def _rewrite(episode: Episode, planned: PlannedCall, tool: ToolDefinition[Any]) -> None:
    chain, at = episode.agent.chains.rewrite_tool_input, 0
    while found := await next_answer(chain, at, planned.context):
        at, hook, answer = found
        if not isinstance(answer, ReplaceInput):
            raise wrong_answer(hook, answer, "None or ReplaceInput")
        try:
            value = tool.input.parse(answer.value, at="input")
        except InvalidInput as error:
            planned.fail(_issues(error.faults))
            return
        planned.take(value, tool.input.dump(value))


async def _judge(episode: Episode, planned: PlannedCall, *, approved: bool = False) -> None:
    """All are asked; the strictest answer wins, among equals the leftmost (R-23)."""
    context, value, stored = planned.context, planned.input, planned.stored_input

    def show_copy() -> None:
        # What was allowed is what is executed, whatever a policy does to what it is shown.
        if context.input is value or context.input != value or context.raw_input != stored:
            renew(context, input=copy.deepcopy(value), raw_input=copy.deepcopy(stored))

    show_copy()
    denied: DenyCall | None = None
    skipped: SkipCall | None = None
    wait: Wait | None = None
    chain, at = episode.agent.chains.before_tool_call, 0
    while found := await next_answer(chain, at, context, after=show_copy):
        at, hook, answer = found
        if isinstance(answer, DenyCall):
            denied = denied or answer
        elif isinstance(answer, SkipCall):
            skipped = skipped or answer
        elif isinstance(answer, RequireApproval):
            if not approved:
                wait = wait or _approval(planned, answer)
        elif isinstance(answer, Ask):
            wait = wait or asked(episode, hook, answer)
        else:
            words = "None, SkipCall, DenyCall, RequireApproval or Ask"
            raise wrong_answer(hook, answer, words)
    renew(context, input=value, raw_input=stored)
    if denied is not None:
        planned.end("denied", denied.message)
    elif wait is not None:
        planned.wait = wait
    elif skipped is not None:
        planned.outcome, planned.output, planned.tool = "skipped", skipped.output, None


def _approval(planned: PlannedCall, answer: RequireApproval) -> Wait:
    payload: JsonValue = None if answer.reason is None else {"reason": answer.reason}
    after = answer.expires_after
    if after is None and planned.tool is not None:
        after = planned.tool.expires_after
    return Wait("approval", payload, after)
