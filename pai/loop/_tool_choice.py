"""The tool choice of a step (O-21)."""

from __future__ import annotations

import attrs

from pai.loop._episode import Episode
from pai.ports import ModelRequest
from pai.protocol import FirstStep, ProviderTool, ToolChoice, ToolName, ToolSpec

__all__ = ("choice_of", "fitting")


def choice_of(
    episode: Episode, tools: tuple[ToolSpec, ...], hosted: tuple[ProviderTool, ...]
) -> ToolChoice | None:
    """
    What the step about to be made asks for.

    A choice that forces a call holds in the first step of a run alone: else the model could never
    just answer. The first step of a resumed run is not its first.
    """
    choice = episode.loop.tool_choice
    if choice is None:
        return None
    first = episode.draft.index == 0 and episode.claimed.run.episode == 1
    if isinstance(choice, FirstStep):
        choice = choice.choice if first else choice.then
    elif not first and (choice == "required" or isinstance(choice, ToolName)):
        return None
    return _offered(choice, tools, hosted)


def fitting(request: ModelRequest) -> ModelRequest:
    """The request, without a choice of what it does not offer."""
    choice = request.tool_choice
    if choice is None or _offered(choice, request.tools, request.provider_tools) is not None:
        return request
    return attrs.evolve(request, tool_choice=None)


def _offered(
    choice: ToolChoice | None, tools: tuple[ToolSpec, ...], hosted: tuple[ProviderTool, ...]
) -> ToolChoice | None:
    if choice is None or not (tools or hosted):
        return None
    if isinstance(choice, ToolName):
        names = [tool.name for tool in tools] + [tool.name for tool in hosted]
        return choice if choice.name in names else None
    return choice
