"""What a span tells of tokens."""

from __future__ import annotations

from pai import Usage
from pai_otel import genai_names as names
from pai_otel._span import Attributes

__all__ = ("usage_attributes",)


def usage_attributes(usage: Usage) -> Attributes:
    """Tokens read and written; the parts of them that are there."""
    attributes: Attributes = {
        names.USAGE_INPUT_TOKENS: usage.input_tokens,
        names.USAGE_OUTPUT_TOKENS: usage.output_tokens,
    }
    for name, tokens in (
        (names.USAGE_CACHE_READ, usage.cached_input_tokens),
        (names.USAGE_CACHE_WRITE, usage.cache_write_tokens),
        (names.USAGE_REASONING, usage.reasoning_tokens),
    ):
        if tokens:
            attributes[name] = tokens
    return attributes
