"""What a run that is not stored may be given beside JSON: classes, functions, a driver."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from pai.definition import (
    AgentDefinition,
    Output,
    RunOptions,
    as_output,
    option_faults,
    output_faults,
    run_options,
)
from pai.errors import Fault, InvalidInput
from pai.ports import ModelDriver

__all__ = ("for_once",)


def for_once(
    agent: AgentDefinition[Any],
    options: RunOptions | Mapping[str, object] | None,
    output: object,
) -> tuple[AgentDefinition[Any], RunOptions | Mapping[str, object] | None]:
    """
    The agent with what is no JSON of the options, and the rest of them.

    Raises:
        InvalidInput: There is no output of this name, no schema can be made of it, or a function is
            called otherwise.
    """
    at = "output"
    if isinstance(options, Mapping):
        agent, options = _lifted(agent, options)
        if "output" in options:
            own = dict(options)
            given = own.pop("output")
            options = own
            if output is None:
                output, at = given, "options.output"
    if output is None:
        return agent, options
    if faults := output_faults(output, at, agent.outputs, classes=True):
        raise InvalidInput(faults, subject="run_once")
    found = as_output(output, agent.outputs)
    chosen: object = output if found.name is None else found.name
    if found.name is None and not isinstance(output, Mapping):
        # A class can't be stored, and a name can; no agent can declare one with brackets.
        chosen = name = f"{getattr(output, '__name__', 'output')}()"
        outputs = {**agent.outputs, name: Output(found.schema, name)}
        agent = attrs.evolve(agent, outputs=MappingProxyType(outputs))
    stored = {} if options is None else run_options(options).to_json()
    return agent, {**stored, "output": chosen}


def _lifted(
    agent: AgentDefinition[Any], options: Mapping[str, object]
) -> tuple[AgentDefinition[Any], Mapping[str, object]]:
    rest = dict(options)
    faults: list[Fault] = []
    model = rest.get("model")
    if isinstance(model, ModelDriver):
        del rest["model"]
        agent = attrs.evolve(agent, model=model)
    loop: dict[str, Any] = {}
    for name in ("stop_when", "repair_tool_input"):
        value = rest.get(name)
        if value is not None and not isinstance(value, (bool, Mapping)):
            loop[name] = rest.pop(name)
            faults += option_faults(name, value, f"options.{name}")
    if faults:
        raise InvalidInput(faults, subject="run_once")
    if loop:
        agent = attrs.evolve(agent, loop=attrs.evolve(agent.loop, **loop))
    return agent, rest
