"""One run, from claim to settle: the pipeline of the whole project, written down once."""

from __future__ import annotations

from typing import Any

import anyio

from pai.contexts import Respond, StepContext
from pai.definition import Output
from pai.errors import LeaseLost
from pai.lifecycle import is_stray
from pai.loop._control import steer
from pai.loop._episode import Episode
from pai.loop._metadata import new_draft
from pai.loop._observe import observe
from pai.loop._output import closing_request, output_is_due, output_wish
from pai.loop._prepare import build_context, check_contexts, prepare_run
from pai.loop._request import build_request, prepare_step
from pai.loop._settle import end_of, failure, settle, tell_end
from pai.loop._step import model_step
from pai.loop._stop import stop_reason
from pai.loop._suspend import ask_before_step
from pai.loop._synthetic import synthetic
from pai.loop._takeover import MOST_TAKEOVERS, go_on, settle_cut_off, take_over
from pai.loop._unfinished import finish_step
from pai.loop._wait import Wait
from pai.protocol import RunEnd, part_from_json
from pai.schema import JsonObject

__all__ = ("one_run",)


async def one_run(episode: Episode) -> RunEnd | None:
    """
    Work on a claimed run until it has settled, or waits for answers from outside.

    ::

        prepare_run ─► [ prepare_model_step ─► wrap_model_call ─► driver ─► transform_step_stream
            ─► commit ─► rewrite_tool_input ─► before_tool_call ─► execute ─► after_tool_result
            ─► on_output ─► commit ]* ─► settle ─► observers
                                       └► suspend, where a call waits; a resume begins again

    A run that fails, or that :attr:`Episode.signal` cancels, settles too, with what there is of
    its last step (R-14).

    Returns:
        How it ended; ``None`` if it waits.

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
    if end is not None:
        await tell_end(episode, end)
    return end


async def _work(episode: Episode) -> RunEnd | None:
    run = episode.claimed.run
    if run.attempt > 1:
        # What was streamed belongs to the run, also to one that is cancelled at this moment.
        with anyio.CancelScope(shield=True):
            await take_over(episode)
        if episode.claimed.takeovers > MOST_TAKEOVERS:
            return await _give_up(episode)
    elif run.episode > 1:
        go_on(episode)
    await _begin(episode)
    if _is_gone(episode, run.after):
        return await settle(episode, end_of(episode, "failed", error=_replaced(run.id)))
    respond = _answered_already(episode) or await prepare_run(episode)
    steer(episode)
    await episode.go_on()
    await episode.flush()
    if respond is not None and run.episode > 1 and run.attempt == 1:
        # A resume that is answered in place of the model runs nothing of what was approved.
        await settle_cut_off(episode, all_of_them=True)
    await finish_step(episode)
    if episode.suspended:
        return None
    if respond is not None:
        return await _answer(episode, respond)
    return await _loop(episode)


async def _begin(episode: Episode) -> None:
    try:
        await build_context(episode)
        if episode.draft.message is not None:
            episode.reopen()
    finally:
        if chain := episode.agent.chains.run_started:
            await observe(episode, chain, episode.context)
    if episode.open_calls:
        await settle_cut_off(episode)


async def _give_up(episode: Episode) -> RunEnd:
    """Fail a run that its workers do not survive (R-3b)."""
    run_id = episode.claimed.run.id
    error: JsonObject = {
        "code": "worker_lost",
        "message": "The server stopped each time it worked on this.",
        "id": run_id,
    }
    return await settle(episode, end_of(episode, "failed", error=error))


def _is_gone(episode: Episode, after: str | None) -> bool:
    """Whether a regenerate goes on from a message that another one has replaced meanwhile."""
    if not after or episode.claimed.run.episode > 1 or episode.claimed.run.attempt > 1:
        return False
    return all(message.id != after for message in episode.claimed.messages)


def _replaced(run_id: str) -> JsonObject:
    return {
        "code": "message_replaced",
        "message": "The message to go on from was replaced by another run.",
        "id": run_id,
    }


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
    index = _next_step(episode)
    step = StepContext(episode.context, index, request, episode.usage)
    return await _respond(episode, step, respond)


async def _respond(episode: Episode, step: StepContext[Any], respond: Respond) -> RunEnd:
    source = synthetic(episode, respond.parts)
    end = await model_step(episode, step, source=source, respond=respond)
    assert end is not None
    return end


async def _loop(episode: Episode) -> RunEnd | None:
    """Steps, until the model calls no more tools, or there is a reason to stop (O-2)."""
    check_contexts(episode)
    if (output := output_is_due(episode)) is not None:
        return await _closing_step(episode, output)
    context = episode.context
    # Behind a step that was left to this episode, or this worker, it is asked as behind any other.
    behind = episode.draft.message is not None
    for index in range(_next_step(episode), episode.loop.max_steps):
        if (index or behind) and (reason := await stop_reason(episode, index)):
            return await _stop(episode, reason)
        if episode.draft.index != index:
            new_draft(episode, index)
        step = StepContext(context, index, await build_request(episode), episode.usage)
        end = await _make(episode, step)
        if end is not None or episode.suspended:
            return end
        if episode.closing is not None:
            return await _closing_step(episode, episode.closing)
    return await _stop(episode, "max_steps")


async def _stop(episode: Episode, reason: str) -> RunEnd | None:
    """The loop is stopped; an output that was asked for is made all the same."""
    output = output_wish(episode)
    if output is None:
        return await settle(episode, end_of(episode, "completed", stop_reason=reason))
    episode.stopped = reason
    return await _closing_step(episode, output)


async def _closing_step(episode: Episode, output: Output) -> RunEnd | None:
    """The step that makes nothing but the structured output (O-11)."""
    index = _next_step(episode)
    request = closing_request(episode, await build_request(episode), output)
    episode.output, episode.closing = output, None
    step = StepContext(episode.context, index, request, episode.usage, "output")
    return await _make(episode, step)


async def _make(episode: Episode, step: StepContext[Any]) -> RunEnd | None:
    """A step, after its hooks: they may answer it, or ask before it is made."""
    if episode.agent.chains.prepare_model_step:
        respond = await prepare_step(episode, step)
        await episode.go_on()
        if isinstance(respond, Wait):
            await ask_before_step(episode, respond)
            return None
        if respond is not None:
            return await _respond(episode, step, respond)
    return await model_step(episode, step)


def _next_step(episode: Episode) -> int:
    """The step to make now; its draft is there afterwards."""
    draft = episode.draft
    if draft.message is not None:
        # Steps are counted anew in each episode (A-DEF-8).
        new_draft(episode, 0 if draft.earlier else draft.index + 1)
    return episode.draft.index


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
