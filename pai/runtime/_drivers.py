"""What the drivers of agents need from a runtime, told when it is built."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pai.definition import AgentDefinition, ModelSelection
from pai.errors import Fault, PaiError
from pai.models import resolve_model
from pai.ports import ModelDriver

__all__ = ("driver_needs", "transport_faults", "writes_output")

# Ours need nothing, and looking them up may wait until they are used.
_OURS = frozenset({"demo", "openai", "openai-chat"})


def _driver(agent: AgentDefinition[Any], model: object = None) -> ModelDriver | None:
    """
    The driver, where the agent says which it is; a name that leads nowhere is told by its run.

    Args:
        agent: The agent.
        model: What an option of the call says instead.
    """
    model = agent.model if model is None else model
    if isinstance(model, ModelSelection):
        model = model.model
    if isinstance(model, str):
        if model.partition(":")[0] in _OURS:
            return None
        try:
            return resolve_model(model)
        except PaiError:
            return None
    return model if isinstance(model, ModelDriver) else None


def driver_needs(agents: Mapping[str, AgentDefinition[Any]]) -> dict[str, str]:
    """Ids of capabilities that drivers require, each with the first agent whose driver does (O-4)."""
    needs: dict[str, str] = {}
    for key, agent in agents.items():
        driver = _driver(agent)
        for id_ in () if driver is None else driver.profile.requires:
            needs.setdefault(id_, key)
    return needs


def writes_output(agent: AgentDefinition[Any], model: object) -> bool:
    """
    Whether the text of a run may be its structured output, as far as agent and options say (O-11).

    Args:
        agent: The agent.
        model: The model that the call's options name; ``None``: they name none.
    """
    driver = _driver(agent, model)
    return driver is None or driver.profile.output_source == "text"


def transport_faults(key: str, agent: AgentDefinition[Any]) -> list[Fault]:
    """An agent that wraps its driver's transport, and a driver that was given a ready client (O-24)."""
    if agent.wrap_transport is None or getattr(_driver(agent), "wrappable", True):
        return []
    told = "can't reach the model's transport: its driver was given a ready client"
    return [Fault(f"agents.{key}.wrap_transport", told)]
