"""Asking ``stop_when``, after a step whose loop could go on (O-2)."""

from __future__ import annotations

import inspect
from typing import Any

from pai.definition import AllOf, AnyOf, LoopState, StopStrategy, StopWhen
from pai.loop._episode import Episode
from pai.protocol import Message, ToolCallPart

__all__ = ("stop_reason",)


async def stop_reason(episode: Episode, steps: int) -> str | None:
    """
    Why the run stops here, if it does.

    Args:
        episode: The run; its last step is whole.
        steps: Steps of this episode so far.
    """
    when = episode.loop.stop_when
    if when is None:
        return None
    run, messages = episode.context, episode.messages
    calls = [_calls(message) for message in messages if message.run_id == run.id]
    state: LoopState[Any] = LoopState(
        run.runtime_context,
        run.identity,
        run.client_data,
        run.thread_id,
        run.signal,
        steps,
        episode.finish_reason,
        episode.usage,
        sum(calls),
        calls[-1] if calls else 0,
        tuple(messages),
    )
    return await _asked(when, state)


def _calls(message: Message) -> int:
    return sum(
        [type(part) is ToolCallPart and not part.provider_executed for part in message.parts]
    )


async def _asked(when: StopWhen[Any], state: LoopState[Any]) -> str | None:
    if isinstance(when, AnyOf):
        for item in when.of:
            if reason := await _asked(item, state):
                return reason
        return None
    if isinstance(when, AllOf):
        reasons = []
        for item in when.of:
            reason = await _asked(item, state)
            if reason is None:
                return None
            reasons.append(reason)
        return "+".join(dict.fromkeys(reasons))
    if isinstance(when, StopStrategy):
        return when.reason(state)
    answer: Any = when(state)
    if inspect.isawaitable(answer):
        answer = await answer
    if isinstance(answer, str):
        return answer or None
    return "stop_when" if answer else None
