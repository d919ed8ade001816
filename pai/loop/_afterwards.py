"""Going back to a run that has ended, or is elsewhere, for the sake of a side job (R-6)."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from pai.contexts import RunOutcome
from pai.loop._agent import BoundAgent
from pai.loop._child_port import NoChildren
from pai.loop._episode import Episode, Report
from pai.loop._journal import Journal
from pai.loop._observe import observe
from pai.loop._prepare import build_context
from pai.ports import ModelDriver
from pai.protocol import Batch, Claimed, RunRecord, RunSource, Usage

__all__ = ("reopened", "tell_again")


def reopened(
    agent: BoundAgent,
    source: RunSource,
    journal: Journal,
    report: Report,
    resolve: Callable[[ModelDriver | str], ModelDriver],
    tool_limiter: Callable[[], anyio.CapacityLimiter],
) -> Episode:
    """
    An episode of a run that nobody works on here: its context can be built, nothing can be written.

    Args:
        agent: The run's agent.
        source: The run, as it is stored.
        journal: A journal of it.
        report: Takes errors whole.
        resolve: From a model's name to its driver.
        tool_limiter: As for any episode.
    """
    run = source.run
    journal.close()
    claimed = Claimed(
        run, 0, source.thread, source.messages, (), Batch(1, run.id, []), turn=source.turn
    )
    return Episode(agent, claimed, journal, report, resolve, tool_limiter, NoChildren())


async def tell_again(episode: Episode) -> None:
    """Tell the observers of a run's end whose worker died before it had (R-33a)."""
    run = episode.claimed.run
    try:
        await build_context(episode)
    except Exception as error:  # observers are told in any case: the context is there without it
        episode.report(error, {"run_id": run.id})
    await observe(episode, episode.agent.chains.run_settled, episode.context, _outcome(run))


def _outcome(run: RunRecord) -> RunOutcome:
    return RunOutcome(
        run.status,  # type: ignore[arg-type]  # it has ended
        run.outcome,
        run.reason,
        run.stop_reason,
        run.usage or Usage(),
        run.error,
    )
