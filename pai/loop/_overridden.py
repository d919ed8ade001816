"""Which of a request's options the provider's own ones win over (O-25)."""

from __future__ import annotations

from typing import Final

from pai.ports import ModelRequest

__all__ = ("overridden",)

_WINNERS: Final = {
    "tool_choice": ("tool_choice",),
    "reasoning": ("reasoning", "reasoning_effort"),
    "prompt_cache": ("prompt_cache_key", "prompt_cache_retention"),
}
"""Our option, and the names that providers have for it."""


def overridden(request: ModelRequest, provider: str) -> list[str] | None:
    """
    The options that ``provider_options`` win over in this request; ``None``: there are none.

    Args:
        request: What the model is asked.
        provider: The driver's: only its own entry counts (A-MODEL-3).
    """
    own = request.provider_options.get(provider)
    if not own:
        return None
    wishes = {
        "tool_choice": request.tool_choice,
        "reasoning": request.settings.reasoning,
        "prompt_cache": request.prompt_cache,
    }
    found = [
        name
        for name, wish in wishes.items()
        if wish is not None and any(key in own for key in _WINNERS[name])
    ]
    return found or None
