"""What hooks are handed and may return: contexts, patches, decisions."""

from pai.contexts._call import ToolCallContext, ToolResultContext
from pai.contexts._decisions import (
    Ask,
    DenyCall,
    ReplaceInput,
    ReplaceValue,
    RequireApproval,
    Respond,
    SkipCall,
    ToolFailure,
    ToolOutput,
)
from pai.contexts._patches import UNSET, RunPatch, StepPatch, Unset, merged
from pai.contexts._read_only import renew
from pai.contexts._records import Records
from pai.contexts._run import AgentRef, RunContext, RunHost, SubagentRef
from pai.contexts._step import StepContext
from pai.contexts._told import AsideItem, RunOutcome, StepOutcome
from pai.definition import ThreadRef

__all__ = (
    "UNSET",
    "AgentRef",
    "AsideItem",
    "Ask",
    "DenyCall",
    "Records",
    "ReplaceInput",
    "ReplaceValue",
    "RequireApproval",
    "Respond",
    "RunContext",
    "RunHost",
    "RunOutcome",
    "RunPatch",
    "SkipCall",
    "StepContext",
    "StepOutcome",
    "StepPatch",
    "SubagentRef",
    "ThreadRef",
    "ToolCallContext",
    "ToolFailure",
    "ToolOutput",
    "ToolResultContext",
    "Unset",
    "merged",
    "renew",
)
