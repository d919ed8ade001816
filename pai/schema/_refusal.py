"""What a hook raises for a value that does not fit: every fault found, each with its way there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

from pai.errors import Fault

__all__ = ("MAX_FAULTS", "Found", "Refusal", "Way", "expected", "kind", "render", "said")

Way: TypeAlias = "tuple[str | int, ...]"
"""Keys and indexes from the root to a value."""

Found: TypeAlias = "tuple[Way, str]"

MAX_FAULTS = 100
"""A hostile value can be wrong in a million places; the first hundred are enough."""

_MAX_KEY = 80
_MAX_TEXT = 400
_PLAIN = re.compile(r"[A-Za-z_$][\w$-]*\Z")

_KINDS: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}


def kind(value: object) -> str:
    """The JSON kind of *value*, or the name of its class where it has none."""
    found = _KINDS.get(type(value))
    return found if found is not None else type(value).__name__


def render(at: str, way: Way) -> str:
    """*way* as text, below the root called *at*: ``$.items[2].name``."""
    parts = [at]
    for step in way:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        else:
            key = step if len(step) <= _MAX_KEY else step[:_MAX_KEY] + "…"
            parts.append(f".{key}" if _PLAIN.match(key) else f"[{key!a}]")
    return "".join(parts)


class Refusal(Exception):
    """A value was refused; never leaves the room."""

    def __init__(self, found: Iterable[Found]) -> None:
        self.found: list[Found] = list(found)[: MAX_FAULTS + 1]
        super().__init__()

    @classmethod
    def of(cls, message: str) -> Refusal:
        """The value itself is wrong."""
        return cls([((), message)])

    def below(self, step: str | int) -> list[Found]:
        """The same faults seen from one level further out."""
        return [((step, *way), message) for way, message in self.found]

    def faults(self, at: str) -> tuple[Fault, ...]:
        """The faults for people, below the root called *at*."""
        listed = [Fault(render(at, way), message) for way, message in self.found[:MAX_FAULTS]]
        if len(self.found) > MAX_FAULTS:
            listed.append(Fault(at, f"more than {MAX_FAULTS} faults; the others are not listed"))
        return tuple(listed)


def expected(what: str, value: object) -> Refusal:
    """The refusal of a value that is of the wrong kind."""
    return Refusal.of(f"expected {what}, got {kind(value)}")


def said(error: Exception) -> str:
    """
    What an exception of the user's own code tells.

    The text of a `ValueError` is meant for people. That of any other exception is about code, and
    attrs' own validators repeat the value, so of those only the name is told.
    """
    if _from_attrs(error):
        return "refused by its validator"
    if isinstance(error, ValueError) and error.args and isinstance(error.args[0], str):
        return error.args[0][:_MAX_TEXT]
    return f"refused ({type(error).__name__})"


def _from_attrs(error: Exception) -> bool:
    """Was *error* raised by one of attrs' own validators?"""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_globals.get("__name__") == "attr.validators"
