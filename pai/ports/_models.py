"""A model that streams, and what it is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

import attrs

from pai.protocol import ModelSettings

if TYPE_CHECKING:
    from pai.protocol import (
        Message,
        PromptCache,
        ProviderOptions,
        ProviderTool,
        ReasoningLevel,
        Retry,
        StreamPart,
        SystemMessage,
        ToolChoice,
        ToolSpec,
        Transport,
    )
    from pai.schema import JsonObject, JsonValue

__all__ = ("ModelDriver", "ModelProfile", "ModelRequest")


@attrs.frozen
class ModelProfile:
    """
    What a driver's model can do.

    Args:
        combined_output: Structured output and tools go together in one request.
        output_source: Where the structured output comes: in the text, or as a value of its own, the
            *output* of the *StepFinish*.
        mid_conversation: Channels by which changes of tools or instructions can be told.
        reasoning: Levels of reasoning the model takes, weakest first; empty: not known, send as is.
        requires: Ids of capabilities the driver needs on the request.
    """

    combined_output: bool = False
    output_source: Literal["text", "event"] = "text"
    mid_conversation: tuple[str, ...] = ()
    reasoning: tuple[ReasoningLevel, ...] = ()
    requires: tuple[str, ...] = ()


@attrs.frozen(eq=False)
class ModelRequest:
    """
    One request to a model. It is immutable: change it with ``attrs.evolve``.

    Args:
        model: The driver, or a name that the loop resolves (``"openai:gpt-5.2"``).
        instructions: System messages, in order.
        messages: The conversation so far, oldest first; provider-valid (R-15).
        tools: The tools offered; the same tuple as long as the same tools are offered, so that a
            driver can keep its encoded form by identity.
        provider_tools: Tools that the provider runs.
        tool_choice: ``None`` leaves it to the provider.
        settings: Sampling.
        provider_options: Options by provider name.
        output: JSON Schema of the answer, where one is wanted.
        prompt_cache: ``None`` sends nothing.
        approvals: Decisions for drivers that ask for approvals themselves.
        capabilities: Bound capabilities by id, for drivers that require some.
        mid_conversation: What changed since the last call, for drivers with a channel for it.
        metadata: For observability only: never on the provider's wire (O-9).
        transport: How it travels; ``None`` leaves all of that to the driver.
        retry: How often the loop makes the call again that failed before its first part (O-17);
            ``None``: never. It is the loop's business: drivers leave it alone.
    """

    model: ModelDriver | str
    messages: Sequence[Message]
    instructions: tuple[SystemMessage, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    provider_tools: tuple[ProviderTool, ...] = ()
    tool_choice: ToolChoice | None = None
    settings: ModelSettings = ModelSettings()
    provider_options: ProviderOptions = attrs.field(factory=dict)
    output: JsonObject | None = None
    prompt_cache: PromptCache | None = None
    approvals: Mapping[str, JsonValue] = attrs.field(factory=dict)
    capabilities: Mapping[str, object] = attrs.field(factory=dict)
    mid_conversation: JsonObject | None = None
    metadata: Mapping[str, JsonValue] = attrs.field(factory=dict)
    transport: Transport | None = attrs.field(default=None, repr=False)
    retry: Retry | None = None


@runtime_checkable
class ModelDriver(Protocol):
    """
    A model that streams.

    Guarantees a driver gives:

    * The stream is well formed: an ``…End`` for each ``…Start``, deltas between them, one
      ``ToolCall`` for each ``ToolInputStart``, and one ``StepFinish`` as its last part. A stream of
      the provider that ends otherwise raises :class:`~pai.errors.IncompleteStream`.
    * Ids of texts and reasonings are unique within the stream, as are call ids.
    * Errors are :class:`~pai.errors.ModelError` with provider, code and status, without a header,
      a key or content. Cancellation passes through.
    * It retries nothing: the loop does, in one place (O-17).
    * Closing the iterator early frees the connection.
    * It runs on asyncio and on trio, or says at construction that it does not.
    """

    @property
    def provider(self) -> str:
        """The provider's name, by which it finds its entry in ``provider_options``."""

    @property
    def name(self) -> str:
        """The model's name at the provider."""

    @property
    def profile(self) -> ModelProfile:
        """What the model can do."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart | list[StreamPart]]:
        """
        Ask the model.

        Yields parts, or lists of parts: a list for each read of the socket costs least.
        """
