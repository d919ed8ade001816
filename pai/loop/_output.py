"""The structured output of a run: told to the model, read, and asked for once more (O-11)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import attrs

from pai.contexts import StepContext
from pai.definition import Output, as_output
from pai.errors import Fault, InvalidInput, StructuredOutputError
from pai.loop._assemble import Assembly
from pai.loop._episode import Episode
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import (
    Message,
    OutputPart,
    TextPart,
    ToolCallPart,
    Usage,
    new_id,
)
from pai.schema import UNSET, JsonObject, Unset, check_json, dump_json

__all__ = ("closing_request", "output_is_due", "output_wish", "read_output", "schema_for", "tell")

ASK = "Now give your final answer, as one JSON value that fits the schema of the output."
"""What the model is told when nothing but the output is left."""

AGAIN = (
    "Your answer does not fit the schema of the output:\n{}\nAnswer again, with nothing but JSON."
)
"""What it is told of an answer that does not fit."""

_MOST_FAULTS = 20


def output_wish(episode: Episode) -> Output | None:
    """What the run is asked for: by the hooks' patch, else by the options of the call."""
    patch, options = episode.patch, episode.options
    wish: object = None
    if patch is not None and patch.output is not UNSET:
        wish = patch.output
    elif options is not None:
        wish = options.output
    return None if wish is None else as_output(wish, episode.agent.definition.outputs)


def schema_for(episode: Episode, request: ModelRequest) -> JsonObject | None:
    """
    The schema that goes with a request, if it has room for one.

    Beside tools it goes only to a driver that says it takes both; other models get it in a call
    of its own, once they call no more tools.
    """
    output = episode.output
    if output is None:
        return None
    if request.tools or request.provider_tools:
        driver = episode.resolve(request.model)
        if not driver.profile.combined_output:
            return None
    return output.json_schema


def tell(episode: Episode, request: ModelRequest, driver: ModelDriver) -> ModelRequest:
    """The request as this driver may get it: hooks may have sent it elsewhere meanwhile."""
    profile = episode.profile_of(driver)
    if (
        request.output is not None
        and (request.tools or request.provider_tools)
        and not profile.combined_output
    ):
        request = attrs.evolve(request, output=None)
    episode.told_output = request.output is not None
    return request


def output_is_due(episode: Episode) -> Output | None:
    """The output that a former worker's run owes: its last step had said all but that."""
    output = output_wish(episode)
    if output is None or not episode.messages:
        return None
    last = episode.messages[-1]
    if last.role != "assistant" or last.run_id != episode.claimed.run.id or _calls(last):
        return None
    return output


def _calls(message: Message) -> bool:
    return any(type(part) is ToolCallPart and not part.run_by_provider for part in message.parts)


def closing_request(episode: Episode, request: ModelRequest, output: Output) -> ModelRequest:
    """The request of the call that makes nothing but the output."""
    return attrs.evolve(
        request,
        messages=(*request.messages, _told(episode, ASK)),
        tools=(),
        provider_tools=(),
        tool_choice=None,
        output=output.json_schema,
        mid_conversation=None,
    )


def _told(episode: Episode, text: str) -> Message:
    """A word of ours to the model; it is no message of the thread."""
    run_id = episode.claimed.run.id
    return Message(new_id(), "user", (TextPart(text),), run_id, datetime.now(UTC))


async def read_output(
    episode: Episode,
    step: StepContext[Any],
    assembly: Assembly,
    ask_again: Callable[[StepContext[Any]], Awaitable[object]],
) -> OutputPart | None:
    """
    The output of a step, or ``None`` where it has none: it called tools, or the model was not told.

    In the second case the episode says that the closing call is due. An answer that does not fit
    is asked for once more, within the step.

    Args:
        episode: The run.
        step: The step.
        assembly: What it said.
        ask_again: Makes another call in this step, whose parts go into *assembly*.

    Raises:
        StructuredOutputError: The second answer does not fit either, or the answer was cut off.
    """
    output = episode.output
    if output is None or (assembly.calls and step.kind == "model"):
        return None
    if not episode.told_output:
        episode.closing = output
        return None
    try:
        try:
            return _read(episode, output, assembly)
        except StructuredOutputError as error:
            if error.code in _FINAL:
                raise
            first = assembly.finish
            assert first is not None
            await ask_again(_once_more(episode, step, output, assembly, _issues(error)))
            second = assembly.finish
            assert second is not None
            assembly.finish = attrs.evolve(second, usage=_sum(first.usage, second.usage))
        return _read(episode, output, assembly)
    except StructuredOutputError:
        if assembly.finish is not None and assembly.finish.usage is not None:
            episode.usage = episode.usage + assembly.finish.usage
        raise


def _issues(error: StructuredOutputError) -> str:
    found = error.__cause__
    faults = found.faults[:_MOST_FAULTS] if isinstance(found, InvalidInput) else (error,)
    return "\n".join([f"- {fault}" for fault in faults])


def _sum(first: Usage | None, second: Usage | None) -> Usage | None:
    if first is None or second is None:
        return second or first
    return first + second


_FINAL = frozenset({"structured_output_truncated", "structured_output_filtered"})
"""Codes of answers that would come out the same again."""


def _is_text(episode: Episode) -> bool:
    """Whether the driver last asked gives the output as text, and not as a value of its own."""
    return episode.driver is None or episode.driver[1].output_source == "text"


def _answer(episode: Episode, assembly: Assembly) -> tuple[str, tuple[Fault, ...]]:
    """The text of the answer, made of a value where the driver gives one; why that is no JSON."""
    if _is_text(episode):
        return "".join([part.text for part in assembly.parts() if type(part) is TextPart]), ()
    value = UNSET if assembly.finish is None else assembly.finish.output
    if isinstance(value, Unset):
        return "", ()
    faults = check_json(value)
    return "" if faults else dump_json(value), faults


def _read(episode: Episode, output: Output, assembly: Assembly) -> OutputPart:
    text, faults = _answer(episode, assembly)
    reason = assembly.finish.reason if assembly.finish is not None else "other"
    what = "the output" if output.name is None else f"the output {output.name!r}"

    def error(code: str, told: str) -> StructuredOutputError:
        return StructuredOutputError(
            f"{what} {told}", code=f"structured_output_{code}", raw_text=text
        )

    if reason == "length":
        raise error("truncated", "was cut off at the output limit")
    if reason == "content-filter":
        raise error("filtered", "was stopped by the provider's filter")
    if assembly.calls:
        raise error("missing", "was asked for, and the model called a tool")
    if not text.strip() and not faults:
        raise error("missing", "was asked for, and the model gave none")
    try:
        if faults:
            raise InvalidInput(faults, subject="output")
        return OutputPart(output.read(text), output.name, _is_text(episode))
    except InvalidInput as found:
        told = "; ".join([str(fault) for fault in found.faults[:_MOST_FAULTS]])
        raise error("invalid", f"does not fit: {told}") from found


def _once_more(
    episode: Episode,
    step: StepContext[Any],
    output: Output,
    assembly: Assembly,
    faults: str,
) -> StepContext[Any]:
    """The step with the request that tells what was wrong."""
    request = step.request
    said = [part for part in assembly.parts() if type(part) is not ToolCallPart]
    if not _is_text(episode) and (text := _answer(episode, assembly)[0]):
        said.append(TextPart(text))
    messages = [*request.messages]
    if said:
        messages.append(episode.draft.as_message(said))
    messages.append(_told(episode, AGAIN.format(faults)))
    request = attrs.evolve(
        request,
        messages=tuple(messages),
        tools=(),
        provider_tools=(),
        tool_choice=None,
        output=output.json_schema,
        mid_conversation=None,
    )
    return StepContext(step.run, step.index, request, step.usage, "output")
