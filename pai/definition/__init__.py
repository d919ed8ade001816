"""What an application declares, and what its functions are handed."""

from pai.definition._agent import AgentDefinition, define_agent
from pai.definition._behavior import (
    AgentBehaviorInput,
    ContextInput,
    ObservedCall,
    ObservedOutput,
    ObservedTool,
)
from pai.definition._capabilities import Capability, define_capability
from pai.definition._client_tool import (
    ClientTool,
    client_tools_from_json,
    client_tools_to_json,
)
from pai.definition._commands import (
    CommandContext,
    CommandDefinition,
    CommandHost,
    define_command,
)
from pai.definition._instructions import Instructions
from pai.definition._loop_options import (
    DISCOVERY_TOOL,
    LazyTools,
    LoopOptions,
    as_prompt_cache,
    choice_names,
    option_faults,
)
from pai.definition._metadata import (
    EMPTY_METADATA,
    MetadataMerge,
    MetadataPatch,
    MetadataSchemas,
)
from pai.definition._outputs import Output, as_output, output_faults
from pai.definition._repair import NOT_REPAIRED, NotRepaired, RepairToolInput, ToolRepair
from pai.definition._request_options import RequestOptions
from pai.definition._run_options import RunOptions, run_options
from pai.definition._selection import ModelSelection, ModelSource
from pai.definition._side_text import (
    ReasoningSummaryConfig,
    ReasoningSummaryGeneratorInput,
    ThreadTitleConfig,
    ThreadTitleGeneratorInput,
    TitleRefresh,
)
from pai.definition._signal import Signal
from pai.definition._stop import (
    AllOf,
    AnyOf,
    LoopState,
    Price,
    StopStrategy,
    StopWhen,
    budget,
    step_limit,
    until_finish_reason,
)
from pai.definition._stored_metadata import ReadMetadata, StoredMetadata
from pai.definition._subagent import DefinedAgent, Subagent, SubagentLimits, SubagentTask, task_of
from pai.definition._suspend import Suspend
from pai.definition._thread_ref import ThreadRef
from pai.definition._tool_context import Capabilities, ToolContext, ToolHost
from pai.definition._tool_makers import define_tool, tool
from pai.definition._tools import AgentToolConfig, ToolDefinition

__all__ = (
    "DISCOVERY_TOOL",
    "EMPTY_METADATA",
    "NOT_REPAIRED",
    "AgentBehaviorInput",
    "AgentDefinition",
    "AgentToolConfig",
    "AllOf",
    "AnyOf",
    "Capabilities",
    "Capability",
    "ClientTool",
    "CommandContext",
    "CommandDefinition",
    "CommandHost",
    "ContextInput",
    "DefinedAgent",
    "Instructions",
    "LazyTools",
    "LoopOptions",
    "LoopState",
    "MetadataMerge",
    "MetadataPatch",
    "MetadataSchemas",
    "ModelSelection",
    "ModelSource",
    "NotRepaired",
    "ObservedCall",
    "ObservedOutput",
    "ObservedTool",
    "Output",
    "Price",
    "ReadMetadata",
    "ReasoningSummaryConfig",
    "ReasoningSummaryGeneratorInput",
    "RepairToolInput",
    "RequestOptions",
    "RunOptions",
    "Signal",
    "StopStrategy",
    "StopWhen",
    "StoredMetadata",
    "Subagent",
    "SubagentLimits",
    "SubagentTask",
    "Suspend",
    "ThreadRef",
    "ThreadTitleConfig",
    "ThreadTitleGeneratorInput",
    "TitleRefresh",
    "ToolContext",
    "ToolDefinition",
    "ToolHost",
    "ToolRepair",
    "as_output",
    "as_prompt_cache",
    "budget",
    "choice_names",
    "client_tools_from_json",
    "client_tools_to_json",
    "define_agent",
    "define_capability",
    "define_command",
    "define_tool",
    "option_faults",
    "output_faults",
    "run_options",
    "step_limit",
    "task_of",
    "tool",
    "until_finish_reason",
)
