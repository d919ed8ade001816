"""
``pai check``: what is wrong with an agent, and with schemas that take a value they do not give back.

Defining an agent tries ``{}`` and fixed probes of each field, and every write parses its result
again; this is the third net (A-META-2): values that nobody thought of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pai.definition import AgentDefinition, MetadataSchemas
from pai.errors import DefinitionError, Fault, InvalidInput, MissingCredential, PluginError
from pai.lifecycle import Chains, LoadedPlugins
from pai.models import resolve_model
from pai.schema import Schema, ValueSchema, compile_schema, dump_json, parse_stable

if TYPE_CHECKING:
    from jsonschema_rs import Validator

    from pai.schema import JsonObject, JsonValue

__all__ = ("Finding", "print_check", "search", "subjects")

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


class Finding(NamedTuple):
    """
    What a search found.

    Attributes:
        tried: How many values were tried; fewer than asked for, if there are no more.
        taken: How many of them the schema took.
        value: The smallest one found that it took and does not give back as it should.
        fault: What is wrong with it; None if nothing was found.
    """

    tried: int
    taken: int
    value: JsonValue = None
    fault: Fault | None = None


class _Falsified(Exception):
    """Raised for Hypothesis, which makes the value smaller and raises it again."""

    def __init__(self, value: JsonValue, fault: Fault) -> None:
        super().__init__()
        self.value = value
        self.fault = fault


def search(schema: ValueSchema, *, at: str, values: int) -> Finding:
    """
    Look for a value that *schema* takes, and does not give back as it should.

    The same values are tried each time.

    Args:
        schema: The schema.
        at: Its path.
        values: How many values to try.
    """
    import hypothesis
    import jsonschema_rs

    from pai.cli._check_values import values_of

    validator = jsonschema_rs.validator_for(
        _without_patterns(schema.json_schema), validate_formats=True
    )
    tried = taken = 0
    last: _Falsified | None = None

    @hypothesis.settings(
        max_examples=values,
        database=None,
        deadline=None,
        derandomize=True,
        report_multiple_bugs=False,
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )
    @hypothesis.given(values_of(schema.json_schema))
    def look(value: JsonValue) -> None:
        nonlocal tried, taken, last
        tried += 1
        if schema.faults(value):
            return
        taken += 1
        fault = _instability(schema, value, at) or _disagreement(schema, value, validator, at)
        if fault is not None:
            last = _Falsified(value, fault)
            raise last

    try:
        look()
    except (_Falsified, hypothesis.errors.Flaky):
        # Flaky: a default factory, say, that is wrong now and then. Once is enough.
        assert last is not None
        return Finding(tried, taken, last.value, last.fault)
    except hypothesis.errors.Unsatisfiable:
        return Finding(tried, taken)
    return Finding(tried, taken)


def _without_patterns(schema: JsonObject) -> JsonObject:
    """
    *schema* without the keyword ``pattern``.

    Python's patterns and those of JSON Schema differ where it does not matter: a newline before
    ``$``, digits of other scripts.
    """
    made: JsonObject = {}
    for word, value in schema.items():
        if word == "pattern":
            continue
        if word in ("properties", "$defs") and isinstance(value, dict):
            made[word] = {
                name: _without_patterns(item) if isinstance(item, dict) else item
                for name, item in value.items()
            }
        elif word in ("anyOf", "allOf", "prefixItems") and isinstance(value, list):
            made[word] = [
                _without_patterns(item) if isinstance(item, dict) else item for item in value
            ]
        elif word in ("items", "additionalProperties", "propertyNames") and isinstance(value, dict):
            made[word] = _without_patterns(value)
        else:
            made[word] = value
    return made


def _disagreement(
    schema: ValueSchema, value: JsonValue, validator: Validator, at: str
) -> Fault | None:
    """Where a canonical value does not fit the JSON Schema by which clients will read it."""
    for error in validator.iter_errors(schema.dump(schema.parse(value))):
        path = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path
        )
        return Fault(
            f"{at}{path}", f"what it becomes does not fit its JSON Schema: {error.message}"
        )
    return None


def _instability(schema: ValueSchema, value: JsonValue, at: str) -> Fault | None:
    """Where what a value becomes is no JSON, is not taken again, or changes again (A-META-2)."""
    assert isinstance(schema, Schema), "a definition is made of types"
    try:
        parse_stable(schema, value, at=at)
    except InvalidInput as error:
        fault = error.faults[0]
        return (
            Fault(_unstable_path(schema, value, at), fault.message) if fault.path == at else fault
        )
    return None


def _unstable_path(schema: Schema[Any], value: JsonValue, at: str) -> str:
    """Where the canonical form differs from what it becomes in its turn, if that can be told."""
    try:
        once = schema.dump(schema.parse(value))
        again = schema.dump(schema.parse(once))
    except InvalidInput:
        return at
    while dump_json(once) != dump_json(again):
        if isinstance(once, dict) and isinstance(again, dict) and once.keys() == again.keys():
            key = next(key for key in once if dump_json(once[key]) != dump_json(again[key]))
            at, once, again = f"{at}.{key}", once[key], again[key]
        elif isinstance(once, list) and isinstance(again, list) and len(once) == len(again):
            index = next(i for i, item in enumerate(once) if dump_json(item) != dump_json(again[i]))
            at, once, again = f"{at}[{index}]", once[index], again[index]
        else:
            break
    return at


def _short(value: JsonValue) -> str:
    text = dump_json(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
