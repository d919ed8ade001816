"""What a model call used."""

from __future__ import annotations

import attrs

__all__ = ("Usage",)


@attrs.frozen
class Usage:
    """
    Tokens of one model call, or summed over several; a provider's silence counts as 0.

    Args:
        input_tokens: Tokens read, cached ones included.
        output_tokens: Tokens written, reasoning included.
        total_tokens: The provider's own total; the sum of both where it gave none.
        reasoning_tokens: The part of *output_tokens* that was reasoning.
        cached_input_tokens: The part of *input_tokens* served from a cache.
        cache_write_tokens: The part of *input_tokens* written to a cache.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0
    reasoning_tokens: int = 0
    cached_input_tokens: int = 0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.total_tokens + other.total_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
        )
