"""The value that stands for "nothing was said", where ``None`` says something."""

from __future__ import annotations

from typing import Final, Literal

__all__ = ("UNSET", "Unset")


class Unset:
    """The type of :data:`UNSET`."""

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> Literal[False]:
        return False


UNSET: Final = Unset()
"""Nothing was said; for places where ``None`` is a value (O-19)."""
