"""What hooks are handed and may return: contexts, patches, decisions."""

from pai.contexts._decisions import (
    DenyCall,
    ReplaceInput,
    ReplaceValue,
    Respond,
    SkipCall,
    ToolFailure,
    ToolOutput,
)
from pai.contexts._patches import UNSET, RunPatch, StepPatch, Unset, merged
from pai.contexts._run import (
    AgentRef,
    AsideItem,
    RunContext,
    RunHost,
    RunOutcome,
    StepContext,
    StepOutcome,
    ThreadRef,
    ToolCallContext,
    ToolResultContext,
)

__all__ = (
    "AgentRef",
    "AsideItem",
    "DenyCall",
    "ReplaceInput",
    "ReplaceValue",
    "Respond",
    "RunContext",
    "RunHost",
    "RunOutcome",
    "RunPatch",
    "SkipCall",
    "StepContext",
    "StepOutcome",
    "StepPatch",
    "ThreadRef",
    "ToolCallContext",
    "ToolFailure",
    "ToolOutput",
    "ToolResultContext",
    "UNSET",
    "Unset",
    "merged",
)
