"""How often tools may be called: plain functions, to be tested without a run."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from pai import Fault


def limit_faults(calls: Mapping[str, int]) -> list[Fault]:
    """What is wrong with limits."""
    return [
        Fault(f"calls.{tool}", "expected 0 or more") for tool, limit in calls.items() if limit < 0
    ]


def is_spent(tool: str, limits: Mapping[str, int], made: Mapping[str, int]) -> bool:
    """Whether a tool may not be called again."""
    return tool in limits and made.get(tool, 0) >= limits[tool]


def still_offered(
    tools: Collection[str], limits: Mapping[str, int], made: Mapping[str, int]
) -> list[str] | None:
    """The tools that may still be called; ``None`` if that is all of them."""
    left = [tool for tool in tools if not is_spent(tool, limits, made)]
    return None if len(left) == len(tools) else left
