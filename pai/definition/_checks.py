"""What tools and commands check alike when they are declared."""

from __future__ import annotations

from collections.abc import Mapping

from pai.definition._capabilities import Capability
from pai.errors import DefinitionError, Fault
from pai.schema import Schema, compile_schema

__all__ = ("LATER", "LATER_OPTION", "capability_faults", "compiled", "later_faults")

LATER = "is not available yet: it comes with durable suspension"
LATER_OPTION = "is not available yet: it comes with the run options"


def later_faults(name: str, **given: object) -> list[Fault]:
    """What a later version brings is refused by name, never ignored."""
    faults = []
    for option, value in given.items():
        if value:
            word = LATER_OPTION if option in ("lazy", "timeout") else LATER
            faults.append(Fault(f"{name}.{option}", word))
    return faults


def compiled(schema: object, at: str, faults: list[Fault]) -> Schema[object] | None:
    if schema is None:
        return None
    try:
        return compile_schema(schema)
    except DefinitionError as error:
        faults += [fault.under(at) for fault in error.faults]
        return None


def capability_faults(capabilities: object, at: str) -> list[Fault]:
    if not isinstance(capabilities, Mapping):
        return [Fault(at, "expected a mapping from alias to capability")]
    return [
        Fault(f"{at}.{alias}", "expected what define_capability() returned")
        for alias, item in capabilities.items()
        if not isinstance(item, Capability)
    ]
