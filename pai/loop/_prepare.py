"""Preparing a run: its context, and what ``prepare_run`` decides."""

from __future__ import annotations

import inspect
from typing import Any

from pai.contexts import (
    AgentRef,
    Respond,
    RunContext,
    RunPatch,
    StepPatch,
    ThreadRef,
    merged,
    renew,
)
from pai.definition import (
    AgentBehaviorInput,
    ContextInput,
    choice_names,
    client_tools_from_json,
    output_faults,
)
from pai.errors import DefinitionError, Fault, InvalidInput
from pai.lifecycle import Hook, broken_hook, next_answer, wrong_answer
from pai.loop._children import ref_of
from pai.loop._episode import Episode
from pai.loop._history import repaired
from pai.loop._host import HookHost
from pai.loop._kept_patch import patch_from_json, patch_to_json
from pai.loop._metadata import apply_patch, new_draft
from pai.loop._old_metadata import read_metadata, write_through
from pai.protocol import Commit, Message, ToolCallPart

__all__ = ("behavior_input", "build_context", "check_contexts", "prepare_run", "take_patch")


async def build_context(episode: Episode) -> None:
    """Build what hooks and tools are handed, from what is stored with the run (R-6)."""
    claimed = episode.claimed
    run, thread = claimed.run, claimed.thread
    request = run.request
    read = read_metadata(episode)
    episode.read_history(repaired(read.messages))
    for message in episode.messages:
        if message.run_id == run.id:
            # A takeover goes on in the same run: its calls keep their ids.
            episode.call_ids.update(
                [part.call_id for part in message.parts if type(part) is ToolCallPart]
            )
    options = request.get("options")
    # It is there before anything of the application's can fail: observers are told in any case.
    context: RunContext[Any] = RunContext(
        runtime_context=None,
        identity=request.get("identity"),
        client_data=request.get("clientData"),
        thread_id=thread.key.thread_id,
        signal=episode.signal,
        agent=AgentRef(episode.agent.definition.name, episode.agent.definition.version),
        id=run.id,
        operation=run.operation if run.episode == 1 else "resume",
        metadata=read.run,
        started_at=run.started_at or run.created_at,
        attempt=run.attempt,
        episode=run.episode,
        parent_run_id=run.parent_run_id,
        subagent=ref_of(request),
        options=options if isinstance(options, dict) else {},
        answers={
            call.call_id: call.decisions[-1].get("value")
            for call in episode.questions.values()
            if call.decisions and not call.surfaced
        },
        thread=ThreadRef(
            thread.key.thread_id,
            thread.title,
            thread.title_source,
            read.thread,
            thread.created_at,
        ),
        input=_input(episode),
        host=HookHost(episode),
    )
    episode.context = context
    write_through(episode)
    if brought := request.get("clientTools"):
        episode.bring_tools(client_tools_from_json(brought))
    if episode.draft.message is None:
        new_draft(episode, 0)
    await _fill(episode, context)


async def _fill(episode: Episode, context: RunContext[Any]) -> None:
    """Put in what the application's classes and ``runtime_context`` make of the request."""
    definition = episode.agent.definition
    identity, client_data = context.identity, context.client_data
    if definition.identity is not None and identity is not None:
        identity = definition.identity.parse(identity, at="identity")
    if definition.client_data is not None:
        client_data = definition.client_data.parse(
            {} if client_data is None else client_data, at="client_data"
        )
    renew(context, identity=identity, client_data=client_data)
    if definition.runtime_context is None:
        return
    made: Any = definition.runtime_context(
        ContextInput(identity, client_data, context.thread_id, episode.signal)
    )
    renew(context, runtime_context=await made if inspect.isawaitable(made) else made)


def _input(episode: Episode) -> Message | None:
    for message in reversed(episode.messages):
        if message.run_id == episode.claimed.run.id and message.role == "user":
            return message
    return None


def check_contexts(episode: Episode) -> None:
    """
    See that each tool that names the class of its context gets one (A-TOOL-4).

    Raises:
        DefinitionError: The agent's context is of another class and there is no ``map_context``.
    """
    context = episode.context.runtime_context
    faults = [
        Fault(
            f"tools.{name}",
            f"wants a {wanted.__name__} as its context, and the agent's is a"
            f" {type(context).__name__}: give it map_context",
        )
        for name, wanted in episode.agent.contexts.items()
        if not isinstance(context, wanted)
    ]
    if faults:
        raise DefinitionError(faults, subject=f"agent {episode.agent.definition.name!r}")


def behavior_input(episode: Episode) -> AgentBehaviorInput[Any]:
    """What the agent's functions are handed (A-CTX-2)."""
    context = episode.context
    return AgentBehaviorInput(
        context.runtime_context,
        context.identity,
        context.client_data,
        context.thread_id,
        context.signal,
    )


async def prepare_run(episode: Episode) -> Respond | None:
    """
    Ask ``prepare_run`` of each plugin; the joined patch holds for the episode (R-31).

    A takeover goes on with what was decided before, as far as that could be kept (A-DEF-8).
    """
    if not episode.agent.chains.prepare_run:
        return None
    run = episode.claimed.run
    kept = run.patch
    if run.attempt > 1 and kept is not None and kept.get("episode") == run.episode:
        episode.patch = patch_from_json(kept["patch"])  # type: ignore[arg-type]  # we wrote it
        if episode.patch is not None:
            episode.message_patch = episode.patch.changes.get("message_metadata")
            if episode.message_patch is not None and episode.draft.message is None:
                new_draft(episode, episode.draft.index)
            renew(episode.context, patch=episode.patch)
        return None
    respond = await _ask(episode)
    if respond is None:
        change = Commit()
        if (patch := patch_to_json(episode.patch)) is not None:
            change.patch = {"episode": run.episode, "patch": patch}
        await episode.go_on()
        await episode.commit(change)
    return respond


async def _ask(episode: Episode) -> Respond | None:
    context = episode.context
    chain, at = episode.agent.chains.prepare_run, 0
    while found := await next_answer(chain, at, context):
        at, hook, answer = found
        if isinstance(answer, Respond):
            return answer
        if not isinstance(answer, RunPatch):
            raise wrong_answer(hook, answer, "None, RunPatch or Respond")
        take_patch(episode, hook, answer)
        episode.patch = merged(episode.patch, answer)
        renew(context, patch=episode.patch)
    return None


def take_patch(episode: Episode, hook: Hook, patch: RunPatch | StepPatch) -> None:
    """
    Check what a patch selects, and take its metadata.

    Raises:
        PluginError: It selects what the agent does not declare, there is no such model, or metadata
            does not fit; nothing of it is changed.
    """
    changes = patch.changes
    if not _LOOKED_AT.isdisjoint(changes):
        try:
            _check(episode, patch)
            apply_patch(episode, patch)
        except Exception as error:
            raise broken_hook(hook, error) from error


_LOOKED_AT = frozenset(
    {
        "model", "tools", "provider_tools", "tool_choice", "output", "run_metadata",
        "thread_metadata", "message_metadata",
    }
)  # fmt: skip


def _check(episode: Episode, patch: RunPatch | StepPatch) -> None:
    definition, changes = episode.agent.definition, patch.changes
    faults = []
    for field, known in (
        ("tools", episode.tools),
        ("provider_tools", definition.provider_tools),
    ):
        # Patches select among declared tools; they never bring one (A-TOOL-7).
        for name in changes.get(field, ()):
            if name not in known:
                faults.append(Fault(f"{field}.{name}", "the agent declares no tool of this name"))
    for name in choice_names(changes.get("tool_choice")):
        if name not in definition.choosable:
            faults.append(Fault("tool_choice", f"the agent declares no tool named {name!r}"))
    if isinstance(changes.get("output"), str):
        faults += output_faults(changes["output"], "output", definition.outputs, classes=True)
    if faults:
        raise InvalidInput(faults, subject=type(patch).__name__)
    if "model" in changes:
        episode.resolve(changes["model"])
