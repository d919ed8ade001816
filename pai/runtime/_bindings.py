"""Capabilities of a runtime: what agents and plugins need, and who gives it (A-CAP)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pai.definition import AgentDefinition, Capability
from pai.errors import CapabilityBindingError, Fault
from pai.lifecycle import Lifecycle
from pai.runtime._drivers import driver_needs

__all__ = ("bind_capabilities",)


class _Needs:
    """The capabilities by id; one id is one object (A-CAP-1)."""

    def __init__(self) -> None:
        self.known: dict[str, Capability[Any]] = {}
        self.faults: list[Fault] = []

    def add(self, capability: object, at: str) -> None:
        if not isinstance(capability, Capability):
            told = f"expected what define_capability() returned, got {type(capability).__name__}"
            self.faults.append(Fault(at, told))
        elif self.known.setdefault(capability.id, capability) is not capability:
            told = f"another object declares the capability {capability.id!r}: import one object"
            self.faults.append(Fault(at, told))


def bind_capabilities(
    agents: Mapping[str, AgentDefinition[Any]],
    lifecycles: Mapping[str, Lifecycle],
    given: Mapping[str, object],
) -> dict[str, object]:
    """
    All bindings by id: those that are given, and those that plugins provide (A-CAP-2).

    Args:
        agents: The agents by key.
        lifecycles: Their whole lifecycles, by the same keys.
        given: The application's own bindings.

    Raises:
        CapabilityBindingError: Bindings are missing, surplus, doubled or of another type; or one id
            is two objects. All such faults at once.
    """
    needs = _Needs()
    for key, agent in agents.items():
        for id_, capability in agent.capabilities.items():
            needs.add(capability, f"agents.{key}.capabilities.{id_}")
    offered = _Needs()
    provided: dict[str, object] = {}
    faults: list[Fault] = []
    for name, requires, provides in _declared(lifecycles):
        at = f"plugins.{name}"
        if not isinstance(requires, (list, tuple)):
            faults.append(Fault(f"{at}.requires", "expected a tuple of capabilities"))
        else:
            for capability in requires:
                needs.add(capability, f"{at}.requires")
        if not isinstance(provides, Mapping):
            faults.append(Fault(f"{at}.provides", "expected a dict from capabilities to values"))
            continue
        for capability, value in provides.items():
            offered.add(capability, f"{at}.provides")
            if isinstance(capability, Capability):
                if capability.id in provided:
                    told = f"another plugin provides {capability.id!r} too: leave one out"
                    faults.append(Fault(f"{at}.provides", told))
                provided[capability.id] = value
    for id_, capability in needs.known.items():
        offered.add(capability, f"capabilities.{id_}")
    for id_, capability in offered.known.items():
        faults += _binding_faults(capability, id_ in needs.known, given, provided)
    of_drivers = driver_needs(agents)
    faults += [
        Fault(f"capabilities.{id_}", f"has no binding, and the model of agents.{key} requires it")
        for id_, key in of_drivers.items()
        if id_ not in given and id_ not in provided and id_ not in needs.known
    ]
    faults += [
        Fault(f"capabilities.{id_}", "no agent and no plugin needs it")
        for id_ in given
        if id_ not in offered.known and id_ not in of_drivers
    ]
    faults = [*needs.faults, *offered.faults, *faults]
    if faults:
        raise CapabilityBindingError(faults, subject="create_pai")
    return {**given, **provided}


def _declared(lifecycles: Mapping[str, Lifecycle]) -> Iterator[tuple[str, object, object]]:
    """Each plugin once: its name, what it requires, and what it provides."""
    seen: set[int] = set()
    for lifecycle in lifecycles.values():
        for plugin in lifecycle.plugins:
            if id(plugin) in seen:
                continue
            seen.add(id(plugin))
            found = [lifecycle.declared(plugin, name) or () for name in ("requires", "provides")]
            yield lifecycle.name_of(plugin), found[0], found[1] or {}


def _binding_faults(
    capability: Capability[Any],
    is_needed: bool,
    given: Mapping[str, object],
    provided: Mapping[str, object],
) -> Iterator[Fault]:
    id_ = capability.id
    at = f"capabilities.{id_}"
    if id_ in given and id_ in provided:
        yield Fault(at, "a plugin provides it: leave it out")
        return
    if id_ not in given and id_ not in provided:
        if is_needed:
            yield Fault(at, "has no binding")
        return
    value = given[id_] if id_ in given else provided[id_]
    if not isinstance(value, capability.type):
        yield Fault(at, f"expected a {capability.type.__name__}, got a {type(value).__name__}")
