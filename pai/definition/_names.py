"""Names: what an agent, a tool, a command or a data part may be called."""

from __future__ import annotations

import re

from pai.errors import Fault

__all__ = ("name_faults", "tool_name_faults")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}\Z")
_TOOL = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def name_faults(name: object, at: str) -> list[Fault]:
    """Faults of the name of an agent, a data part or a command."""
    if isinstance(name, str) and _NAME.match(name):
        return []
    return [
        Fault(at, f"bad name {name!r}: a letter, then up to 63 letters, digits, '_', '.' or '-'")
    ]


def tool_name_faults(name: object, at: str) -> list[Fault]:
    """Faults of a tool's name: it is what model providers take."""
    if isinstance(name, str) and _TOOL.match(name):
        return []
    return [Fault(at, f"bad tool name {name!r}: 1 to 64 letters, digits, '_' or '-'")]
