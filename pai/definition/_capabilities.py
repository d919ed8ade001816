"""Capabilities: what tools and commands need from the runtime, by typed identity (A-CAP)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import attrs

from pai.definition._checks import class_faults, entries
from pai.definition._names import name_faults
from pai.errors import DefinitionError, Fault

__all__ = ("Capability", "capability_faults", "define_capability", "fold_capabilities")

T = TypeVar("T")


@attrs.frozen(eq=False)
class Capability(Generic[T]):
    """
    A thing that the runtime binds and code is handed under an alias.

    Two capabilities are the same only if they are one object (A-CAP-1).

    Args:
        id: Its id; bindings are given by it.
        type: What a binding is an instance of.
    """

    id: str
    type: type[T]


def define_capability(id: str, type: type[T]) -> Capability[T]:
    """
    Declare a capability.

    Args:
        id: Its id; bindings are given by it.
        type: What a binding is an instance of: a class, or a protocol that is
            ``@runtime_checkable``.

    Raises:
        DefinitionError: The id is no name, or the type cannot be checked.
    """
    if faults := name_faults(id, "id") + class_faults(type, "type"):
        raise DefinitionError(faults, subject=f"capability {id!r}")
    return Capability(id, type)


def capability_faults(capabilities: object, at: str) -> list[Fault]:
    """Faults of a mapping from alias to capability."""
    faults: list[Fault] = []
    for alias, item in entries(capabilities, at, faults):
        if not str(alias).isidentifier():
            faults.append(
                Fault(f"{at}.{alias}", f"bad alias {alias!r}: it is read as ctx.capabilities.NAME")
            )
        if not isinstance(item, Capability):
            faults.append(Fault(f"{at}.{alias}", "expected what define_capability() returned"))
    return faults


def fold_capabilities(
    declared: Iterable[tuple[str, Mapping[str, Capability[object]]]],
) -> tuple[dict[str, Capability[object]], list[Fault]]:
    """
    All declared capabilities by id (A-CAP-1).

    Args:
        declared: Where each mapping of aliases stands, and the mapping.

    Returns:
        The capabilities, and a fault for each id that two objects claim.
    """
    found: dict[str, Capability[object]] = {}
    faults = []
    for at, aliases in declared:
        for alias, capability in aliases.items():
            known = found.setdefault(capability.id, capability)
            if known is not capability:
                faults.append(
                    Fault(
                        f"{at}.capabilities.{alias}",
                        f"another object declares the capability {capability.id!r}:"
                        " import one object in both places",
                    )
                )
    return found, faults
