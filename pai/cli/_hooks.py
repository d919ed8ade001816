"""Printing the order of an agent's hooks."""

from __future__ import annotations

from typing import Any

from pai.definition import AgentDefinition
from pai.lifecycle import HOOK_NAMES, Chains, compose_lifecycle

__all__ = ("print_hooks",)


def print_hooks(agent: AgentDefinition[Any]) -> None:
    """Print each phase that has hooks: plugin by plugin, in the order they run, with the reason."""
    own = () if agent.lifecycle is None else (agent.lifecycle,)
    chains = Chains(compose_lifecycle(*own))
    found = False
    for phase in HOOK_NAMES:
        chain = getattr(chains, phase, ())
        if not chain:
            continue
        found = True
        print(phase)
        for number, hook in enumerate(chain, 1):
            origin = f" ({hook.distribution})" if hook.distribution else ""
            print(f"  {number}. {hook.plugin}{origin}: {hook.reason}")
    if not found:
        print(f"{agent.name} has no hooks")
