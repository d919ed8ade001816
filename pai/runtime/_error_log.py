"""Which logger is told of an error, and in which words: names, no text of anybody (O-7)."""

from __future__ import annotations

import logging

from pai.errors import ModelError, PluginError, StoreError

__all__ = ("logger_of", "named")

_LOGGERS = ((PluginError, "pai.hooks"), (StoreError, "pai.store"), (ModelError, "pai.provider"))
"""Where an error is told of; every other one in ``pai.run`` (O-7)."""


def logger_of(error: BaseException) -> logging.Logger:
    """The logger that an error is told to."""
    for kind, name in _LOGGERS:
        if isinstance(error, kind):
            return logging.getLogger(name)
    return logging.getLogger("pai.run")


def named(error: BaseException) -> str:
    """What kind of error it is, and whose: names, no text of anybody."""
    name = type(error).__name__
    if isinstance(error, PluginError):
        cause = f" ({type(error.__cause__).__name__})" if error.__cause__ is not None else ""
        return f"{name}{cause} of plugin {error.plugin!r}, phase {error.phase}"
    if isinstance(error, ModelError):
        return f"{name} of {error.provider}, code {error.code}"
    return name
