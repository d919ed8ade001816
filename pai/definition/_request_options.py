"""How the requests of a run travel to the provider (O-15)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from pai.definition._behavior import AgentBehaviorInput
from pai.errors import Fault, InvalidInput

__all__ = ("RequestFunction", "RequestOptions")

ContextT = TypeVar("ContextT")

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_OURS = frozenset({"content-length", "content-type", "host", "transfer-encoding"})


def _copied(headers: object) -> Any:
    return MappingProxyType(dict(headers)) if isinstance(headers, Mapping) else headers


@attrs.frozen(eq=False)
class RequestOptions:
    """
    What goes with each request to the provider, beside its body.

    None of it is stored, logged or part of an error (O-15).

    Args:
        headers: HTTP headers; they win over the driver's own.
        timeout: Seconds to wait for the connection, and for each piece of the answer; ``None``
            leaves it to the driver. One that is missed is a *ModelTimeout*.

    Raises:
        InvalidInput: Something of it can't be sent; a header is named, its value never told.
    """

    headers: Mapping[str, str] = attrs.field(factory=dict, converter=_copied, repr=False)
    timeout: float | None = None

    def __attrs_post_init__(self) -> None:
        faults = _header_faults(self.headers)
        seconds: object = self.timeout
        if seconds is not None and not (
            isinstance(seconds, (int, float))
            and not isinstance(seconds, bool)
            and math.isfinite(seconds)
            and seconds > 0
        ):
            faults.append(Fault("timeout", "expected a number of seconds above 0"))
        if faults:
            raise InvalidInput(faults, subject="RequestOptions")


def _header_faults(headers: object) -> list[Fault]:
    if not isinstance(headers, Mapping):
        return [Fault("headers", "expected texts by name")]
    faults = []
    for name, value in headers.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            faults.append(Fault("headers", "a name is no name of a header"))
        elif name.lower() in _OURS:
            faults.append(Fault(f"headers.{name}", "is set by the driver"))
        elif not isinstance(value, str) or not _VALUE.fullmatch(value):
            faults.append(Fault(f"headers.{name}", "expected a text of printable ASCII"))
    return faults


RequestFunction = Callable[[AgentBehaviorInput[ContextT]], object]
"""Gives :class:`RequestOptions`, at once or awaited, or ``None``."""
