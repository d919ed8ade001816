"""An agent, declared: :func:`define_agent` (A-DEF)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeVar, overload

import attrs

from pai.definition._behavior import ContextInput
from pai.definition._capabilities import Capability, fold_capabilities
from pai.definition._checks import (
    arity_faults,
    compiled,
    text_faults,
    version_faults,
)
from pai.definition._commands import CommandDefinition
from pai.definition._instructions import Instructions, instruction_faults
from pai.definition._loop_options import (
    DEFAULT_RETRY,
    LazyTools,
    LoopOptions,
    as_prompt_cache,
    choice_names,
    option_faults,
)
from pai.definition._manifest import contract, manifest, public_contract
from pai.definition._metadata import MetadataSchemas, metadata_faults
from pai.definition._names import name_faults
from pai.definition._outputs import Output, registered_outputs
from pai.definition._registration import (
    registered_commands,
    registered_data,
    registered_hosted,
    registered_tools,
)
from pai.definition._repair import RepairToolInput
from pai.definition._request_options import RequestFunction
from pai.definition._selection import ModelSource, model_faults
from pai.definition._side_text import (
    ReasoningSummaryConfig,
    ThreadTitleConfig,
    summary_config,
    title_config,
)
from pai.definition._stop import StopWhen
from pai.definition._subagent import Subagent, registered_subagents
from pai.definition._tools import AgentToolConfig, ToolDefinition
from pai.errors import (
    CapabilityBindingError,
    DefinitionError,
    Fault,
    MetadataSchemaError,
    UnknownOptionError,
)
from pai.protocol import (
    FirstStep,
    PromptCache,
    ProviderTool,
    Retry,
    ToolChoice,
    ToolSpec,
    WrapTransport,
)
from pai.schema import JsonObject, Schema

__all__ = ("AgentDefinition", "define_agent")

ContextT = TypeVar("ContextT")


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
        loop: What steers the loop of its runs.
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
    outputs: Mapping[str, Output]
    lifecycle: object
    max_steps: int
    request: RequestFunction[ContextT] | None
    wrap_transport: WrapTransport | None
    compatible: Callable[[str, str], bool] | None
    loop: LoopOptions[ContextT]
    subagents: Mapping[str, Subagent]
    thread_titles: ThreadTitleConfig | None
    reasoning_summary: ReasoningSummaryConfig | None
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
            identity=self.identity,
            client_data=self.client_data,
            tools=self._plain_tools(),
            provider_tools=self.provider_tools,
            commands=self.commands,
            ui_data=self.ui_data,
            outputs={key: item.schema for key, item in self.outputs.items()},
            run_metadata=self.run_metadata,
            thread_metadata=self.thread_metadata,
            message_metadata=self.message_metadata,
        )

    @cached_property
    def public_contract(self) -> JsonObject:
        return public_contract(self.contract)

    @cached_property
    def choosable(self) -> frozenset[str]:
        """What a tool choice may name."""
        return frozenset([*self.tools, *[tool.name for tool in self.provider_tools.values()]])

    def _plain_tools(self) -> dict[str, ToolDefinition[Any]]:
        return {key: item.tool for key, item in self.tools.items()}


_NEVER_NONE = frozenset({"max_steps", "tool_execution", "repair_tool_input"})
"""Options of the loop that always have a value."""

_ELSEWHERE = {
    "middleware": "is no field: hooks of a lifecycle plugin do it",
    "input_processors": "is no field: prepare_run and prepare_model_step do it",
    "output_processors": "is no field: transform_step_stream does it",
    "telemetry": "is no agent behaviour: give it to create_pai()",
}
"""What other frameworks take here, and where it goes (A-DEF-5, A-DEF-6)."""


@overload
def define_agent(
    *,
    name: str,
    model: ModelSource[None],
    instructions: Instructions[None] = "",
    version: str = "0.0.0",
    identity: object = None,
    client_data: object = None,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    thread_metadata: MetadataSchemas[Any, Any] | None = None,
    message_metadata: MetadataSchemas[Any, Any] | None = None,
    ui_data: Mapping[str, object] | None = None,
    runtime_context: None = None,
    tools: Mapping[str, ToolDefinition[None] | AgentToolConfig[None]] | None = None,
    provider_tools: Mapping[str, ProviderTool] | None = None,
    commands: Mapping[str, CommandDefinition[None]] | None = None,
    subagents: Mapping[str, Subagent] | None = None,
    outputs: Mapping[str, object] | None = None,
    lifecycle: object = None,
    max_steps: int = 10,
    request: RequestFunction[None] | None = None,
    wrap_transport: WrapTransport | None = None,
    compatible: Callable[[str, str], bool] | None = None,
    stop_when: StopWhen[None] | None = None,
    tool_choice: ToolChoice | FirstStep | None = None,
    tool_execution: Literal["parallel", "sequential"] = "parallel",
    max_parallel_tools: int | None = None,
    retry: Retry | None = DEFAULT_RETRY,
    prompt_cache: PromptCache | Literal["none", "short", "long"] | None = None,
    repair_tool_input: bool | RepairToolInput[None] = True,
    lazy_tools: LazyTools | None = None,
    thread_titles: bool | ThreadTitleConfig = False,
    reasoning_summary: bool | ReasoningSummaryConfig = False,
) -> AgentDefinition[None]: ...
@overload
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
    runtime_context: Callable[[ContextInput], Awaitable[ContextT]],
    tools: Mapping[str, ToolDefinition[ContextT] | AgentToolConfig[ContextT]] | None = None,
    provider_tools: Mapping[str, ProviderTool] | None = None,
    commands: Mapping[str, CommandDefinition[ContextT]] | None = None,
    subagents: Mapping[str, Subagent] | None = None,
    outputs: Mapping[str, object] | None = None,
    lifecycle: object = None,
    max_steps: int = 10,
    request: RequestFunction[ContextT] | None = None,
    wrap_transport: WrapTransport | None = None,
    compatible: Callable[[str, str], bool] | None = None,
    stop_when: StopWhen[ContextT] | None = None,
    tool_choice: ToolChoice | FirstStep | None = None,
    tool_execution: Literal["parallel", "sequential"] = "parallel",
    max_parallel_tools: int | None = None,
    retry: Retry | None = DEFAULT_RETRY,
    prompt_cache: PromptCache | Literal["none", "short", "long"] | None = None,
    repair_tool_input: bool | RepairToolInput[ContextT] = True,
    lazy_tools: LazyTools | None = None,
    thread_titles: bool | ThreadTitleConfig = False,
    reasoning_summary: bool | ReasoningSummaryConfig = False,
) -> AgentDefinition[ContextT]: ...
@overload
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
    runtime_context: Callable[[ContextInput], ContextT],
    tools: Mapping[str, ToolDefinition[ContextT] | AgentToolConfig[ContextT]] | None = None,
    provider_tools: Mapping[str, ProviderTool] | None = None,
    commands: Mapping[str, CommandDefinition[ContextT]] | None = None,
    subagents: Mapping[str, Subagent] | None = None,
    outputs: Mapping[str, object] | None = None,
    lifecycle: object = None,
    max_steps: int = 10,
    request: RequestFunction[ContextT] | None = None,
    wrap_transport: WrapTransport | None = None,
    compatible: Callable[[str, str], bool] | None = None,
    stop_when: StopWhen[ContextT] | None = None,
    tool_choice: ToolChoice | FirstStep | None = None,
    tool_execution: Literal["parallel", "sequential"] = "parallel",
    max_parallel_tools: int | None = None,
    retry: Retry | None = DEFAULT_RETRY,
    prompt_cache: PromptCache | Literal["none", "short", "long"] | None = None,
    repair_tool_input: bool | RepairToolInput[ContextT] = True,
    lazy_tools: LazyTools | None = None,
    thread_titles: bool | ThreadTitleConfig = False,
    reasoning_summary: bool | ReasoningSummaryConfig = False,
) -> AgentDefinition[ContextT]: ...


def define_agent(
    *,
    name: str,
    model: ModelSource[Any],
    instructions: Instructions[Any] = "",
    version: str = "0.0.0",
    identity: object = None,
    client_data: object = None,
    run_metadata: MetadataSchemas[Any, Any] | None = None,
    thread_metadata: MetadataSchemas[Any, Any] | None = None,
    message_metadata: MetadataSchemas[Any, Any] | None = None,
    ui_data: Mapping[str, object] | None = None,
    runtime_context: Callable[[ContextInput], object] | None = None,
    tools: Mapping[str, ToolDefinition[Any] | AgentToolConfig[Any]] | None = None,
    provider_tools: Mapping[str, ProviderTool] | None = None,
    commands: Mapping[str, CommandDefinition[Any]] | None = None,
    subagents: Mapping[str, Subagent] | None = None,
    outputs: Mapping[str, object] | None = None,
    lifecycle: object = None,
    max_steps: int = 10,
    request: RequestFunction[Any] | None = None,
    wrap_transport: WrapTransport | None = None,
    compatible: Callable[[str, str], bool] | None = None,
    stop_when: StopWhen[Any] | None = None,
    tool_choice: ToolChoice | FirstStep | None = None,
    tool_execution: Literal["parallel", "sequential"] = "parallel",
    max_parallel_tools: int | None = None,
    retry: Retry | None = DEFAULT_RETRY,
    prompt_cache: PromptCache | Literal["none", "short", "long"] | None = None,
    repair_tool_input: bool | RepairToolInput[Any] = True,
    lazy_tools: LazyTools | None = None,
    thread_titles: bool | ThreadTitleConfig = False,
    reasoning_summary: bool | ReasoningSummaryConfig = False,
    **unknown: object,
) -> AgentDefinition[Any]:
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
        run_metadata: The two bags of a run (A-META-1).
        thread_metadata: The two bags of a thread.
        message_metadata: The two bags of a message; ``pai`` is reserved in them (A-META-9).
        ui_data: Schemas of data parts by name (A-UI-1).
        runtime_context: Builds what code of a run is handed and nobody stores (A-CTX-1).
        tools: Tools by the name the model sees.
        provider_tools: Tools that the provider runs, under its names.
        commands: Commands by name.
        subagents: Agents that it hands work to, by name: each is a tool of this name (O-20).
        outputs: Structured outputs that a run may be asked for, by name: classes, types, or JSON
            Schemas (O-11).
        lifecycle: A plugin, or what ``compose_lifecycle`` returned.
        max_steps: Model steps an episode may take.
        request: Headers and time limit of the requests to the provider: a function of
            :class:`AgentBehaviorInput`, asked once an episode and again after a takeover (O-15).
        wrap_transport: Wraps the HTTP transport of the model's driver (O-24), outermost: a function
            from one transport to another.
        compatible: Whether this version may go on with a run of another one, from the stored version
            and its own (A-DEF-7); without it, it may. One that may not leaves the run to others.
        stop_when: Ends the run after a step that it is true for (O-2): ``step_limit()``,
            ``until_finish_reason()``, ``budget()``, a function, joined by ``|`` and ``&``.
        tool_choice: ``"auto"``, ``"none"``, ``"required"`` or ``ToolName(name)``; the last two hold
            in the first step of a run only, unless ``FirstStep`` says otherwise (O-21).
        tool_execution: Whether the calls of a step run side by side or one after another (O-22).
        max_parallel_tools: Calls of a step that may run at once.
        retry: How often a model is asked again that failed before it said anything; ``None``:
            never (O-17).
        prompt_cache: A wish for the provider's prompt cache (O-12).
        repair_tool_input: Whether input that does not fit is converted, or a function that mends
            it (O-14).
        lazy_tools: How lazy tools are told of before they are discovered (O-6).
        thread_titles: Whether and how threads get titles (A-TITLE-1).
        reasoning_summary: Whether and how parts of reasoning get labels (A-REASON-1).
        **unknown: Fields that nobody knows are refused by name.

    Raises:
        UnknownOptionError: A field nobody knows, and nothing else is wrong.
        DefinitionError: All that is wrong, at once, each with its path; a *MetadataSchemaError* or
            *CapabilityBindingError* if all faults are of that kind.
    """
    strangers = [
        Fault(field, _ELSEWHERE.get(field, "is no field of an agent")) for field in unknown
    ]
    faults: list[Fault] = []
    faults += name_faults(name, "name")
    faults += text_faults(version, "version", "expected a text such as '1.4.0'")
    faults += model_faults(model, "model")
    faults += instruction_faults(instructions, "instructions")
    # As whoever has no type checker may have given them.
    loop: dict[str, Any] = {
        "max_steps": max_steps,
        "stop_when": stop_when,
        "tool_choice": tool_choice,
        "tool_execution": tool_execution,
        "max_parallel_tools": max_parallel_tools,
        "retry": retry,
        "prompt_cache": as_prompt_cache(prompt_cache),
        "repair_tool_input": repair_tool_input,
        "lazy_tools": lazy_tools or LazyTools(),
    }
    for field, value in loop.items():
        if value is not None or field in _NEVER_NONE:
            faults += option_faults(field, value)
    faults += arity_faults(runtime_context, "runtime_context")
    faults += arity_faults(request, "request")
    faults += arity_faults(wrap_transport, "wrap_transport")
    faults += version_faults(compatible, "compatible")
    identity_schema = compiled(identity, "identity", faults)
    client_schema = compiled(client_data, "client_data", faults)
    data_schemas = registered_data(ui_data, faults)
    configs = registered_tools(tools, runtime_context, faults)
    known_subagents, handing = registered_subagents(subagents, configs, AgentDefinition, faults)
    configs.update(handing)
    hosted = registered_hosted(provider_tools, configs, faults)
    faults += [
        Fault("tool_choice", f"the agent declares no tool named {chosen!r}")
        for chosen in choice_names(tool_choice)
        if chosen not in configs and chosen not in [tool.name for tool in hosted.values()]
    ]
    titles = title_config(thread_titles, "thread_titles", faults)
    summaries = summary_config(reasoning_summary, "reasoning_summary", faults)
    known_commands = registered_commands(commands, run_metadata, faults)
    known_outputs = registered_outputs(outputs, faults)
    metadata = _bag_faults(run_metadata, thread_metadata, message_metadata)
    capabilities, clashes = fold_capabilities(
        [(f"tools.{key}", item.tool.capabilities) for key, item in configs.items()]
        + [(f"commands.{key}", item.capabilities) for key, item in known_commands.items()]
    )
    _raise_faults(f"agent {name!r}", faults, strangers, metadata, clashes)
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
        ui_data=MappingProxyType(data_schemas),
        runtime_context=runtime_context,
        tools=MappingProxyType(configs),
        provider_tools=MappingProxyType(hosted),
        commands=MappingProxyType(known_commands),
        subagents=MappingProxyType(known_subagents),
        outputs=MappingProxyType(known_outputs),
        lifecycle=lifecycle,
        max_steps=max_steps,
        request=request,
        wrap_transport=wrap_transport,
        compatible=compatible,
        loop=LoopOptions(**loop),
        thread_titles=titles,
        reasoning_summary=summaries,
        capabilities=MappingProxyType(capabilities),
        specs=tuple([item.tool.spec(key) for key, item in configs.items()]),
    )


def _bag_faults(run: object, thread: object, message: object) -> list[Fault]:
    faults: list[Fault] = []
    for field, schemas in (("run_metadata", run), ("thread_metadata", thread)):
        if schemas is not None:
            faults += metadata_faults(schemas, field)
    if message is not None:
        faults += metadata_faults(message, "message_metadata", reserved=frozenset({"pai"}))
    return faults


def _raise_faults(
    subject: str,
    faults: list[Fault],
    strangers: list[Fault],
    metadata: list[Fault],
    clashes: list[Fault],
) -> None:
    """Raise one error with everything; it is of a special kind if all of it is of that kind."""
    everything = [*strangers, *faults, *metadata, *clashes]
    if not everything:
        return
    if len(everything) == len(strangers):
        raise UnknownOptionError(everything, subject=subject)
    if len(everything) == len(metadata):
        raise MetadataSchemaError(everything, subject=subject)
    if len(everything) == len(clashes):
        raise CapabilityBindingError(everything, subject=subject)
    raise DefinitionError(everything, subject=subject)
