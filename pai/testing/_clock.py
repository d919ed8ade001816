"""A clock that tests move by hand."""

from __future__ import annotations

__all__ = ("FakeClock",)


class FakeClock:
    """
    Seconds that pass when a test says so: ``MemoryStore(clock=FakeClock())`` ends leases by it.

    Args:
        now: Where it begins.
    """

    def __init__(self, now: float = 0.0) -> None:
        self._now = now

    def __call__(self) -> float:
        """The time."""
        return self._now

    def advance(self, seconds: float) -> None:
        """
        Let time pass.

        Raises:
            ValueError: A clock never goes back.
        """
        if seconds < 0:
            raise ValueError("a clock never goes back")
        self._now += seconds
