"""Which side jobs the end of a run leaves: a title, and that its observers are told."""

from __future__ import annotations

from datetime import datetime

from pai.definition import ThreadTitleConfig
from pai.loop._agent import BoundAgent
from pai.protocol import Claimed, JobRecord, RunEnd, ThreadRecord, settled_job

__all__ = ("end_jobs", "title_due")

TITLE_ID = "title"
"""One title at a time is made for a thread."""


def end_jobs(
    agent: BoundAgent, claimed: Claimed, messages: int, end: RunEnd, lease: float
) -> tuple[JobRecord, ...]:
    """
    The jobs that are committed with the end of a run.

    Args:
        agent: The agent.
        claimed: The run.
        messages: How many messages its history has by now.
        end: How it ends.
        lease: Seconds that this worker has for each.
    """
    run_id = claimed.run.id
    jobs = []
    if agent.chains.run_settled:
        jobs.append(settled_job(run_id, lease))
    titles = agent.definition.thread_titles
    if (
        titles is not None
        and end.status == "completed"
        and title_due(titles, claimed.thread, messages, claimed.turn, end.finished_at)
    ):
        jobs.append(JobRecord(TITLE_ID, "title", run_id, lease=lease))
    return tuple(jobs)


def title_due(
    config: ThreadTitleConfig, thread: ThreadRecord, messages: int, turn: int, now: datetime
) -> bool:
    """
    Whether a title is to be made for the thread that has the title it has.

    All thresholds must be met (A-TITLE-4); the first title has none to meet.

    Args:
        config: The agent's.
        thread: Its head.
        messages: How many messages there are.
        turn: The place of the run among the thread's runs.
        now: When.
    """
    mark, refresh = thread.titled, config.refresh
    if (thread.title_source or "") not in config.replaces:
        return False
    if mark is None or refresh is None:
        return mark is None or config.generate == "refresh"
    return (
        messages - mark.messages >= (refresh.after_messages or 0)
        and turn - mark.runs >= (refresh.after_runs or 0)
        and (now - mark.at).total_seconds() >= (refresh.min_age or 0.0)
    )
