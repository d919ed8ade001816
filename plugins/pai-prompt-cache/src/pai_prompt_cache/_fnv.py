"""FNV-1a, 32 bits: a hash that every language has, or has in three lines (O-10)."""

from __future__ import annotations

from typing import Final

__all__ = ("EMPTY", "fnv1a")

EMPTY: Final = 0x811C9DC5
"""The hash of nothing."""

_PRIME: Final = 0x01000193


def fnv1a(data: bytes, start: int = EMPTY) -> int:
    """
    The hash of *data*.

    Args:
        data: Bytes; of a text, its UTF-8.
        start: The hash of what comes before: ``fnv1a(b, fnv1a(a)) == fnv1a(a + b)``.
    """
    value = start
    for byte in data:
        value = (value ^ byte) * _PRIME & 0xFFFFFFFF
    return value
