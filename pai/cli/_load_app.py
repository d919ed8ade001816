"""Loading the runtime that the command line names, or making one of an agent."""

from __future__ import annotations

from collections.abc import Mapping

from pai.cli._choice import Chosen
from pai.cli._config import store_url
from pai.cli._load import load_fault, load_module, only_agent
from pai.definition import AgentDefinition
from pai.runtime import Pai, create_agent_runtime

__all__ = ("load_app",)


def load_app(target: str, *, store: str | None, engine: str | None, plugins: Chosen) -> Pai:
    """
    The runtime that *target* names, or one made of the agent it names; it is not open yet.

    Args:
        target: ``"module:attribute"``, or a path that ends in ``.py``: what ``create_pai()``
            returned, a function that returns one, or an agent.
        store: The store of an agent; else that of the configuration file.
        engine: The engine of an agent.
        plugins: The plugins of an agent.

    Raises:
        DefinitionError: It can't be found or imported, or is neither; or options are given for a
            runtime that has its own.
    """
    module, attribute = load_module(target)
    found = getattr(module, attribute, None) if attribute is not None else _app_of(vars(module))
    if callable(found) and not isinstance(found, (AgentDefinition, Pai, type)):
        found = found()
    if isinstance(found, Pai):
        if store is not None or engine is not None:
            raise load_fault(target, "has a store and an engine of its own: leave out the options")
        return found
    if attribute is not None and not isinstance(found, AgentDefinition):
        kind = "is not there" if found is None else f"is a {type(found).__name__}"
        raise load_fault(
            target, f"{attribute!r} {kind}: expected what create_pai() or define_agent() returned"
        )
    agent = found if isinstance(found, AgentDefinition) else only_agent(module, target)
    return create_agent_runtime(
        agent=agent, store=store_url(store), engine=engine or "embedded", plugins=plugins
    )


def _app_of(names: Mapping[str, object]) -> Pai | None:
    named = names.get("app")
    if isinstance(named, Pai):
        return named
    found = [item for item in names.values() if isinstance(item, Pai)]
    return found[0] if len(found) == 1 else None
