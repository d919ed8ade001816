"""One run, from claim to settle: the pipeline of the whole project, written down once."""

from __future__ import annotations

from typing import Any

import anyio

from pai.contexts import UNSET, Respond, RunOutcome, StepContext
from pai.errors import LeaseLost
from pai.loop._episode import Episode
from pai.loop._observe import observe
from pai.loop._prepare import build_context, prepare_run
from pai.loop._request import build_request, prepare_step
from pai.loop._settle import end_of, failure, finished_event
from pai.loop._step import metadata_of, model_step, partial_step
from pai.loop._stream import synthetic
from pai.loop._takeover import settle_left_open
from pai.protocol import Commit, RunEnd, StepReset, part_from_json

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
        await _begin(episode)
        respond = _answered_already(episode) or await prepare_run(episode)
        await _keep_run_patch(episode)
        end = await (_answer(episode, respond) if respond else _loop(episode))
    except LeaseLost:
        raise
    except anyio.get_cancelled_exc_class():
        if episode.signal.is_set():
            with anyio.CancelScope(shield=True):
                end = await _settle(
                    episode, end_of(episode, "cancelled", reason=episode.signal.reason)
                )
                await _tell(episode, end)
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is, the run must settle
        run = episode.claimed.run
        episode.report(error, {"run_id": run.id, "thread_id": episode.journal.key.thread_id})
        end = await _settle(
            episode, end_of(episode, "failed", error=failure(error, run.id))
        )
    await _tell(episode, end)
    return end


async def _begin(episode: Episode) -> None:
    if episode.claimed.run.attempt > 1:
        # What the former worker had streamed of its step is void.
        episode.journal.hold(StepReset("takeover"))
        await settle_left_open(episode)
    await build_context(episode)
    if chain := episode.agent.chains.run_started:
        await observe(episode, chain, episode.context)


def _answered_already(episode: Episode) -> Respond | None:
    """What ``accept_message`` answered when the message came in."""
    stored = episode.claimed.run.request.get("respond")
    if not isinstance(stored, dict):
        return None
    parts: Any = stored["parts"]
    return Respond(
        tuple([part_from_json(part) for part in parts]), str(stored["outcome"]), stored["reason"]  # type: ignore[arg-type]  # as it was stored
    )


async def _keep_run_patch(episode: Episode) -> None:
    patch = episode.patch
    if patch is None:
        return
    change = Commit()
    episode.begin_message()
    episode.write_metadata(
        change,
        metadata_of(patch, "run_metadata"),
        metadata_of(patch, "thread_metadata"),
        None,
    )
    if change.events or change.run_metadata or change.thread_metadata:
        await episode.journal.commit(change)


async def _answer(episode: Episode, respond: Respond) -> RunEnd:
    """A run that ``prepare_run`` answered: one synthetic step (A-LIFE-3)."""
    chains = episode.agent.chains
    # Only a transform is shown the complete request, so only for it is anything resolved (A-MODEL-6).
    model = None if chains.transform_step_stream else "none"
    request = await build_request(episode, model=model)
    return await _respond(episode, StepContext(episode.context, 0, request, episode.usage), respond)


async def _respond(episode: Episode, step: StepContext[object], respond: Respond) -> RunEnd:
    episode.step_index = step.index
    if not episode.message_id or episode.last_message is not None:
        episode.begin_message()
    end = await model_step(episode, step, source=synthetic(respond.parts), respond=respond)
    assert end is not None
    return end


async def _loop(episode: Episode) -> RunEnd:
    """Steps, until the model calls no more tools."""
    limit = episode.agent.definition.max_steps
    patch = episode.patch
    if patch is not None and patch.max_steps is not UNSET:
        limit = patch.max_steps  # type: ignore[assignment]  # it is set
    context = episode.context
    first = metadata_of(patch, "message_metadata")
    for index in range(limit):
        episode.step_index = index
        episode.begin_message()
        if index == 0 and first is not None:
            await episode.update_metadata(None, None, first)
        step = StepContext(context, index, await build_request(episode), episode.usage)
        respond = None
        if episode.agent.chains.prepare_model_step:
            respond = await prepare_step(episode, step)
        if respond is not None:
            return await _respond(episode, step, respond)
        end = await model_step(episode, step)
        if end is not None:
            return end
    return await _settle(episode, end_of(episode, "completed", stop_reason="max_steps"))


async def _settle(episode: Episode, end: RunEnd) -> RunEnd:
    """Commit the end, and with it whatever was left open."""
    change = Commit(end=end)
    partial_step(episode, change)
    change.events.append(finished_event(episode, end))
    await episode.journal.commit(change)
    return end


async def _tell(episode: Episode, end: RunEnd) -> None:
    chain = episode.agent.chains.run_settled
    if chain and hasattr(episode, "context"):
        result = RunOutcome(
            end.status, end.outcome, end.reason, end.stop_reason, episode.usage, end.error
        )
        await observe(episode, chain, episode.context, result)

