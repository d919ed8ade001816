"""The signal that tells a run's code to stop."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ("Signal",)


class Signal:
    """
    Set once, when the request, the run or the server is cancelled (A-CTX-2).

    Async code is cancelled anyway; code in a worker thread asks :meth:`is_set` or waits.
    """

    __slots__ = ("_listeners", "_reason")

    def __init__(self) -> None:
        self._reason: str | None = None
        self._listeners: list[Callable[[], None]] = []

    def is_set(self) -> bool:
        """Whether it is time to stop."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why, once it is set."""
        return self._reason

    def wait(self, timeout: float | None = None) -> bool:
        """
        Wait in a worker thread.

        Args:
            timeout: Seconds to wait at most.

        Returns:
            Whether it is set.
        """
        event = threading.Event()
        with self._told(event.set):
            return self._reason is not None or event.wait(timeout)

    async def aborted(self) -> None:
        """Return when it is set; for code that may not be cancelled itself."""
        if self._reason is not None:
            return
        import anyio

        event = anyio.Event()
        with self._told(event.set):
            await event.wait()

    def set(self, reason: str) -> None:
        """Say that it is time to stop, on the event loop's thread; the first reason stays."""
        if self._reason is not None:
            return
        # Whoever comes to wait from now on sees the reason; whoever came before is in the list.
        self._reason = reason
        for listener in tuple(self._listeners):
            listener()

    @contextmanager
    def passed_to(self, other: Signal) -> Iterator[None]:
        """Set *other* as well, if this one is set within the context, or is already."""

        def pass_on() -> None:
            other.set(str(self._reason))

        with self._told(pass_on):
            if self._reason is not None:
                pass_on()
            yield

    @contextmanager
    def _told(self, listener: Callable[[], None]) -> Iterator[None]:
        self._listeners.append(listener)
        try:
            yield
        finally:
            self._listeners.remove(listener)
