"""The request of a step: what the model will be asked, hooks included."""

from __future__ import annotations

import inspect
from collections.abc import Collection
from operator import attrgetter
from typing import Any

import attrs

from pai.contexts import UNSET, Ask, Respond, StepContext, StepPatch, Unset, renew
from pai.definition import DISCOVERY_TOOL, ModelSelection, as_output
from pai.lifecycle import next_answer, wrong_answer
from pai.loop._agent import as_instructions
from pai.loop._episode import Episode
from pai.loop._history import repaired
from pai.loop._lazy import undiscovered, with_discovery
from pai.loop._output import output_wish, schema_for
from pai.loop._prepare import behavior_input, take_patch
from pai.loop._tool_choice import choice_of, fitting
from pai.loop._transport import find_transport, wrapped
from pai.loop._wait import Wait, asked
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import SystemMessage, ToolSpec

__all__ = ("available_tools", "build_request", "prepare_step")


async def select_model(episode: Episode) -> ModelSelection:
    """The episode's model: the patch's, else the agent's, resolved at most once (A-MODEL-4)."""
    if episode.selection is not None:
        return episode.selection
    patch, options = episode.patch, episode.options
    source: Any = episode.agent.definition.model
    if patch is not None and not isinstance(patch.model, Unset):
        # A function is not asked; what a selection says besides the model stays.
        kept = source if isinstance(source, ModelSelection) else ModelSelection(patch.model)
        selection = attrs.evolve(kept, model=patch.model)
    elif options is not None and options.model is not None:
        kept = source if isinstance(source, ModelSelection) else ModelSelection(options.model)
        selection = attrs.evolve(kept, model=options.model)
    else:
        if not isinstance(source, (str, ModelSelection)) and not hasattr(source, "stream"):
            source = source(behavior_input(episode))
            if inspect.isawaitable(source):
                source = await source
        selection = source if isinstance(source, ModelSelection) else ModelSelection(source)
    if options is not None:
        if options.model_settings is not None:
            selection = attrs.evolve(selection, model_settings=options.model_settings)
        if options.provider_options is not None:
            selection = attrs.evolve(selection, provider_options=options.provider_options)
    if patch is not None:
        if not isinstance(patch.model_settings, Unset):
            selection = attrs.evolve(selection, model_settings=patch.model_settings)
        if not isinstance(patch.provider_options, Unset):
            selection = attrs.evolve(selection, provider_options=patch.provider_options)
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
    agent, patch = episode.agent, episode.patch
    if not agent.gated and not agent.lazy and (patch is None or patch.tools is UNSET):
        own = agent.definition.tools is episode.tools
        return agent.definition.specs if own else episode.specs(episode.tools)
    names = frozenset(await available_tools(episode))
    if not agent.lazy:
        return episode.specs(names)
    hidden = undiscovered(episode, names)
    return _discoverable(episode, names - hidden, hidden)


async def available_tools(episode: Episode) -> set[str]:
    """Names of the tools that can be used now, lazy ones that are not discovered included."""
    agent, patch = episode.agent, episode.patch
    names = set(episode.tools)
    if patch is not None and patch.tools is not UNSET:
        names &= set(patch.tools)  # type: ignore[arg-type]  # it is set
    for name, config in agent.gated.items():
        if name in names and not await is_enabled(episode, config.enabled):
            names.discard(name)
    return names


async def is_enabled(episode: Episode, enabled: Any) -> bool:
    """What ``enabled`` says now."""
    if isinstance(enabled, bool):
        return enabled
    answer: Any = enabled(behavior_input(episode))
    return bool(await answer if inspect.isawaitable(answer) else answer)


async def build_request(
    episode: Episode, *, model: ModelDriver | str | None = None
) -> ModelRequest:
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
    instructions = await write_instructions(episode)
    tools = await offered_tools(episode)
    request = ModelRequest(
        selection.model,
        tuple(messages),
        instructions,
        tools,
        provider_tools,
        choice_of(episode, tools, provider_tools),
        selection.model_settings,
        selection.provider_options,
        prompt_cache=episode.loop.prompt_cache,
        capabilities=episode.agent.bindings,
        metadata=episode.claimed.run.request.get("metadata") or {},  # type: ignore[arg-type]  # an object, or absent
        transport=await find_transport(episode),
        retry=episode.loop.retry,
    )
    episode.output = output_wish(episode)
    if episode.output is not None:
        request = attrs.evolve(request, output=schema_for(episode, request))
    return request


async def prepare_step(episode: Episode, step: StepContext[Any]) -> Respond | Wait | None:
    """
    Ask ``prepare_model_step`` of each plugin; each sees the request as it is by then.

    Returns:
        What one answered in place of the model, or the question that one wants answered first.
    """
    chain, at = episode.agent.chains.prepare_model_step, 0
    while found := await next_answer(chain, at, step):
        at, hook, answer = found
        if isinstance(answer, Respond):
            return answer
        if isinstance(answer, Ask):
            if (wait := asked(episode, hook, answer)) is not None:
                return wait
            continue
        if not isinstance(answer, StepPatch):
            raise wrong_answer(hook, answer, "None, StepPatch, Respond or Ask")
        take_patch(episode, hook, answer)
        renew(step, request=_patched(episode, step.request, answer))
    if step.request.tool_choice is not None:
        renew(step, request=fitting(step.request))
    return None


def _subset(
    episode: Episode, offered: tuple[ToolSpec, ...], wanted: Collection[str]
) -> tuple[ToolSpec, ...]:
    """Those of the offered tools that a patch wants; lazy ones can still be discovered."""
    names = frozenset([spec.name for spec in offered])
    kept = names.intersection(wanted)
    if DISCOVERY_TOOL not in names:
        return episode.specs(kept)
    return _discoverable(episode, kept, undiscovered(episode, wanted))


def _discoverable(
    episode: Episode, names: frozenset[str], hidden: frozenset[str]
) -> tuple[ToolSpec, ...]:
    """The specs of tools, with the one that discovers what is hidden."""
    own = names.intersection(episode.agent.definition.tools)
    specs = with_discovery(episode.agent, own, hidden, episode.loop.lazy_tools)
    return specs if len(own) == len(names) else specs + episode.brought(names)


_FIELDS = tuple([field.name for field in attrs.fields(ModelRequest)])
_values = attrgetter(*_FIELDS)
_AT = {name: index for index, name in enumerate(_FIELDS)}
_AT["model_settings"] = _AT["settings"]


def _patched(episode: Episode, request: ModelRequest, patch: StepPatch) -> ModelRequest:
    """The request with what the patch sets."""
    # Not attrs.evolve: it costs five times as much, and there may be many patches a step.
    values = list(_values(request))
    for name, value in patch.changes.items():
        if name == "instructions":
            value = as_instructions(value)
        elif name == "model":
            value = episode.resolve(value)
        elif name == "messages":
            value = tuple(repaired(value))
        elif name == "tools":
            value = _subset(episode, request.tools, value)
        elif name == "provider_tools":
            declared = episode.agent.definition.provider_tools
            chosen = {id(declared[tool]) for tool in value}
            value = tuple([item for item in request.provider_tools if id(item) in chosen])
        elif name == "wrap_transport":
            name, value = "transport", wrapped(values[_AT["transport"]], value)
        elif name == "output":
            outputs = episode.agent.definition.outputs
            episode.output = None if value is None else as_output(value, outputs)
            value = None
        elif name not in _AT:
            continue  # metadata is no part of a request
        values[_AT[name]] = value
    patched = ModelRequest(*values)
    if episode.output is not None:
        patched = attrs.evolve(patched, output=schema_for(episode, patched))
    return patched
