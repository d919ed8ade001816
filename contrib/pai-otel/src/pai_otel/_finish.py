"""How model calls end, in the words of the conventions."""

from __future__ import annotations

from typing import Final

from pai import ModelError

__all__ = ("CANCELLED", "FINISH_REASONS", "error_type")

CANCELLED: Final = "cancelled"
"""The kind of error of what was stopped: by who cancelled the run, or by a layer outside."""

FINISH_REASONS: Final = {"tool-calls": "tool_call", "content-filter": "content_filter"}
"""Where the conventions have another word than pai."""


def error_type(error: BaseException) -> str:
    """
    What kind of error it is: never its text (R-40).

    A code where a model's error has one, else the name of its class.
    """
    if isinstance(error, ModelError):
        return error.code
    if isinstance(error, Exception):
        return type(error).__name__
    # Cancelled by an event loop, or closed where the stream is read.
    return CANCELLED
