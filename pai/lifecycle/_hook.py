"""One compiled hook: calling it, and saying whose it was."""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from typing import Any, Final

from pai.errors import LeaseLost, PluginError

__all__ = (
    "Hook",
    "LateHook",
    "broken_hook",
    "error_of",
    "is_stray",
    "next_answer",
    "wrong_answer",
)


class Hook:
    """
    One implementation of one hook.

    Attributes:
        call: Takes the hook's arguments in the order of its card, without ``state`` and
            ``records``, and passes on those the implementation wants; what it returns may have to
            be awaited. Where there is no run, its last argument gives ``records``.
        is_async: Whether it has to be.
        phase: The hook's name.
        plugin: The plugin's name.
        distribution: The distribution that brought it, where it was installed.
        reason: Why it stands where it does.
    """

    __slots__ = ("call", "distribution", "is_async", "phase", "plugin", "reason")

    def __init__(
        self,
        call: Callable[..., Any],
        is_async: bool,
        phase: str,
        plugin: str,
        distribution: str | None,
        reason: str,
    ) -> None:
        self.reason: Final = reason
        self.call: Final = call
        self.is_async: Final = is_async
        self.phase: Final = phase
        self.plugin: Final = plugin
        self.distribution: Final = distribution


async def next_answer(
    chain: tuple[Hook, ...],
    start: int,
    *values: object,
    after: Callable[[], None] | None = None,
) -> tuple[int, Hook, Any] | None:
    """
    Call hooks from *start* on, until one has an answer.

    One coroutine for all those that have none: that is the way that must cost nothing.

    Args:
        chain: The hooks of a phase.
        start: Where to begin.
        values: The arguments, as the card has them.
        after: Called after each hook.

    Returns:
        Where to go on, the hook, and its answer; ``None`` when no more is to come.

    Raises:
        PluginError: A hook raised; the error names plugin, distribution and phase (R-33).
        LeaseLost: It wrote for a run that is not ours any more.
    """
    for at in range(start, len(chain)):
        hook = chain[at]
        try:
            answer = hook.call(*values)
            if answer is not None and (hook.is_async or inspect.isawaitable(answer)):
                answer = await answer
        except BaseException as error:
            raised = error_of(hook, error)
            if raised is error:
                raise
            raise raised from error
        if after is not None:
            after()
        if answer is not None:
            return at + 1, hook, answer
    return None


def error_of(hook: Hook, error: BaseException) -> BaseException:
    """What is to be raised for what a hook raised: often its plugin's error."""
    if isinstance(error, (PluginError, LeaseLost)):
        return error
    if isinstance(error, Exception) or is_stray(error):
        return broken_hook(hook, error)
    return error


class LateHook(TimeoutError):
    """A hook did not answer within its plugin's own limit (R-35)."""


def broken_hook(hook: Hook, error: BaseException) -> PluginError:
    """The error that tells whose hook raised, in which phase (R-33)."""
    if isinstance(error, LateHook):
        return _error(hook, f"did not answer {error} in {hook.phase}")
    return _error(hook, f"raised {type(error).__name__} in {hook.phase}")


def wrong_answer(hook: Hook, answer: object, allowed: str) -> PluginError:
    """The error for a hook that returned what its card does not allow."""
    return _error(
        hook, f"returned {type(answer).__name__} from {hook.phase}; it may return {allowed}"
    )


def _error(hook: Hook, what: str) -> PluginError:
    origin = f" of {hook.distribution}" if hook.distribution else ""
    return PluginError(
        f"plugin {hook.plugin!r}{origin} {what}",
        plugin=hook.plugin,
        distribution=hook.distribution,
        phase=hook.phase,
    )


def is_stray(error: BaseException) -> bool:
    """
    Whether *error* says "cancelled" though nobody cancelled this task (R-17).

    So it is where code awaits a task of its own that was cancelled: an error like others.
    """
    import anyio

    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    if anyio.current_effective_deadline() == -math.inf:
        return False
    asyncio = sys.modules.get("asyncio")
    if asyncio is None or not isinstance(error, asyncio.CancelledError):
        return False
    task = asyncio.current_task()
    return task is not None and not task.cancelling()
