"""A tool's own time limit: the call fails, and its siblings go on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio

from pai.definition import Signal

__all__ = ("LateTool", "within")


class LateTool(Exception):
    """A tool has not finished in its time."""


async def within(
    seconds: float | None, signal: Signal, body: Callable[[Signal], Awaitable[object]]
) -> object:
    """
    Run a body under a time limit.

    Args:
        seconds: Seconds; ``None``: no limit.
        signal: The run's.
        body: Given the signal of the call: it is set with the run's, and when the time is over. A
            worker thread can't be stopped otherwise.

    Raises:
        LateTool: The time is over, whatever the body made of that.
    """
    if seconds is None:
        return await body(signal)
    own, output = Signal(), None
    with signal.passed_to(own):
        scope = anyio.move_on_after(seconds)
        try:
            with scope:
                output = await body(own)
        except Exception as error:
            if scope.cancel_called:
                raise LateTool from error
            raise
        except BaseException:
            # The run's signal is set later: a worker thread must be told now.
            own.set("cancelled")
            raise
        finally:
            if scope.cancel_called:
                own.set("timeout")
        if scope.cancel_called:
            raise LateTool
    return output
