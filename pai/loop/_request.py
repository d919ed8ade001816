"""The request of a step: what the model will be asked, hooks included."""

from __future__ import annotations

import inspect
from typing import Any

import attrs

from pai.contexts import UNSET, Respond, StepContext, StepPatch, merged
from pai.definition import ModelSelection
from pai.errors import InvalidInput
from pai.lifecycle import broken_hook
from pai.loop._agent import as_instructions
from pai.loop._episode import Episode, wrong_answer
from pai.loop._history import repaired
from pai.loop._prepare import behavior_input, subset_faults
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import ModelSettings, SystemMessage, ToolSpec

__all__ = ("build_request", "prepare_step")


async def select_model(episode: Episode) -> ModelSelection:
    """The episode's model: the patch's, else the agent's, resolved at most once (A-MODEL-4)."""
    if episode.selection is not None:
        return episode.selection
    patch = episode.patch
    if patch is not None and patch.model is not UNSET:
        selection = ModelSelection(patch.model)  # type: ignore[arg-type]  # it is set
    else:
        source = episode.agent.definition.model
        if not isinstance(source, (str, ModelSelection)) and not hasattr(source, "stream"):
            chosen: Any = source(behavior_input(episode))  # type: ignore[operator]  # a function
            source = await chosen if inspect.isawaitable(chosen) else chosen
        selection = source if isinstance(source, ModelSelection) else ModelSelection(source)  # type: ignore[arg-type]  # checked by resolve
    if patch is not None:
        if patch.model_settings is not UNSET:
            selection = attrs.evolve(selection, model_settings=patch.model_settings)
        if patch.provider_options is not UNSET:
            selection = attrs.evolve(selection, provider_options=patch.provider_options)
    settings = selection.model_settings
    if type(settings) is not ModelSettings:
        # Only what ModelSettings names goes on: nothing about transport (A-MODEL-2).
        allowed = {field.name: getattr(settings, field.name) for field in attrs.fields(ModelSettings)}
        selection = attrs.evolve(selection, model_settings=ModelSettings(**allowed))
    episode.selection = attrs.evolve(selection, model=episode.resolve(selection.model))
    return episode.selection


async def write_instructions(episode: Episode) -> tuple[SystemMessage, ...]:
    """The step's instructions: the episode's patch, else what the agent says now (A-INSTR-2)."""
    patch = episode.patch
    if patch is not None and patch.instructions is not UNSET:
        return as_instructions(patch.instructions)
    fixed = episode.agent.fixed_instructions
    if fixed is not None:
        return fixed
    built: Any = episode.agent.definition.instructions(behavior_input(episode))  # type: ignore[operator]  # not fixed: a function
    return as_instructions(await built if inspect.isawaitable(built) else built)


async def offered_tools(episode: Episode) -> tuple[ToolSpec, ...]:
    """The tools offered in this step: declared, enabled, and within the patch (A-TOOL-3)."""
    agent = episode.agent
    patch = episode.patch
    if not agent.gated and (patch is None or patch.tools is UNSET):
        return agent.definition.specs
    names = set(agent.definition.tools)
    if patch is not None and patch.tools is not UNSET:
        names &= set(patch.tools)  # type: ignore[arg-type]  # it is set
    for name, config in agent.gated.items():
        if name in names and not await is_enabled(episode, config.enabled):
            names.discard(name)
    return agent.specs(frozenset(names))


async def is_enabled(episode: Episode, enabled: Any) -> bool:
    """What ``enabled`` says now."""
    if isinstance(enabled, bool):
        return enabled
    answer: Any = enabled(behavior_input(episode))
    return bool(await answer if inspect.isawaitable(answer) else answer)


async def build_request(episode: Episode, *, model: ModelDriver | str | None = None) -> ModelRequest:
    """
    The request of a step, before its hooks.

    Args:
        episode: The episode.
        model: Taken as it is, so that no resolver is called; for answers without a model call.
    """
    patch = episode.patch
    messages = episode.messages
    if patch is not None and patch.messages is not UNSET:
        own = messages[episode.history_length :]
        messages = [*repaired(patch.messages), *own]  # type: ignore[arg-type]  # it is set
    provider_tools = episode.agent.provider_tools
    if patch is not None and patch.provider_tools is not UNSET:
        wanted = patch.provider_tools
        declared = episode.agent.definition.provider_tools
        provider_tools = tuple([declared[name] for name in wanted])  # type: ignore[union-attr]  # it is set
    if model is not None:
        return ModelRequest(model, tuple(messages), provider_tools=provider_tools)
    selection = await select_model(episode)
    return ModelRequest(
        selection.model,
        tuple(messages),
        await write_instructions(episode),
        await offered_tools(episode),
        provider_tools,
        None,
        selection.model_settings,
        selection.provider_options,
        metadata=episode.claimed.run.request.get("metadata") or {},  # type: ignore[arg-type]  # an object, or absent
    )


async def prepare_step(episode: Episode, step: StepContext[Any]) -> Respond | None:
    """Ask ``prepare_model_step`` of each plugin; each sees the request as it is by then."""
    for hook in episode.agent.chains.prepare_model_step:
        try:
            answer = hook.call(step)
            if hook.is_async or inspect.isawaitable(answer):
                answer = await answer
            if answer is None:
                continue
            if isinstance(answer, StepPatch):
                if faults := subset_faults(episode, answer):
                    raise InvalidInput(faults, subject="StepPatch")
                step.request = _patched(episode, step.request, answer)
                step.patch = merged(step.patch, answer)
                continue
        except Exception as error:
            raise broken_hook(hook, error) from error
        if isinstance(answer, Respond):
            return answer
        raise wrong_answer(hook, answer, "StepPatch or Respond")
    return None


def _patched(episode: Episode, request: ModelRequest, patch: StepPatch) -> ModelRequest:
    """The request with what the patch sets."""
    changes: dict[str, Any] = {}
    if patch.model is not UNSET:
        changes["model"] = episode.resolve(patch.model)  # type: ignore[arg-type]  # it is set
    if patch.model_settings is not UNSET:
        changes["settings"] = patch.model_settings
    if patch.provider_options is not UNSET:
        changes["provider_options"] = patch.provider_options
    if patch.instructions is not UNSET:
        changes["instructions"] = as_instructions(patch.instructions)
    if patch.messages is not UNSET:
        changes["messages"] = tuple(repaired(patch.messages))  # type: ignore[arg-type]  # it is set
    if patch.tools is not UNSET:
        offered = {spec.name for spec in request.tools}
        changes["tools"] = episode.agent.specs(frozenset(offered.intersection(patch.tools)))  # type: ignore[arg-type]  # it is set
    if patch.provider_tools is not UNSET:
        wanted = set(patch.provider_tools)  # type: ignore[arg-type]  # it is set
        declared = episode.agent.definition.provider_tools
        have = set(request.provider_tools)
        changes["provider_tools"] = tuple(
            [item for name, item in declared.items() if name in wanted and item in have]
        )
    return attrs.evolve(request, **changes) if changes else request

