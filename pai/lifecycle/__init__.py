"""Composition of plugins, and the chains that the loop runs."""

from pai.lifecycle._chains import Chains, Hook, broken_hook
from pai.lifecycle._compose import HOOK_NAMES, Lifecycle, compose_lifecycle, plugin_name

__all__ = (
    "Chains",
    "HOOK_NAMES",
    "Hook",
    "Lifecycle",
    "broken_hook",
    "compose_lifecycle",
    "plugin_name",
)
