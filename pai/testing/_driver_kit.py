"""What every model driver guarantees, as checks that the author of one can run."""

from __future__ import annotations

import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime

import attrs

from pai.errors import IncompleteStream, ModelError, RateLimited
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import (
    Message,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StreamPart,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ToolCall,
    ToolCallPart,
    ToolInputDelta,
    ToolInputStart,
    ToolSpec,
    new_id,
)
from pai.schema import UNSET, Unset, check_json

__all__ = ("Situation", "check_model_driver", "check_stream")

_MARK = "never-on-the-wire"
_PATIENCE = 10.0

_ADD = ToolSpec(
    "add",
    "Add two integers.",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
        "required": ["a", "b"],
        "additionalProperties": False,
    },
)


class Situation(enum.Enum):
    """What a provider does, and so what the fake behind the driver has to play."""

    TEXT = "it answers with some text"
    REASONING = "it thinks, then answers with some text"
    CALL = "it calls add(a=2, b=3)"
    TWO_CALLS = "it calls add twice in one answer"
    UNFINISHED = "its stream ends cleanly after some text, without saying that it has finished"
    CUT = "its connection breaks after some text"
    RATE_LIMITED = "it refuses with 429 or its like, and asks to wait 7 seconds"
    REFUSED_KEY = "it refuses the key"
    HANGS = "it sends some text, then nothing more until it is left"


@attrs.frozen
class _Kit:
    make: Callable[[Situation], ModelDriver]
    bodies: Callable[[], Sequence[bytes]] | None
    released: Callable[[], Awaitable[None]] | None


async def check_model_driver(
    make: Callable[[Situation], ModelDriver],
    *,
    situations: Iterable[Situation] = tuple(Situation),
    bodies: Callable[[], Sequence[bytes]] | None = None,
    released: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """
    Check what :class:`~pai.ports.ModelDriver` guarantees; raises ``AssertionError`` for what fails.

    Run it on asyncio and on trio.

    Args:
        make: Gives a driver whose provider, usually a fake one, plays the situation.
        situations: Those to check; leave out what the provider can't do.
        bodies: All requests that the provider has got so far, as they crossed the wire. With it,
            these are checked too: nothing is retried, metadata stays inside, history is encoded
            once.
        released: Returns once the provider has noticed that the driver left a hanging stream.
    """
    kit = _Kit(make, bodies, released)
    for situation in situations:
        driver = make(situation)
        _expect(bool(driver.provider and driver.name), situation, "provider and name are given")
        before = len(bodies()) if bodies else 0
        await _CHECKS[situation](kit, situation, driver)
        if bodies is not None:
            sent = len(bodies()) - before
            _expect(sent == _CALLS.get(situation, 1), situation, "nothing is sent again (O-17)")


def check_stream(parts: Iterable[StreamPart]) -> None:
    """
    Check that *parts* are well formed: an end for each start, fresh ids, one finish, the last part.

    Args:
        parts: All parts of a stream that ended without an error.
    """
    seen: set[tuple[str, str]] = set()
    opened: set[tuple[str, str]] = set()
    finished = False
    for part in parts:
        _say(not finished, f"{part.type} comes after the step's finish")
        if isinstance(part, StepFinish):
            finished = True
        elif isinstance(part, TextStart | ReasoningStart | ToolInputStart):
            key = _key(part)
            _say(key not in seen, f"the {key[0]} id {key[1]!r} is used twice")
            seen.add(key)
            opened.add(key)
        elif isinstance(part, TextDelta | ReasoningDelta | ToolInputDelta):
            _say(_key(part) in opened, f"{part.type} of {_key(part)[1]!r}, which is not open")
        elif isinstance(part, TextEnd | ReasoningEnd | ToolCall):
            _say(_key(part) in opened, f"{part.type} of {_key(part)[1]!r}, which is not open")
            opened.discard(_key(part))
    _say(finished, "there is no step-finish")
    _say(not opened, f"these are never closed: {sorted(opened)}")


def _key(part: StreamPart) -> tuple[str, str]:
    if isinstance(part, ToolInputStart | ToolInputDelta | ToolCall):
        return "call", part.call_id
    kind = (
        "reasoning" if isinstance(part, ReasoningStart | ReasoningDelta | ReasoningEnd) else "text"
    )
    return kind, str(getattr(part, "id", ""))


def _say(truth: bool, message: str) -> None:
    if not truth:
        raise AssertionError(message)


def _expect(truth: bool, situation: Situation, message: str) -> None:
    _say(truth, f"{situation.name} ({situation.value}): expected that {message}")


def _message(*parts: TextPart | ToolCallPart, user: bool = True) -> Message:
    role = "user" if user else "assistant"
    return Message(new_id(), role, parts, "run", datetime.now(UTC))  # type: ignore[arg-type]


def _request(driver: ModelDriver, *messages: Message) -> ModelRequest:
    history = messages or (_message(TextPart("Add 2 and 3.")),)
    return ModelRequest(driver, history, tools=(_ADD,), metadata={"secret": _MARK})


async def _parts(
    stream: AsyncIterator[StreamPart | list[StreamPart]], into: list[StreamPart]
) -> None:
    async with aclosing(stream):  # type: ignore[type-var]  # a generator, or the driver is at fault
        async for item in stream:
            into.extend(item if isinstance(item, list) else [item])


async def _whole(
    driver: ModelDriver, request: ModelRequest, situation: Situation
) -> list[StreamPart]:
    parts: list[StreamPart] = []
    await _parts(driver.stream(request), parts)
    try:
        check_stream(parts)
    except AssertionError as error:
        raise AssertionError(f"{situation.name} ({situation.value}): {error}") from None
    output = parts[-1].output if isinstance(parts[-1], StepFinish) else UNSET
    if not isinstance(output, Unset):
        by_event = driver.profile.output_source == "event"
        _expect(by_event, situation, "a finish has an output where the profile says 'event' (O-11)")
        _expect(not check_json(output), situation, "the output of a finish is JSON")
    return parts


def _reason(parts: list[StreamPart]) -> str:
    last = parts[-1]
    return last.reason if isinstance(last, StepFinish) else ""


def _text(parts: list[StreamPart]) -> str:
    return "".join(part.text for part in parts if isinstance(part, TextDelta))


async def _check_text(kit: _Kit, situation: Situation, driver: ModelDriver) -> None:
    """An answer; then the same history again, grown by a call that has ended and one that hasn't."""
    asked = _message(TextPart("kit-first"))
    settled = _message(ToolCallPart("c1", "add", {"a": 1, "b": 1}, "completed", 2), user=False)
    parts = await _whole(driver, _request(driver, asked, settled), situation)
    _expect(bool(_text(parts)), situation, "text comes")
    _expect(_reason(parts) == "stop", situation, "the reason is 'stop'")
    if kit.bodies is None:
        await _whole(driver, _request(driver, asked, settled), situation)
        return
    kept = dict(asked.wire)
    for name, wire in kept.items():
        asked.wire[name] = wire.replace(b"kit-first", b"kit-again")
    pending = _message(ToolCallPart("c2", "add", {"a": 1, "b": 1}), user=False)
    await _whole(driver, _request(driver, asked, settled, pending), situation)
    if kept:
        sent = kit.bodies()[-1]
        _expect(b"kit-again" in sent, situation, "a message is encoded once and kept in its wire")
        _expect(not pending.wire, situation, "a message with an open call is not kept")
    for body in kit.bodies():
        _expect(_MARK.encode() not in body, situation, "metadata stays off the wire (O-9)")


async def _check_reasoning(kit: _Kit, situation: Situation, driver: ModelDriver) -> None:
    parts = await _whole(driver, _request(driver), situation)
    thought = [part for part in parts if isinstance(part, ReasoningDelta)]
    _expect(bool(thought) and bool(_text(parts)), situation, "reasoning and text come")


async def _check_calls(kit: _Kit, situation: Situation, driver: ModelDriver) -> None:
    parts = await _whole(driver, _request(driver), situation)
    calls = [part for part in parts if isinstance(part, ToolCall)]
    count = 1 if situation is Situation.CALL else 2
    _expect(len(calls) == count, situation, f"{count} calls come")
    _expect(all(call.tool == "add" for call in calls), situation, "the tool is add")
    _expect(all(isinstance(call.input, dict) for call in calls), situation, "inputs are parsed")
    if situation is Situation.CALL:
        _expect(calls[0].input == {"a": 2, "b": 3}, situation, "the input is a=2, b=3")
    _expect(_reason(parts) == "tool-calls", situation, "the reason is 'tool-calls'")


async def _check_broken(kit: _Kit, situation: Situation, driver: ModelDriver) -> None:
    error = await _failure(driver, situation)
    _expect(isinstance(error, IncompleteStream), situation, "IncompleteStream is raised")


async def _check_refusal(kit: _Kit, situation: Situation, driver: ModelDriver) -> None:
    error = await _failure(driver, situation)
    if situation is Situation.RATE_LIMITED:
        _expect(isinstance(error, RateLimited), situation, "RateLimited is raised")
        _expect(error.retry_after == 7, situation, "retry_after is 7 seconds")


async def _failure(driver: ModelDriver, situation: Situation) -> ModelError:
    parts: list[StreamPart] = []
    try:
        await _parts(driver.stream(_request(driver)), parts)
    except ModelError as error:
        _expect(error.provider == driver.provider, situation, "the error names the provider")
        _expect(bool(error.code), situation, "the error has a code")
        _expect(_MARK not in str(error), situation, "the error tells no metadata")
        return error
    raise AssertionError(f"{situation.name} ({situation.value}): expected a ModelError")


async def _check_leaving(kit: _Kit, situation: Situation, driver: ModelDriver) -> None:
    """Close a stream early, then cancel the reader of another: the provider must notice both."""
    from anyio import CancelScope, fail_after

    for cancelled in (False, True):
        parts: list[StreamPart] = []
        with fail_after(_PATIENCE), CancelScope() as scope:
            async with aclosing(driver.stream(_request(driver))) as stream:  # type: ignore[type-var]
                async for item in stream:
                    parts.extend(item if isinstance(item, list) else [item])
                    if not _text(parts):
                        continue
                    if not cancelled:
                        break
                    # The next read waits for ever, so it is the one to be cancelled.
                    scope.cancel()
        _expect(scope.cancelled_caught == cancelled, situation, "cancellation passes through")
        if kit.released is not None:
            with fail_after(_PATIENCE):
                await kit.released()


_Check = Callable[[_Kit, Situation, ModelDriver], Awaitable[None]]

_CHECKS: dict[Situation, _Check] = {
    Situation.TEXT: _check_text,
    Situation.REASONING: _check_reasoning,
    Situation.CALL: _check_calls,
    Situation.TWO_CALLS: _check_calls,
    Situation.UNFINISHED: _check_broken,
    Situation.CUT: _check_broken,
    Situation.RATE_LIMITED: _check_refusal,
    Situation.REFUSED_KEY: _check_refusal,
    Situation.HANGS: _check_leaving,
}

_CALLS = {Situation.TEXT: 2, Situation.HANGS: 2}
"""How often a check asks the model, where that is not once."""
