"""An agent, declared: :func:`define_agent` (A-DEF)."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar, get_type_hints

import attrs

from pai.definition._behavior import AgentBehaviorInput, ContextInput
from pai.definition._capabilities import Capability, fold_capabilities
from pai.definition._checks import LATER, LATER_OPTION
from pai.definition._commands import CommandDefinition
from pai.definition._manifest import contract, manifest, public_contract
from pai.definition._metadata import MetadataSchemas, metadata_faults
from pai.definition._names import name_faults, tool_name_faults
from pai.definition._selection import ModelSelection
from pai.definition._tools import AgentToolConfig, ToolDefinition
from pai.errors import (
    CapabilityBindingError,
    DefinitionError,
    Fault,
    MetadataSchemaError,
    UnknownOptionError,
)
from pai.ports import ModelDriver
from pai.protocol import ProviderTool, SystemMessage, ToolSpec
from pai.schema import JsonObject, Schema, compile_schema

__all__ = ("AgentDefinition", "Instructions", "ModelSource", "define_agent")

ContextT = TypeVar("ContextT")

ModelSource = (
    str
    | ModelDriver
    | ModelSelection
    | Callable[
        [AgentBehaviorInput[ContextT]],
        "str | ModelDriver | ModelSelection | Awaitable[str | ModelDriver | ModelSelection]",
    ]
)
"""A model, a selection, or a function that chooses (A-MODEL-1)."""

InstructionsValue = str | SystemMessage | Sequence[SystemMessage]
Instructions = (
    InstructionsValue
    | Callable[
        [AgentBehaviorInput[ContextT]], "InstructionsValue | Awaitable[InstructionsValue]"
    ]
)
"""Instructions, or a function that writes them for each step (A-INSTR-1)."""


@attrs.frozen(eq=False, slots=False)
class AgentDefinition(Generic[ContextT]):
    """
    What an application declared. It opens nothing and starts nothing (A-DEF-1).

    Attributes:
        name: The agent's name.
        version: Stored on each run (A-DEF-7).
        manifest: Name, version, tools and exposed commands, as JSON (A-MAN-1).
        contract: All shapes, as JSON (A-MAN-2).
        public_contract: What a typed client may be made from (A-MAN-2).
        capabilities: Needed capabilities by id (A-CAP-1).
        tools: The tools by the name the model sees.
    """

    name: str
    version: str
    model: ModelSource[ContextT]
    instructions: Instructions[ContextT]
    identity: Schema[object] | None
    client_data: Schema[object] | None
    run_metadata: MetadataSchemas[Any, Any] | None
    thread_metadata: MetadataSchemas[Any, Any] | None
    message_metadata: MetadataSchemas[Any, Any] | None
    ui_data: Mapping[str, Schema[object]]
    runtime_context: Callable[[ContextInput], ContextT | Awaitable[ContextT]] | None
    tools: Mapping[str, AgentToolConfig[ContextT]]
    provider_tools: Mapping[str, ProviderTool]
    commands: Mapping[str, CommandDefinition[ContextT]]
    lifecycle: object
    max_steps: int
    capabilities: Mapping[str, Capability[Any]]
    specs: tuple[ToolSpec, ...] = attrs.field(repr=False)
    """The tools as models are told of them: one tuple for good, so that drivers can keep its form."""

    @cached_property
    def manifest(self) -> JsonObject:
        return manifest(
            self.name, self.version, self._plain_tools(), self.provider_tools, self.commands
        )

    @cached_property
    def contract(self) -> JsonObject:
        return contract(
            self.name,
            self.version,
            identity=self.identity and self.identity.type,
            client_data=self.client_data and self.client_data.type,
            tools=self._plain_tools(),
            provider_tools=self.provider_tools,
            commands=self.commands,
            ui_data={key: schema.type for key, schema in self.ui_data.items()},
            run_metadata=self.run_metadata,
            thread_metadata=self.thread_metadata,
            message_metadata=self.message_metadata,
        )

    @cached_property
    def public_contract(self) -> JsonObject:
        return public_contract(self.contract)

    def _plain_tools(self) -> dict[str, ToolDefinition[Any]]:
        return {key: item.tool for key, item in self.tools.items()}


_LATER_FIELDS = {
    "subagents": LATER_OPTION,
    "outputs": LATER_OPTION,
    "thread_titles": LATER,
    "reasoning_summary": LATER,
    "stop_when": LATER_OPTION,
    "tool_choice": LATER_OPTION,
    "tool_execution": LATER_OPTION,
    "max_parallel_tools": LATER_OPTION,
    "retry": LATER_OPTION,
    "prompt_cache": LATER_OPTION,
    "repair_tool_input": LATER_OPTION,
    "lazy_tools": LATER_OPTION,
    "request": LATER_OPTION,
    "wrap_transport": LATER_OPTION,
    "compatible": LATER,
}
"""Fields that are named already and refused until they do something."""

_REFUSED = {
    "middleware": "is no field: hooks of a lifecycle plugin do it",
    "input_processors": "is no field: prepare_run and prepare_model_step do it",
    "output_processors": "is no field: transform_step_stream does it",
    "telemetry": "is no agent behaviour: give it to create_pai()",
}
"""What other frameworks take here, and where it goes (A-DEF-5, A-DEF-6)."""


def define_agent(
    *,
    name: str,
    model: ModelSource[ContextT],
    instructions: Instructions[ContextT] = "",
    version: str = "0.0.0",
    identity: object = None,
    client_data: object = None,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    thread_metadata: MetadataSchemas[Any, Any] | None = None,
    message_metadata: MetadataSchemas[Any, Any] | None = None,
    ui_data: Mapping[str, object] | None = None,
    runtime_context: Callable[[ContextInput], ContextT | Awaitable[ContextT]] | None = None,
    tools: Mapping[str, ToolDefinition[Any] | AgentToolConfig[ContextT]] | None = None,
    provider_tools: Mapping[str, ProviderTool] | None = None,
    commands: Mapping[str, CommandDefinition[Any]] | None = None,
    lifecycle: object = None,
    max_steps: int = 10,
    **unknown: object,
) -> AgentDefinition[ContextT]:
    """
    Declare an agent. Nothing is opened or started (A-DEF-1).

    Args:
        name: A letter, then letters, digits, ``_``, ``.`` or ``-``.
        model: A name such as ``"openai:gpt-5.2"`` or ``"demo"``, a driver, a selection, or a
            function of :class:`AgentBehaviorInput` (A-MODEL-1).
        instructions: Text, system messages, or a function evaluated for each step (A-INSTR-1).
        version: For deploys; stored on each run.
        identity: Schema of who a run is for, computed by the server (A-DEF-4).
        client_data: Schema of what clients send along: untrusted.
        run_metadata: The two bags of a run (A-META-1), as for threads and messages.
        ui_data: Schemas of data parts by name (A-UI-1).
        runtime_context: Builds what code of a run is handed and nobody stores (A-CTX-1).
        tools: Tools by the name the model sees.
        provider_tools: Tools that the provider runs, under its names.
        commands: Commands by name.
        lifecycle: A plugin, or what ``compose_lifecycle`` returned.
        max_steps: Model steps an episode may take.

    Raises:
        UnknownOptionError: A field nobody knows.
        DefinitionError: Everything else that is wrong, all at once, each with its path.
    """
    subject = f"agent {name!r}"
    faults: list[Fault] = []
    strangers = []
    for field, value in unknown.items():
        if field in _LATER_FIELDS:
            if value:
                faults.append(Fault(field, _LATER_FIELDS[field]))
        else:
            strangers.append(Fault(field, _REFUSED.get(field, "is no field of an agent")))
    if strangers and not any(_REFUSED.get(f.path) for f in strangers):
        raise UnknownOptionError(strangers, subject=subject)
    faults += strangers

    faults += name_faults(name, "name")
    if not isinstance(version, str) or not version:
        faults.append(Fault("version", "expected a text such as '1.4.0'"))
    if not (isinstance(model, (str, ModelDriver, ModelSelection)) or callable(model)) or not model:
        faults.append(Fault("model", "expected a name, a driver, a ModelSelection or a function"))
    elif isinstance(model, str):
        faults += _model_name_faults(model, "model")
    faults += _instruction_faults(instructions)
    if type(max_steps) is not int or max_steps < 1:
        faults.append(Fault("max_steps", "expected a whole number of at least 1"))
    faults += _arity_faults(runtime_context, "runtime_context")

    identity_schema = _schema(identity, "identity", faults)
    client_schema = _schema(client_data, "client_data", faults)
    data_schemas = _ui_data(ui_data, faults)
    metadata = []
    for field, schemas, reserved in (
        ("run_metadata", run_metadata, frozenset[str]()),
        ("thread_metadata", thread_metadata, frozenset[str]()),
        ("message_metadata", message_metadata, frozenset({"pai"})),
    ):
        if schemas is not None:
            metadata += metadata_faults(schemas, field, reserved=reserved)
    configs = _tools(tools, runtime_context, faults)
    hosted = _provider_tools(provider_tools, configs, faults)
    known_commands = _commands(commands, run_metadata, faults)
    capabilities, clashes = fold_capabilities(
        [(f"tools.{key}", item.tool.capabilities) for key, item in configs.items()]
        + [(f"commands.{key}", item.capabilities) for key, item in known_commands.items()]
    )
    if everything := faults + metadata + clashes:
        kind = DefinitionError
        if len(everything) == len(metadata):
            kind = MetadataSchemaError
        elif len(everything) == len(clashes):
            kind = CapabilityBindingError
        raise kind(everything, subject=subject)
    return AgentDefinition(
        name=name,
        version=version,
        model=model,
        instructions=instructions,
        identity=identity_schema,
        client_data=client_schema,
        run_metadata=run_metadata,
        thread_metadata=thread_metadata,
        message_metadata=message_metadata,
        ui_data=data_schemas,
        runtime_context=runtime_context,
        tools=configs,
        provider_tools=hosted,
        commands=known_commands,
        lifecycle=lifecycle,
        max_steps=max_steps,
        capabilities=capabilities,
        specs=tuple([item.tool.spec(key) for key, item in configs.items()]),
    )


def _model_name_faults(model: str, at: str) -> list[Fault]:
    provider, colon, rest = model.partition(":")
    if model == "demo" or (colon and provider and rest):
        return []
    return [Fault(at, f"{model!r} names no model: write 'provider:model', e.g. 'openai:gpt-5.2'")]


def _instruction_faults(instructions: object) -> list[Fault]:
    if isinstance(instructions, (str, SystemMessage)):
        return []
    if callable(instructions):
        return _arity_faults(instructions, "instructions")
    if isinstance(instructions, Sequence):
        return [
            Fault(f"instructions[{index}]", "expected a SystemMessage")
            for index, item in enumerate(instructions)
            if not isinstance(item, SystemMessage)
        ]
    return [Fault("instructions", "expected text, SystemMessage objects or a function")]


def _arity_faults(fn: object, at: str) -> list[Fault]:
    """Functions given to an agent take one argument."""
    if fn is None:
        return []
    if not callable(fn):
        return [Fault(at, "expected a function of one argument")]
    try:
        inspect.signature(fn).bind(None)
    except TypeError:
        return [Fault(at, "is called with one argument, and its signature does not take it")]
    except ValueError:
        return []
    return []


def _schema(tp: object, at: str, faults: list[Fault]) -> Schema[object] | None:
    if tp is None:
        return None
    try:
        return compile_schema(tp)
    except DefinitionError as error:
        faults += [fault.under(at) for fault in error.faults]
        return None


def _ui_data(
    ui_data: Mapping[str, object] | None, faults: list[Fault]
) -> dict[str, Schema[object]]:
    found: dict[str, Schema[object]] = {}
    for key, tp in (ui_data or {}).items():
        faults += name_faults(key, f"ui_data.{key}")
        schema = _schema(tp, f"ui_data.{key}", faults)
        if schema is not None:
            found[key] = schema
    return found


def _tools(
    tools: Mapping[str, ToolDefinition[Any] | AgentToolConfig[ContextT]] | None,
    runtime_context: object,
    faults: list[Fault],
) -> dict[str, AgentToolConfig[ContextT]]:
    found: dict[str, AgentToolConfig[ContextT]] = {}
    context = _returned_class(runtime_context)
    for key, item in (tools or {}).items():
        at = f"tools.{key}"
        faults += tool_name_faults(key, at)
        config = AgentToolConfig[ContextT](item) if isinstance(item, ToolDefinition) else item
        if not isinstance(config, AgentToolConfig) or not isinstance(config.tool, ToolDefinition):
            faults.append(Fault(at, "expected what @tool or define_tool() made: decorate it"))
            continue
        if not isinstance(config.enabled, bool):
            faults += _arity_faults(config.enabled, f"{at}.enabled")
        faults += _arity_faults(config.map_context, f"{at}.map_context")
        faults += _arity_faults(config.on_output, f"{at}.on_output")
        wanted = config.tool.context
        if wanted is not None and config.map_context is None:
            if runtime_context is None:
                faults.append(
                    Fault(f"{at}.map_context", f"the tool wants a {wanted.__name__},"
                          " and the agent has no runtime_context")
                )  # fmt: skip
            elif context is not None and not issubclass(context, wanted):
                faults.append(
                    Fault(f"{at}.map_context", f"the tool wants a {wanted.__name__},"
                          f" and runtime_context gives a {context.__name__}")
                )  # fmt: skip
        found[key] = config
    return found


def _returned_class(fn: object) -> type | None:
    """The class a function says it returns, where it says so (A-TOOL-4)."""
    if not callable(fn):
        return None
    try:
        hint = get_type_hints(fn).get("return")
    except (NameError, TypeError):
        return None
    return hint if isinstance(hint, type) else None


def _provider_tools(
    provider_tools: Mapping[str, ProviderTool] | None,
    tools: Mapping[str, object],
    faults: list[Fault],
) -> dict[str, ProviderTool]:
    found: dict[str, ProviderTool] = {}
    for key, item in (provider_tools or {}).items():
        at = f"provider_tools.{key}"
        if not isinstance(item, ProviderTool):
            faults.append(Fault(at, "expected a ProviderTool"))
            continue
        if key in tools:
            faults.append(Fault(at, "a tool has this name already"))
        found[key] = item
    return found


def _commands(
    commands: Mapping[str, CommandDefinition[Any]] | None,
    run_metadata: MetadataSchemas[Any, Any] | None,
    faults: list[Fault],
) -> dict[str, CommandDefinition[Any]]:
    found: dict[str, CommandDefinition[Any]] = {}
    for key, item in (commands or {}).items():
        at = f"commands.{key}"
        faults += name_faults(key, at)
        if not isinstance(item, CommandDefinition):
            faults.append(Fault(at, "expected what define_command() made"))
            continue
        if item.run_metadata is not None and item.run_metadata is not run_metadata:
            faults.append(
                Fault(f"{at}.run_metadata", "is another object than the agent's:"
                      " give both the same MetadataSchemas (A-META-8)")
            )  # fmt: skip
        found[key] = item
    return found
