"""
pai: agents whose lifecycle is open to plugins, on durable runs.

This is the facade: every public name, loaded when it is first used. Nothing inside imports it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai.contexts import (
        UNSET,
        AgentRef,
        AsideItem,
        Ask,
        DenyCall,
        Records,
        ReplaceInput,
        ReplaceValue,
        RequireApproval,
        Respond,
        RunContext,
        RunOutcome,
        RunPatch,
        SkipCall,
        StepContext,
        StepOutcome,
        StepPatch,
        SubagentRef,
        ThreadRef,
        ToolCallContext,
        ToolFailure,
        ToolOutput,
        ToolResultContext,
    )
    from pai.definition import (
        NOT_REPAIRED,
        AgentBehaviorInput,
        AgentDefinition,
        AgentToolConfig,
        Capability,
        ClientTool,
        CommandContext,
        ContextInput,
        LazyTools,
        LoopState,
        MetadataPatch,
        MetadataSchemas,
        ModelSelection,
        ObservedOutput,
        Price,
        ReasoningSummaryConfig,
        ReasoningSummaryGeneratorInput,
        RequestOptions,
        RunOptions,
        Signal,
        Subagent,
        SubagentLimits,
        SubagentTask,
        Suspend,
        ThreadTitleConfig,
        ThreadTitleGeneratorInput,
        TitleRefresh,
        ToolContext,
        ToolDefinition,
        ToolRepair,
        budget,
        define_agent,
        define_capability,
        define_command,
        define_tool,
        step_limit,
        tool,
        until_finish_reason,
    )
    from pai.errors import (
        AnswerConflict,
        CallsPending,
        CapabilityBindingError,
        CommandFailed,
        ContextOverflow,
        DefinitionError,
        FatalToolError,
        Fault,
        IncompleteStream,
        InvalidInput,
        LeaseLost,
        MetadataSchemaError,
        MigrationNeeded,
        MissingCredential,
        ModelError,
        ModelTimeout,
        PaiError,
        PluginError,
        RateLimited,
        RunFailed,
        StoreError,
        StructuredOutputError,
        ThreadBusy,
        ThreadNotFound,
        ToolError,
        ToolRetry,
        UnknownOptionError,
    )
    from pai.hookspecs import (
        hookimpl,
    )
    from pai.lifecycle import (
        Lifecycle,
        PluginReport,
        compose_lifecycle,
    )
    from pai.loop import (
        limits,
    )
    from pai.ports import (
        ModelDriver,
        ModelProfile,
        ModelRequest,
    )
    from pai.protocol import (
        Answer,
        Approve,
        Cancel,
        Data,
        DataPart,
        Deny,
        Diagnostic,
        Event,
        File,
        FilePart,
        FirstStep,
        Message,
        MessagePart,
        MessageView,
        Metadata,
        ModelSettings,
        OutputPart,
        PendingCall,
        PromptCache,
        Provide,
        ProviderTool,
        Reasoning,
        ReasoningDelta,
        ReasoningEnd,
        ReasoningPart,
        ReasoningStart,
        Retry,
        RunView,
        Source,
        SourcePart,
        StepFinish,
        StepReset,
        StreamPart,
        SystemMessage,
        TextDelta,
        TextEnd,
        TextPart,
        TextStart,
        ThreadState,
        ThreadSummary,
        ThreadView,
        ToolCall,
        ToolCallPart,
        ToolInputDelta,
        ToolInputStart,
        ToolName,
        ToolSpec,
        Usage,
    )
    from pai.runtime import (
        Limits,
        Page,
        Pai,
        RunHandle,
        RunResult,
        ThreadHandle,
        create_agent_runtime,
        create_pai,
        run_once,
        run_once_sync,
    )

__all__ = (
    "NOT_REPAIRED",
    "UNSET",
    "AgentBehaviorInput",
    "AgentDefinition",
    "AgentRef",
    "AgentToolConfig",
    "Answer",
    "AnswerConflict",
    "Approve",
    "AsideItem",
    "Ask",
    "CallsPending",
    "Cancel",
    "Capability",
    "CapabilityBindingError",
    "ClientTool",
    "CommandContext",
    "CommandFailed",
    "ContextInput",
    "ContextOverflow",
    "Data",
    "DataPart",
    "DefinitionError",
    "Deny",
    "DenyCall",
    "Diagnostic",
    "Event",
    "FatalToolError",
    "Fault",
    "File",
    "FilePart",
    "FirstStep",
    "IncompleteStream",
    "InvalidInput",
    "LazyTools",
    "LeaseLost",
    "Lifecycle",
    "Limits",
    "LoopState",
    "Message",
    "MessagePart",
    "MessageView",
    "Metadata",
    "MetadataPatch",
    "MetadataSchemaError",
    "MetadataSchemas",
    "MigrationNeeded",
    "MissingCredential",
    "ModelDriver",
    "ModelError",
    "ModelProfile",
    "ModelRequest",
    "ModelSelection",
    "ModelSettings",
    "ModelTimeout",
    "ObservedOutput",
    "OutputPart",
    "Page",
    "Pai",
    "PaiError",
    "PendingCall",
    "PluginError",
    "PluginReport",
    "Price",
    "PromptCache",
    "Provide",
    "ProviderTool",
    "RateLimited",
    "Reasoning",
    "ReasoningDelta",
    "ReasoningEnd",
    "ReasoningPart",
    "ReasoningStart",
    "ReasoningSummaryConfig",
    "ReasoningSummaryGeneratorInput",
    "Records",
    "ReplaceInput",
    "ReplaceValue",
    "RequestOptions",
    "RequireApproval",
    "Respond",
    "Retry",
    "RunContext",
    "RunFailed",
    "RunHandle",
    "RunOptions",
    "RunOutcome",
    "RunPatch",
    "RunResult",
    "RunView",
    "Signal",
    "SkipCall",
    "Source",
    "SourcePart",
    "StepContext",
    "StepFinish",
    "StepOutcome",
    "StepPatch",
    "StepReset",
    "StoreError",
    "StreamPart",
    "StructuredOutputError",
    "Subagent",
    "SubagentLimits",
    "SubagentRef",
    "SubagentTask",
    "Suspend",
    "SystemMessage",
    "TextDelta",
    "TextEnd",
    "TextPart",
    "TextStart",
    "ThreadBusy",
    "ThreadHandle",
    "ThreadNotFound",
    "ThreadRef",
    "ThreadState",
    "ThreadSummary",
    "ThreadTitleConfig",
    "ThreadTitleGeneratorInput",
    "ThreadView",
    "TitleRefresh",
    "ToolCall",
    "ToolCallContext",
    "ToolCallPart",
    "ToolContext",
    "ToolDefinition",
    "ToolError",
    "ToolFailure",
    "ToolInputDelta",
    "ToolInputStart",
    "ToolName",
    "ToolOutput",
    "ToolRepair",
    "ToolResultContext",
    "ToolRetry",
    "ToolSpec",
    "UnknownOptionError",
    "Usage",
    "budget",
    "compose_lifecycle",
    "create_agent_runtime",
    "create_pai",
    "define_agent",
    "define_capability",
    "define_command",
    "define_tool",
    "hookimpl",
    "limits",
    "run_once",
    "run_once_sync",
    "step_limit",
    "tool",
    "until_finish_reason",
)

_ROOMS = {
    "pai.contexts": """
        AgentRef AsideItem Ask DenyCall Records ReplaceInput ReplaceValue RequireApproval
        Respond RunContext RunOutcome RunPatch SkipCall StepContext StepOutcome StepPatch
        SubagentRef ThreadRef ToolCallContext ToolFailure ToolOutput ToolResultContext UNSET
    """,
    "pai.definition": """
        AgentBehaviorInput AgentDefinition AgentToolConfig Capability ClientTool CommandContext
        ContextInput LazyTools LoopState MetadataPatch MetadataSchemas ModelSelection
        NOT_REPAIRED ObservedOutput Price ReasoningSummaryConfig ReasoningSummaryGeneratorInput
        RequestOptions RunOptions Signal Subagent SubagentLimits SubagentTask Suspend
        ThreadTitleConfig ThreadTitleGeneratorInput TitleRefresh ToolContext ToolDefinition
        ToolRepair budget define_agent define_capability define_command define_tool step_limit
        tool until_finish_reason
    """,
    "pai.errors": """
        AnswerConflict CallsPending CapabilityBindingError CommandFailed ContextOverflow
        DefinitionError FatalToolError Fault IncompleteStream InvalidInput LeaseLost
        MetadataSchemaError MigrationNeeded MissingCredential ModelError ModelTimeout PaiError
        PluginError RateLimited RunFailed StoreError StructuredOutputError ThreadBusy
        ThreadNotFound ToolError ToolRetry UnknownOptionError
    """,
    "pai.hookspecs": "hookimpl",
    "pai.lifecycle": "Lifecycle PluginReport compose_lifecycle",
    "pai.loop": "limits",
    "pai.ports": "ModelDriver ModelProfile ModelRequest",
    "pai.protocol": """
        Answer Approve Cancel Data DataPart Deny Diagnostic Event File FilePart FirstStep
        Message MessagePart MessageView Metadata ModelSettings OutputPart PendingCall
        PromptCache Provide ProviderTool Reasoning ReasoningDelta ReasoningEnd ReasoningPart
        ReasoningStart Retry RunView Source SourcePart StepFinish StepReset StreamPart
        SystemMessage TextDelta TextEnd TextPart TextStart ThreadState ThreadSummary ThreadView
        ToolCall ToolCallPart ToolInputDelta ToolInputStart ToolName ToolSpec Usage
    """,
    "pai.runtime": """
        Limits Page Pai RunHandle RunResult ThreadHandle create_agent_runtime create_pai
        run_once run_once_sync
    """,
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> object:
    room = _ROOM_OF.get(name)
    if room is None:
        if name == "__version__":
            from importlib.metadata import version

            return version("pai-core")
        raise AttributeError(f"module 'pai' has no attribute {name!r}")
    from importlib import import_module

    value: object = getattr(import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
