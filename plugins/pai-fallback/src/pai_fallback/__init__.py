"""A chain of models around the model call: when one fails, the next one answers."""

from pai_fallback._target import Target
from pai_fallback.plugin import Fallback, Options, fallback

__all__ = ("Fallback", "Options", "Target", "fallback")
