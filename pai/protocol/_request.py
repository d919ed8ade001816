"""The vocabulary of a request to a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Never

import attrs

from pai.schema import JsonObject, JsonValue

__all__ = (
    "FirstStep",
    "ModelSettings",
    "PromptCache",
    "ProviderOptions",
    "ProviderTool",
    "Reasoning",
    "ReasoningLevel",
    "Retry",
    "SystemMessage",
    "ToolChoice",
    "ToolName",
    "ToolSpec",
    "Transport",
    "WrapTransport",
)

ProviderOptions = Mapping[str, Mapping[str, JsonValue]]
"""Options by provider name; each driver reads its own entry (A-MODEL-3)."""

ReasoningLevel = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


@attrs.frozen
class Reasoning:
    """
    How much a model should think.

    Args:
        level: The level; clamped to what the model offers (O-13).
        summary: Whether the provider should show a summary of it.
        budget_tokens: An upper bound, where the provider takes one.
    """

    level: ReasoningLevel
    summary: bool = True
    budget_tokens: int | None = None


@attrs.frozen
class PromptCache:
    """
    A wish for the provider's prompt cache.

    Args:
        retention: How long the prefix should be kept.
        key: What requests with a common prefix have in common.
    """

    retention: Literal["none", "short", "long"]
    key: str | None = None


@attrs.frozen
class ModelSettings:
    """
    How a model should sample; nothing about transport can pass through here (A-MODEL-2).

    ``None`` leaves a setting to the provider.
    """

    max_output_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    stop_sequences: Sequence[str] | None = None
    seed: int | None = None
    reasoning: ReasoningLevel | Reasoning | None = None


@attrs.frozen
class SystemMessage:
    """One message of instructions, with options for the provider it is meant for (A-INSTR-1)."""

    content: str
    provider_options: ProviderOptions = attrs.field(factory=dict)


@attrs.frozen
class ToolName:
    """A tool choice: this tool."""

    name: str


ToolChoice = Literal["auto", "none", "required"] | ToolName


@attrs.frozen
class FirstStep:
    """
    A tool choice for the first step of a run.

    Args:
        choice: What holds in the first step.
        then: What holds in the steps after it; ``None`` leaves it to the provider. With
            ``"required"`` or a name here the model can never just answer: only a limit ends the run.
    """

    choice: ToolChoice
    then: ToolChoice | None = None


@attrs.frozen
class Retry:
    """
    How often a model is asked again that failed before it said anything (O-17).

    Args:
        max_retries: Further attempts for each model call.
        max_wait: Seconds that one wait may take; a provider that asks for more is not waited for.
    """

    max_retries: int = 2
    max_wait: float = 60.0


@attrs.frozen(eq=False)
class ToolSpec:
    """
    A tool as a model is told of it.

    Args:
        name: The name the model uses.
        description: What it is for.
        input_schema: JSON Schema of its input.
        strict_schema: The same in OpenAI's strict form, where it has one.
    """

    name: str
    description: str
    input_schema: JsonObject
    strict_schema: JsonObject | None = None


@attrs.frozen(eq=False)
class ProviderTool:
    """
    A tool that the provider runs (A-TOOL-7).

    Args:
        provider: The provider it belongs to; other drivers leave it out.
        name: The name the provider documents, e.g. ``"web_search"``.
        options: The rest of its declaration, word for word.
    """

    provider: str
    name: str
    options: JsonObject = attrs.field(factory=dict)


WrapTransport = Callable[[Never], object]
"""Takes the transport of a driver's HTTP client, and gives one that goes through it (O-24)."""


@attrs.frozen(eq=False)
class Transport:
    """
    How a request travels. Nothing of it is stored, shown, logged or part of an error (O-15).

    Args:
        headers: HTTP headers, on top of the driver's own.
        timeout: Seconds to wait for the connection, and for each piece of the answer.
        wrappers: What goes around the driver's transport, outermost first. A driver that can't
            do that refuses the request.
    """

    headers: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    timeout: float | None = None
    wrappers: tuple[WrapTransport, ...] = attrs.field(default=(), repr=False)
