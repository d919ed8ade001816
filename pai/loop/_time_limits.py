"""Time limits on a stream: :func:`limits` (R-35)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic
from typing import TypeVar

import anyio

from pai.errors import ModelTimeout

__all__ = ("limits",)

PartT = TypeVar("PartT")


async def limits(
    stream: AsyncIterator[PartT],
    *,
    first: float | None = None,
    between: float | None = None,
    total: float | None = None,
) -> AsyncIterator[PartT]:
    """
    Pass a stream on within time limits; for ``wrap_model_call`` and ``transform_step_stream``.

    The limit stands around each wait for a part, never around the time a part is worked on (R-28).
    The stream is closed with this one.

    Args:
        stream: The stream.
        first: Seconds until its first part.
        between: Seconds from one part to the next.
        total: Seconds for all of it.

    Raises:
        ModelTimeout: A limit is over.
    """
    end = None if total is None else monotonic() + total
    wait = first if first is not None else between
    try:
        while True:
            left = wait
            if end is not None:
                rest = max(end - monotonic(), 0)
                left = rest if left is None else min(left, rest)
            try:
                if left is None:
                    part = await anext(stream)
                else:
                    with anyio.move_on_after(left) as scope:
                        part = await anext(stream)
                    if scope.cancelled_caught:
                        raise ModelTimeout(
                            f"the model sent nothing for {left:.3g} s", provider="model"
                        )
            except StopAsyncIteration:
                return
            yield part
            wait = between
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
