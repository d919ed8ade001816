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
from pai.definition._commands import (
    CommandContext,
    CommandDefinition,
    CommandHost,
    define_command,
)
from pai.definition._instructions import Instructions
from pai.definition._metadata import EMPTY_METADATA, MetadataPatch, MetadataSchemas
from pai.definition._request_options import RequestOptions
from pai.definition._selection import ModelSelection, ModelSource
from pai.definition._signal import Signal
from pai.definition._tool_context import Capabilities, ToolContext, ToolHost
from pai.definition._tool_makers import define_tool, tool
from pai.definition._tools import AgentToolConfig, ToolDefinition

__all__ = (
    "EMPTY_METADATA",
    "AgentBehaviorInput",
    "AgentDefinition",
    "AgentToolConfig",
    "Capabilities",
    "Capability",
    "CommandContext",
    "CommandDefinition",
    "CommandHost",
    "ContextInput",
    "Instructions",
    "MetadataPatch",
    "MetadataSchemas",
    "ModelSelection",
    "ModelSource",
    "ObservedCall",
    "ObservedOutput",
    "ObservedTool",
    "RequestOptions",
    "Signal",
    "ToolContext",
    "ToolDefinition",
    "ToolHost",
    "define_agent",
    "define_capability",
    "define_command",
    "define_tool",
    "tool",
)
