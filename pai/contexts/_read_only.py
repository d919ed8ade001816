"""Contexts cannot be changed by those they are handed to."""

from __future__ import annotations

from typing import Final

__all__ = ("ReadOnly", "put", "renew")

put: Final = object.__setattr__


class ReadOnly:
    """What hooks are handed is theirs to read: they change things by what they return."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__}.{name} is read-only: return a patch, or use its methods"
        )


def renew(context: ReadOnly, **values: object) -> None:
    """Show other values in a context from now on; for the loop, which decides on them."""
    for name, value in values.items():
        put(context, name, value)
