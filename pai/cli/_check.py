"""
``pai check``: what is wrong with an agent, and with schemas that take a value they do not give back.

Defining an agent tries ``{}`` and fixed probes of each field, and every write parses its result
again; this is the third net (A-META-2): values that nobody thought of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pai.definition import AgentDefinition, MetadataSchemas
from pai.errors import DefinitionError, Fault, MissingCredential, PluginError
from pai.lifecycle import Chains, LoadedPlugins
from pai.models import resolve_model
from pai.schema import ValueSchema, compile_schema, dump_json

if TYPE_CHECKING:
    from pai.schema import JsonValue

__all__ = ("print_check", "subjects")

_SHOWN = 400
"""Characters shown of a falsifying value."""


def print_check(
    agent: AgentDefinition[Any],
    *,
    values: int,
    plugins: LoadedPlugins,
    faults: Sequence[Fault] = (),
) -> int:
    """
    Check an agent that could be defined, and print schema by schema what was checked.

    Args:
        agent: The agent.
        values: How many values to try for each schema.
        plugins: The installed plugins.
        faults: What was found before.

    Returns:
        The exit code: 1 if there are faults.
    """
    found = 0
    for fault in (*faults, *_plain_faults(agent, plugins)):
        found += 1
        print(f"{fault.path}: FAULT: {fault.message}")
    listed = list(subjects(agent))
    if not _has_hypothesis():
        print(
            "Hypothesis is not installed, so no values were searched for: what defining the agent"
            " checks was checked, no more. For the rest: pip install hypothesis"
        )
    else:
        from pai.testing import search

        for path, schema in listed:
            tried, taken, value, wrong = search(schema, at=path, values=values)
            if wrong is not None:
                found += 1
                print(f"{path}: FAULT at {wrong.path}: {wrong.message}")
                print(f"  seen with {_short(value)}")
            elif taken:
                print(f"{path}: {tried} values, {taken} taken, no fault")
            else:
                print(f"{path}: NOT CHECKED: no value was found that it takes")
    word = {0: "no faults", 1: "1 fault"}.get(found, f"{found} faults")
    print(f"{agent.name} {agent.version}: {word}")
    return 1 if found else 0


def _plain_faults(agent: AgentDefinition[Any], plugins: LoadedPlugins) -> Iterator[Fault]:
    """What shows when a runtime is built, or the model is asked for: both need not wait for it."""
    for report in plugins.reports:
        if report.error is not None:
            yield Fault(f"plugins.{report.name}", str(report.error))
    try:
        Chains(plugins.around(agent.lifecycle))
    except DefinitionError as error:
        yield from [fault.under("lifecycle") for fault in error.faults]
    model = getattr(agent.model, "model", agent.model)
    if isinstance(model, str):
        try:
            resolve_model(model)
        except DefinitionError as error:
            yield from error.faults
        except PluginError as error:
            yield Fault("model", str(error))
        except MissingCredential:
            # The key is where the agent runs, not where it is checked.
            return


def subjects(agent: AgentDefinition[Any]) -> Iterator[tuple[str, ValueSchema]]:
    """Each schema of an agent, with its path."""
    bags: list[tuple[str, MetadataSchemas[Any, Any] | None]] = [
        ("run_metadata", agent.run_metadata),
        ("thread_metadata", agent.thread_metadata),
        ("message_metadata", agent.message_metadata),
    ]
    found: list[tuple[str, ValueSchema | None]] = [
        ("identity", agent.identity),
        ("client_data", agent.client_data),
    ]
    for path, schemas in bags:
        if schemas is not None:
            found.append((f"{path}.private", compile_schema(schemas.private)))
            found.append((f"{path}.public", compile_schema(schemas.public)))
    found += [(f"ui_data.{name}", schema) for name, schema in agent.ui_data.items()]
    for name, config in agent.tools.items():
        tool = config.tool
        found.append((f"tools.{name}.input", tool.input))
        found.append((f"tools.{name}.output", tool.output))
        found.append((f"tools.{name}.data", tool.data))
    for name, command in agent.commands.items():
        found.append((f"commands.{name}.input", command.input))
        found.append((f"commands.{name}.output", command.output))
    for path, schema in found:
        if schema is not None:
            yield path, schema


def _has_hypothesis() -> bool:
    from importlib.util import find_spec

    return find_spec("hypothesis") is not None


def _short(value: JsonValue) -> str:
    text = dump_json(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
