"""What is known of models by their names, and how a wish for reasoning is fitted to it (O-13)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pai.protocol import ReasoningLevel

__all__ = ("clamp", "reasoning_levels", "reasons", "version")

_ORDER: tuple[ReasoningLevel, ...] = ("none", "minimal", "low", "medium", "high", "xhigh")

_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?")

_LEVELS: tuple[tuple[str, tuple[ReasoningLevel, ...]], ...] = (
    (r"gpt-5(\.\d+)?-chat", ("none",)),
    (r"gpt-5-pro", ("high",)),
    (r"gpt-5\.\d+-pro", ("medium", "high", "xhigh")),
    (r"gpt-5\.1-codex-max", ("low", "medium", "high", "xhigh")),
    (r"gpt-5(\.1)?-codex", ("low", "medium", "high")),
    (r"gpt-5\.\d+-codex", ("low", "medium", "high", "xhigh")),
    (r"gpt-5\.1", ("none", "low", "medium", "high")),
    (r"gpt-5\.\d+", ("none", "low", "medium", "high", "xhigh")),
    (r"gpt-5(?!\d)", ("minimal", "low", "medium", "high")),
    (r"gpt-oss", ("low", "medium", "high")),
    (r"o\d", ("low", "medium", "high")),
    (r"gpt-(3|4)", ("none",)),
    (r"chatgpt-4o", ("none",)),
)
"""The first pattern that the name begins with counts; a model that can't reason has ``none`` alone."""


def _bare(model: str) -> str:
    """Gateways put the maker before the name, fine-tunes a prefix."""
    return model.rpartition("/")[2].removeprefix("ft:").lower()


@lru_cache(maxsize=256)
def reasoning_levels(model: str) -> tuple[ReasoningLevel, ...]:
    """The levels a model takes, weakest first; empty where nothing is known of it."""
    name = _bare(model)
    for pattern, levels in _LEVELS:
        if re.match(pattern, name):
            return levels
    return ()


def reasons(levels: Sequence[ReasoningLevel]) -> bool:
    """Can the model reason, as far as is known?"""
    return tuple(levels) != ("none",)


def version(model: str) -> tuple[int, int] | None:
    """``gpt-5.2-mini`` → ``(5, 2)``; ``None`` for a name of another kind."""
    found = _VERSION.match(_bare(model))
    return (int(found[1]), int(found[2] or 0)) if found else None


def clamp(level: ReasoningLevel, levels: Sequence[ReasoningLevel]) -> ReasoningLevel:
    """
    The level to ask for: *level* itself, else the nearest above, else the nearest below.

    Args:
        level: The wish.
        levels: What the model takes; empty: not known, so the wish goes as it is.
    """
    if not levels or level in levels:
        return level
    wish = _ORDER.index(level)
    places = sorted(_ORDER.index(each) for each in levels)
    above = [place for place in places if place > wish]
    return _ORDER[above[0] if above else places[-1]]
