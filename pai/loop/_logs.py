"""
What the loop tells its loggers: names, ids, sizes and types; never content, a header or a key (O-7).

``pai.run`` has the life of runs, ``pai.tools`` how calls ended; what was written is told elsewhere.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai.loop._episode import Episode
    from pai.protocol import RunEnd

__all__ = ("run_begins", "run_ended", "tool_ended")

_run = logging.getLogger("pai.run")
_tools = logging.getLogger("pai.tools")


def run_begins(episode: Episode) -> None:
    """A worker goes on with a run."""
    if _run.isEnabledFor(logging.INFO):
        run, definition = episode.claimed.run, episode.agent.definition
        _run.info(
            "begins: run_id=%s thread_id=%s agent=%s operation=%s episode=%d attempt=%d",
            run.id, episode.journal.key.thread_id, definition.name, run.operation, run.episode,
            run.attempt,
        )  # fmt: skip


def run_ended(episode: Episode, end: RunEnd) -> None:
    """A run has settled."""
    if _run.isEnabledFor(logging.INFO):
        code = None if end.error is None else end.error.get("code")
        _run.info(
            "ended: run_id=%s thread_id=%s status=%s stop_reason=%s code=%s steps=%d tokens=%s",
            episode.claimed.run.id, episode.journal.key.thread_id, end.status, end.stop_reason,
            code, episode.draft.index + 1, episode.usage.total_tokens,
        )  # fmt: skip


def tool_ended(episode: Episode, tool: str, call_id: str, outcome: str, output: object) -> None:
    """A call has settled."""
    if _tools.isEnabledFor(logging.DEBUG):
        if tool not in episode.agent.definition.tools:
            tool = "unknown"  # a name that the model made up is content
        _tools.debug(
            "settled: run_id=%s tool=%s call_id=%s outcome=%s output=%s",
            episode.claimed.run.id, tool, call_id, outcome, type(output).__name__,
        )  # fmt: skip
