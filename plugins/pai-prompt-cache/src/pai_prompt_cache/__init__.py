"""Prompt caching: how long, under which key, and what broke the prefix."""

from pai_prompt_cache._fnv import fnv1a
from pai_prompt_cache.plugin import Options, PromptCaching, prompt_cache

__all__ = ("Options", "PromptCaching", "fnv1a", "prompt_cache")
