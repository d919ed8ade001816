"""How a run ends."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Literal

from pai.errors import (
    FatalToolError,
    ModelError,
    PluginError,
)
from pai.loop._episode import Episode, public
from pai.protocol import RunEnd, RunFinished
from pai.schema import JsonObject

__all__ = ("end_of", "failure", "finished_event")


def failure(error: BaseException, run_id: str) -> JsonObject:
    """
    What a client is told of an error: a code and a sentence of ours, nothing of its text (A-RUN-3).
    """
    if isinstance(error, ModelError):
        code, message = error.code, "The model could not answer."
    elif isinstance(error, PluginError):
        code, message = "plugin_error", "A plugin failed."
    elif isinstance(error, FatalToolError):
        code, message = "fatal_tool_error", "A tool ended the run."
    else:
        code, message = "internal_error", "Something failed on the server."
    return {"code": code, "message": message, "id": run_id}


def end_of(
    episode: Episode,
    status: Literal["completed", "failed", "cancelled", "blocked"],
    *,
    outcome: str | None = None,
    reason: str | None = None,
    stop_reason: str | None = None,
    error: JsonObject | None = None,
) -> RunEnd:
    """The end of this run, with what it used."""
    return RunEnd(
        status,
        datetime.now(UTC),
        outcome or status,
        reason,
        stop_reason,
        episode.usage,
        error,
    )


def finished_event(episode: Episode, end: RunEnd) -> RunFinished:
    """The one terminal event."""
    return RunFinished(
        end.status,
        end.outcome,
        end.reason,
        end.stop_reason,
        end.usage,
        end.error,
        public(episode.context.metadata) if hasattr(episode, "context") else {},
        end.finished_at,
    )

