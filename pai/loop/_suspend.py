"""Stopping a run to wait, and what it waits for (R-19, R-22)."""

from __future__ import annotations

import attrs

from pai.loop._episode import Episode
from pai.loop._wait import Wait, waiting
from pai.protocol import CallRecord, Commit, RunSuspended, StateSnapshot, StepReset, Suspension
from pai.schema import JsonValue

__all__ = ("add_waiting", "ask_before_step", "stop_with", "suspend", "waits")


def waits(episode: Episode) -> bool:
    """Whether there is a call or a question that only an answer from outside brings on."""
    rows = (*episode.open_calls.values(), *episode.questions.values())
    return any(row.status == "waiting" for row in rows)


def add_waiting(
    episode: Episode, change: Commit, row: CallRecord, stored_input: JsonValue, wait: Wait
) -> CallRecord:
    """
    Add to a change that a call waits.

    Returns:
        The call's row from then on. That of a question is its own, and stands in the change.
    """
    if wait.kind != "question":
        row, event = waiting(episode, row, stored_input, wait)
        change.events.append(event)
        return row
    assert wait.question_id is not None
    if wait.question_id not in episode.questions:
        asked, event = waiting(episode, row, stored_input, wait)
        change.events.append(event)
        change.calls = (*change.calls, asked)
        episode.questions[asked.call_id] = asked
    return row


def stop_with(episode: Episode, change: Commit) -> None:
    """Let a change be the last of the episode: the run suspends with it."""
    rows = {**episode.open_calls, **episode.questions, **{row.call_id: row for row in change.calls}}
    ends = [row.expires_at for row in rows.values() if row.status == "waiting" and row.expires_at]
    # Answers that this episode knew are used up: others that come meanwhile are news.
    change.calls = (*change.calls, *_used_up(episode))
    run, own = episode.claimed.run, episode.said
    if change.message is not None and episode.draft.message is None:
        own += 1  # it is committed with this
    episode.expires_at = min(ends, default=None)
    change.suspend = Suspension(episode.usage, own, episode.expires_at)
    options = run.request.get("options")
    if isinstance(options, dict) and "state" in options:
        change.events.append(StateSnapshot(options["state"]))
    change.events.append(RunSuspended(run.episode, episode.usage))
    episode.suspended = True


def _used_up(episode: Episode) -> list[CallRecord]:
    return [
        attrs.evolve(row, status="settled", outcome="completed")
        for row in episode.questions.values()
        if row.status == "answered"
    ]


async def suspend(episode: Episode) -> None:
    """Stop the run, behind a step whose other calls have settled."""
    change = Commit(message=episode.draft.take())
    stop_with(episode, change)
    await episode.commit(change)


async def ask_before_step(episode: Episode, wait: Wait) -> None:
    """Stop the run before a step, as a hook asks."""
    change = Commit()
    add_waiting(episode, change, CallRecord("", "", "", "requested"), None, wait)
    if episode.draft.begun:
        # What was written into the step is written again when it is made.
        change.events.append(StepReset("suspended"))
    stop_with(episode, change)
    await episode.commit(change)
