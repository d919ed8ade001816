"""
Names of OpenTelemetry's GenAI conventions, and those of our own: all of them stand here.

The conventions are at the stage *development*: names may change with each of their versions.
"""

from __future__ import annotations

from typing import Final

CONVENTIONS: Final = "0.1.0"
"""The version of *semantic-conventions-genai* that spans and attributes follow."""

# ---------------------------------------------------------------------------- operations

INVOKE_AGENT: Final = "invoke_agent"
CHAT: Final = "chat"
EXECUTE_TOOL: Final = "execute_tool"

# ---------------------------------------------------------------------------- attributes

OPERATION_NAME: Final = "gen_ai.operation.name"
PROVIDER_NAME: Final = "gen_ai.provider.name"
CONVERSATION_ID: Final = "gen_ai.conversation.id"
ERROR_TYPE: Final = "error.type"

AGENT_NAME: Final = "gen_ai.agent.name"
AGENT_VERSION: Final = "gen_ai.agent.version"

REQUEST_MODEL: Final = "gen_ai.request.model"
REQUEST_STREAM: Final = "gen_ai.request.stream"
REQUEST_REASONING_LEVEL: Final = "gen_ai.request.reasoning.level"
REQUEST_SETTINGS: Final = {
    "max_output_tokens": "gen_ai.request.max_tokens",
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "top_k": "gen_ai.request.top_k",
    "presence_penalty": "gen_ai.request.presence_penalty",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "stop_sequences": "gen_ai.request.stop_sequences",
    "seed": "gen_ai.request.seed",
}
"""By the names of ``ModelSettings``."""
OUTPUT_TYPE: Final = "gen_ai.output.type"

RESPONSE_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
RESPONSE_TIME_TO_FIRST_CHUNK: Final = "gen_ai.response.time_to_first_chunk"

USAGE_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
USAGE_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
USAGE_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
USAGE_CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"
USAGE_REASONING: Final = "gen_ai.usage.reasoning.output_tokens"
TOKEN_TYPE: Final = "gen_ai.token.type"  # noqa: S105  # a name

TOOL_NAME: Final = "gen_ai.tool.name"
TOOL_TYPE: Final = "gen_ai.tool.type"
TOOL_CALL_ID: Final = "gen_ai.tool.call.id"

# ---------------------------------------------------------------------------- content, on opt-in

SYSTEM_INSTRUCTIONS: Final = "gen_ai.system_instructions"
INPUT_MESSAGES: Final = "gen_ai.input.messages"
OUTPUT_MESSAGES: Final = "gen_ai.output.messages"
TOOL_CALL_ARGUMENTS: Final = "gen_ai.tool.call.arguments"
TOOL_CALL_RESULT: Final = "gen_ai.tool.call.result"

# ---------------------------------------------------------------------------- our own

RUN_ID: Final = "pai.run.id"
RUN_OPERATION: Final = "pai.run.operation"
RUN_ATTEMPT: Final = "pai.run.attempt"
RUN_EPISODE: Final = "pai.run.episode"
RUN_STATUS: Final = "pai.run.status"
RUN_STOP_REASON: Final = "pai.run.stop_reason"
STEP_INDEX: Final = "pai.step.index"
TOOL_OUTCOME: Final = "pai.tool.outcome"

# ---------------------------------------------------------------------------- metrics

# The three of the client have the names that dashboards read: those that the conventions had up to
# version 1.41, before they moved into a repository of their own.
TOKEN_USAGE: Final = "gen_ai.client.token.usage"  # noqa: S105  # a name
OPERATION_DURATION: Final = "gen_ai.client.operation.duration"
TIME_TO_FIRST_CHUNK: Final = "gen_ai.client.operation.time_to_first_chunk"
INVOKE_AGENT_DURATION: Final = "gen_ai.invoke_agent.duration"
EXECUTE_TOOL_DURATION: Final = "gen_ai.execute_tool.duration"

TOKEN_BOUNDARIES: Final = tuple([4**power for power in range(14)])
SECOND_BOUNDARIES: Final = tuple([0.01 * 2**power for power in range(14)])
AGENT_BOUNDARIES: Final = tuple([0.1 * 2**power for power in range(13)])
