"""Printing the order of an agent's hooks."""

from __future__ import annotations

from typing import Any

from pai.cli._choice import Chosen
from pai.cli._plugins import load_and_warn
from pai.definition import AgentDefinition
from pai.lifecycle import HOOK_NAMES, Chains

__all__ = ("print_hooks",)


def print_hooks(agent: AgentDefinition[Any], chosen: Chosen) -> None:
    """
    Print each phase that has hooks: plugin by plugin, in the order they run, with the reason.

    Args:
        agent: The agent.
        chosen: The installed plugins to load.
    """
    chains = Chains(load_and_warn(chosen).around(agent.lifecycle))
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
