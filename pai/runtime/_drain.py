"""A thread that is worked on here."""

from __future__ import annotations

from pai.protocol import Claimed

__all__ = ("Drain",)


class Drain:
    """
    What is to be done of a thread that is worked on here.

    Attributes:
        claimed: Runs that were claimed as they were accepted.
        look: Whether there may be more to take.
    """

    __slots__ = ("claimed", "look")

    def __init__(self) -> None:
        self.claimed: list[Claimed] = []
        self.look = False
