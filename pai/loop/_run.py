"""One run, from claim to settle: the pipeline of the whole project, written down once."""

from __future__ import annotations

from typing import Any

import anyio

from pai.contexts import UNSET, Respond, StepContext
from pai.errors import LeaseLost
from pai.lifecycle import is_stray
from pai.loop._episode import Episode
from pai.loop._metadata import new_draft
from pai.loop._observe import observe
from pai.loop._prepare import build_context, check_contexts, prepare_run
from pai.loop._request import build_request, prepare_step
from pai.loop._settle import end_of, failure, settle, tell_end
from pai.loop._step import model_step
from pai.loop._synthetic import synthetic
from pai.loop._takeover import settle_left_open
from pai.protocol import RunEnd, StepReset, part_from_json

__all__ = ("one_run",)


async def one_run(episode: Episode) -> RunEnd:
    """
    Work on a claimed run until it has settled.

    ::

        prepare_run ─► [ prepare_model_step ─► wrap_model_call ─► driver ─► transform_step_stream
            ─► commit ─► rewrite_tool_input ─► before_tool_call ─► execute ─► after_tool_result
            ─► on_output ─► commit ]* ─► settle ─► observers

    A run that fails, or that :attr:`Episode.signal` cancels, settles too, with what there is of
    its last step (R-14).

    Raises:
        LeaseLost: Another worker has the run; nothing was settled.
    """
    try:
        end = await _work(episode)
    except LeaseLost:
        raise
    except Exception as error:  # whatever it is, the run must settle
        end = await _fail(episode, error)
    except anyio.get_cancelled_exc_class() as error:
        if not is_stray(error):
            if episode.signal.is_set():
                await _cancel(episode)
            raise
        end = await _fail(episode, error)
    await tell_end(episode, end)
    return end


async def _work(episode: Episode) -> RunEnd:
    await _begin(episode)
    respond = _answered_already(episode) or await prepare_run(episode)
    await episode.go_on()
    await episode.flush()
    if respond is not None:
        return await _answer(episode, respond)
    return await _loop(episode)


async def _begin(episode: Episode) -> None:
    if episode.claimed.run.attempt > 1:
        # What the former worker had streamed of its step is void.
        episode.journal.hold(StepReset("takeover"))
        await settle_left_open(episode)
    try:
        await build_context(episode)
    finally:
        if chain := episode.agent.chains.run_started:
            await observe(episode, chain, episode.context)


def _answered_already(episode: Episode) -> Respond | None:
    """What ``accept_message`` answered when the message came in."""
    stored = episode.claimed.run.request.get("respond")
    if not isinstance(stored, dict):
        return None
    parts: Any = stored["parts"]
    return Respond(
        tuple([part_from_json(part) for part in parts]),
        str(stored["outcome"]),
        stored["reason"],  # type: ignore[arg-type]  # as it was stored
    )


async def _answer(episode: Episode, respond: Respond) -> RunEnd:
    """A run that ``prepare_run`` answered: one synthetic step (A-LIFE-3)."""
    chains = episode.agent.chains
    # Only a transform is shown the complete request, so only for it is anything resolved (A-MODEL-6).
    model = None if chains.transform_step_stream else "none"
    request = await build_request(episode, model=model)
    return await _respond(episode, StepContext(episode.context, 0, request, episode.usage), respond)


async def _respond(episode: Episode, step: StepContext[Any], respond: Respond) -> RunEnd:
    source = synthetic(episode, respond.parts)
    end = await model_step(episode, step, source=source, respond=respond)
    assert end is not None
    return end


async def _loop(episode: Episode) -> RunEnd:
    """Steps, until the model calls no more tools."""
    check_contexts(episode)
    limit = episode.agent.definition.max_steps
    patch = episode.patch
    if patch is not None and patch.max_steps is not UNSET:
        limit = patch.max_steps  # type: ignore[assignment]  # it is set
    context = episode.context
    for index in range(limit):
        if index:
            new_draft(episode, index)
        step = StepContext(context, index, await build_request(episode), episode.usage)
        respond = None
        if episode.agent.chains.prepare_model_step:
            respond = await prepare_step(episode, step)
            await episode.go_on()
        if respond is not None:
            return await _respond(episode, step, respond)
        end = await model_step(episode, step)
        if end is not None:
            return end
    return await settle(episode, end_of(episode, "completed", stop_reason="max_steps"))


async def _fail(episode: Episode, error: BaseException) -> RunEnd:
    """Settle a run that raised; one that was cancelled meanwhile is cancelled (R-35)."""
    run = episode.claimed.run
    episode.report(error, {"run_id": run.id, "thread_id": episode.journal.key.thread_id})
    if episode.signal.is_set():
        end = _cancelled(episode)
    else:
        end = end_of(episode, "failed", error=failure(error, run.id))
    with anyio.CancelScope(shield=True):
        await settle(episode, end)
    return end


async def _cancel(episode: Episode) -> None:
    end = _cancelled(episode)
    with anyio.CancelScope(shield=True):
        await settle(episode, end)
    await tell_end(episode, end)


def _cancelled(episode: Episode) -> RunEnd:
    return end_of(episode, "cancelled", reason=episode.signal.reason)
