"""Identifiers: UUID version 7, so that ids made later sort later (O-18)."""

from __future__ import annotations

import os
import time

__all__ = ("new_id",)


def new_id() -> str:
    """A fresh UUIDv7 as text: 48 bits of milliseconds, then 74 random bits."""
    stamp = time.time_ns() // 1_000_000
    noise = int.from_bytes(os.urandom(10), "big")
    value = (stamp & 0xFFFFFFFFFFFF) << 80 | noise
    value = value & ~(0xF << 76) | 7 << 76
    value = value & ~(0x3 << 62) | 2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
