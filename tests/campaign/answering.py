"""
Whoever answers the calls that wait, part by part, and what must come of the answers.

What is provided names its call, so that one that was lost, doubled or mixed up is found.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pai import AnswerConflict, Approve, ClientTool, Deny, Provide
from pai.protocol import (
    CallError,
    CallOutput,
    Event,
    PendingCall,
    RunFinished,
    RunQueued,
    RunStarted,
    RunSuspended,
)

from .scripts import done_by_helper, number_of

__all__ = (
    "ASKED",
    "BROUGHT",
    "answer",
    "answer_faults",
    "answers_in",
    "denied",
    "output_of",
    "provided_in",
)

ASKED = ("first", "second")
"""What ``asks`` shows when it suspends, and when it suspends again."""

BROUGHT = ClientTool(
    "brought",
    "A tool that comes with a request.",
    {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
_PROVIDED = re.compile(r"<[a-z]+-\d of \d+, \w+>")


def denied(number: int) -> bool:
    """Whether the calls of a run that need a yes are refused."""
    return number % 2 == 0


def _provided(number: int, call_id: str, payload: object) -> str:
    return f"<{call_id} of {number}, {payload}>"


def provided_in(messages: object) -> Counter[str]:
    """How often each thing that was provided stands in a history."""
    return Counter(_PROVIDED.findall(repr(messages)))


def output_of(number: int, tool: str, call_id: str) -> object:
    """What a call gives if it completes."""
    if tool in ("client", "brought"):
        return _provided(number, call_id, None)
    if tool == "helper":
        return done_by_helper(number)
    if tool == "asks":
        return "".join([_provided(number, call_id, payload) for payload in ASKED])
    return number + 1


def _answer(number: int, call: PendingCall, value: str = "") -> Approve | Deny | Provide:
    if call.kind != "approval":
        value = value or _provided(number, call.call_id, call.payload)
        return Provide(call.call_id, value, digest=call.digest)
    if denied(number):
        return Deny(call.call_id, reason="not this one", digest=call.digest)
    return Approve(call.call_id, digest=call.digest)


async def answer(run: Any, pending: Sequence[PendingCall], chance: random.Random) -> None:
    """
    Answer some of the calls that wait; sometimes say the same again, or something else too late.

    Raises:
        AnswerConflict: The run has ended; nobody else answers it.
    """
    number = number_of(run.id)
    some = chance.sample(pending, chance.randint(1, len(pending)))
    await run.resume([_answer(number, call) for call in some])
    # A body that suspends again waits for the next answer under the same name.
    final = [call for call in some if call.kind == "client"]
    if final and chance.random() < 0.5:
        await run.resume([_answer(number, call) for call in final])
        try:
            await run.resume([_answer(number, call, "something else") for call in final])
        except AnswerConflict:
            pass
        else:
            raise AssertionError(f"{run.id}: {final} were answered twice")


def answer_faults(events: Iterable[Event]) -> Iterator[str]:
    """What is wrong with what a log tells of answers and of the ends of calls."""
    ended: Counter[tuple[str, str]] = Counter()
    answered: Counter[tuple[str, str]] = Counter()
    for event in events:
        if isinstance(event, (CallOutput, CallError)):
            ended[event.run_id, event.call_id] += 1
        elif isinstance(event, RunQueued):
            answered.update([(event.run_id, call_id) for call_id in event.answered or ()])
    for (run_id, call_id), times in ended.items():
        if times > 1:
            yield f"{run_id}: {call_id} ended {times} times"
    for (run_id, call_id), times in answered.items():
        if times > (len(ASKED) if call_id.startswith("asks") else 1):
            yield f"{run_id}: {call_id} was answered {times} times"


def answers_in(events: Iterable[Event]) -> tuple[int, int]:
    """How many calls were answered, and how many of them while their run was at work."""
    count = early = 0
    at_work: str | None = None
    for event in events:
        if isinstance(event, RunStarted):
            at_work = event.run_id
        elif isinstance(event, (RunSuspended, RunFinished)) and event.run_id == at_work:
            at_work = None
        elif isinstance(event, RunQueued) and event.answered:
            count += len(event.answered)
            early += len(event.answered) if event.run_id == at_work else 0
    return count, early
