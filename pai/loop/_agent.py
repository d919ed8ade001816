"""An agent made ready to run: its definition, compiled hooks and bound capabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pai.definition import AgentDefinition, Capabilities
from pai.lifecycle import Chains, Lifecycle
from pai.protocol import SystemMessage, ToolSpec

__all__ = ("BoundAgent", "as_instructions")


def as_instructions(value: object) -> tuple[SystemMessage, ...]:
    """Instructions as system messages; empty text is none."""
    if isinstance(value, str):
        return (SystemMessage(value),) if value else ()
    if isinstance(value, SystemMessage):
        return (value,)
    if isinstance(value, (list, tuple)) and all(isinstance(item, SystemMessage) for item in value):
        return tuple(value)
    raise TypeError("instructions are text, a SystemMessage, or a list of SystemMessage objects")


class BoundAgent:
    """
    What the loop needs of an agent, worked out once.

    Args:
        key: The agent's key in the runtime.
        definition: What was declared.
        lifecycle: Its plugins, installed ones included.
        bindings: Capabilities by id.
    """

    __slots__ = (
        "_subsets", "bindings", "chains", "contexts", "definition", "fixed_instructions", "gated",
        "key", "lazy", "lazy_specs", "leaves_jobs", "provider_tools", "tool_capabilities",
    )  # fmt: skip

    def __init__(
        self,
        key: str,
        definition: AgentDefinition[Any],
        lifecycle: Lifecycle,
        bindings: Mapping[str, object],
    ) -> None:
        self.key: Final = key
        self.definition: Final = definition
        self.chains: Final = Chains(lifecycle)
        self.bindings: Final = bindings
        # Whether the end of a run leaves side jobs: only then it is asked for some.
        self.leaves_jobs: Final = (
            bool(self.chains.run_settled) or definition.thread_titles is not None
        )
        self.tool_capabilities: Final = {
            name: Capabilities(
                {alias: bindings[item.id] for alias, item in config.tool.capabilities.items()}
            )
            for name, config in definition.tools.items()
        }
        self.provider_tools: Final = tuple(definition.provider_tools.values())
        # Tools that may be off: only these are asked at each step (A-TOOL-3).
        self.gated: Final = {
            name: config for name, config in definition.tools.items() if config.enabled is not True
        }
        # Tools that are handed the agent's context and say of what class it is (A-TOOL-4).
        self.contexts: Final = {
            name: config.tool.context
            for name, config in definition.tools.items()
            if config.tool.context is not None and config.map_context is None
        }
        self.lazy: Final = frozenset(
            [name for name, config in definition.tools.items() if config.tool.lazy]
        )
        self.lazy_specs: Final[
            dict[tuple[frozenset[str], frozenset[str], str], tuple[ToolSpec, ...]]
        ] = {}
        self.fixed_instructions: Final = (
            None if callable(definition.instructions) else as_instructions(definition.instructions)
        )
        self._subsets: dict[frozenset[str], tuple[ToolSpec, ...]] = {
            frozenset(definition.tools): definition.specs
        }

    def specs(self, names: frozenset[str]) -> tuple[ToolSpec, ...]:
        """The specs of these tools: one tuple for each set, so that drivers can keep its form."""
        found = self._subsets.get(names)
        if found is None:
            found = tuple([spec for spec in self.definition.specs if spec.name in names])
            self._subsets[names] = found
        return found
