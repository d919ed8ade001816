"""Preparing a run: its context, and what ``prepare_run`` decides."""

from __future__ import annotations

import inspect
from typing import Any

from pai.contexts import AgentRef, Respond, RunContext, RunPatch, ThreadRef, merged
from pai.definition import AgentBehaviorInput, ContextInput
from pai.errors import Fault, InvalidInput
from pai.lifecycle import broken_hook
from pai.loop._episode import Episode, wrong_answer
from pai.loop._history import repaired

__all__ = ("behavior_input", "build_context", "prepare_run", "subset_faults")


async def build_context(episode: Episode) -> None:
    """Build what hooks and tools are handed, from what is stored with the run (R-6)."""
    definition = episode.agent.definition
    claimed = episode.claimed
    run, thread = claimed.run, claimed.thread
    request = run.request
    identity: object = request.get("identity")
    if definition.identity is not None and identity is not None:
        identity = definition.identity.parse(identity, at="identity")
    client_data: object = request.get("clientData")
    if definition.client_data is not None:
        client_data = definition.client_data.parse(
            {} if client_data is None else client_data, at="client_data"
        )
    runtime_context: Any = None
    if definition.runtime_context is not None:
        runtime_context = definition.runtime_context(
            ContextInput(identity, client_data, thread.key.thread_id, episode.signal)
        )
        if inspect.isawaitable(runtime_context):
            runtime_context = await runtime_context
    episode.messages = repaired(claimed.messages)
    episode.history_length = len(episode.messages)
    for message in episode.messages:
        if message.run_id == run.id:
            # A takeover goes on in the same run: its calls keep their ids.
            episode.call_ids.update(
                [part.call_id for part in message.parts if hasattr(part, "call_id")]
            )
    options = request.get("options")
    episode.context = RunContext(
        runtime_context=runtime_context,
        identity=identity,
        client_data=client_data,
        thread_id=thread.key.thread_id,
        signal=episode.signal,
        agent=AgentRef(definition.name, definition.version),
        id=run.id,
        operation=run.operation,
        metadata=run.metadata,
        started_at=run.started_at or run.created_at,
        attempt=run.attempt,
        episode=run.episode,
        parent_run_id=run.parent_run_id,
        options=options if isinstance(options, dict) else {},
        thread=ThreadRef(
            thread.key.thread_id, thread.title, thread.title_source, thread.metadata,
            thread.created_at,
        ),
        input=_input(episode),
        messages=episode.messages,
        host=episode,
    )  # fmt: skip


def _input(episode: Episode) -> Any:
    for message in reversed(episode.messages):
        if message.run_id == episode.claimed.run.id and message.role == "user":
            return message
    return None


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


def subset_faults(episode: Episode, patch: Any) -> list[Fault]:
    """Patches select among declared tools; they never bring one (A-TOOL-7)."""
    definition = episode.agent.definition
    faults = []
    for field, known in (("tools", definition.tools), ("provider_tools", definition.provider_tools)):
        for name in getattr(patch, field) or ():
            if name not in known:
                faults.append(Fault(f"{field}.{name}", "the agent declares no tool of this name"))
    return faults


async def prepare_run(episode: Episode) -> Respond | None:
    """Ask ``prepare_run`` of each plugin; the joined patch holds for the episode (R-31)."""
    context = episode.context
    for hook in episode.agent.chains.prepare_run:
        try:
            answer = hook.call(context)
            if hook.is_async or inspect.isawaitable(answer):
                answer = await answer
            if answer is None:
                continue
            if isinstance(answer, RunPatch):
                if faults := subset_faults(episode, answer):
                    raise InvalidInput(faults, subject="RunPatch")
                context.patch = merged(context.patch, answer)
                continue
        except Exception as error:
            raise broken_hook(hook, error) from error
        if isinstance(answer, Respond):
            episode.patch = context.patch
            return answer
        raise wrong_answer(hook, answer, "RunPatch or Respond")
    episode.patch = context.patch
    return None
