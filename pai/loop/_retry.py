"""Asking a model again that failed before it said anything: the one layer that does (O-17)."""

from __future__ import annotations

import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final, TypeVar

import anyio

from pai.errors import ModelError, ModelTimeout, RateLimited
from pai.protocol import Retry

__all__ = ("Retried", "wait_before")

ItemT = TypeVar("ItemT")

_log = logging.getLogger("pai.request")

_SHORTEST: Final = 0.5
_LONGEST: Final = 8.0
_STATUSES: Final = frozenset({408, 409, 429})
_CODES: Final = frozenset({"connection_error", "server_error"})


def wait_before(error: ModelError, attempt: int, retry: Retry) -> float | None:
    """
    Seconds to wait until the call is made again; ``None``: it is not.

    Args:
        error: How it failed.
        attempt: How often it was made again already.
        retry: What is allowed.
    """
    if attempt >= retry.max_retries or not _passing(error):
        return None
    if error.retry_after is not None:
        return error.retry_after if error.retry_after <= retry.max_wait else None
    # Between the step and half as much again: callers that failed together come back apart.
    wait = _SHORTEST * 2.0**attempt * random.uniform(1, 1.5)  # noqa: S311  # no secret
    return min(wait, _LONGEST, retry.max_wait)


def _passing(error: ModelError) -> bool:
    """Whether the failure may have passed when one asks again."""
    status = error.status
    if status is not None:
        return status in _STATUSES or status >= 500
    # Within a stream there is no status, and without a connection neither.
    return isinstance(error, (RateLimited, ModelTimeout)) or error.code in _CODES


class Retried(AsyncIterator[ItemT]):
    """
    A model's stream, opened again as long as it fails before its first part.

    From then on it only hands on: it costs a call for each read, no task switch.

    Args:
        open_: Makes the call.
        retry: How often.
    """

    __slots__ = ("_begun", "_open", "_retry", "_stream")

    def __init__(self, open_: Callable[[], AsyncIterator[ItemT]], retry: Retry) -> None:
        self._open = open_
        self._retry = retry
        self._stream: AsyncIterator[ItemT] | None = None
        self._begun = False

    def __anext__(self) -> Awaitable[ItemT]:
        return self._stream.__anext__() if self._begun else self._first()  # type: ignore[union-attr]  # begun: it is there

    async def _first(self) -> ItemT:
        attempt = 0
        while True:
            stream = self._stream = self._open()
            try:
                item = await anext(stream)
            except ModelError as error:
                await self.aclose()
                wait = wait_before(error, attempt, self._retry)
                if wait is None:
                    raise
                attempt += 1
                _log.info(
                    "asked again in %.2f s: provider=%s code=%s status=%s attempt=%d",
                    wait, error.provider, error.code, error.status, attempt,
                )  # fmt: skip
            else:
                self._begun = True
                return item
            await anyio.sleep(wait)

    async def aclose(self) -> None:
        """Close the stream that is open."""
        stream, self._stream = self._stream, None
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
