"""A plugin for pai: tools may be called so many times in a run, or in a conversation."""

from pai_at_most.plugin import AtMost, Options, Per

__all__ = ("AtMost", "Options", "Per")
