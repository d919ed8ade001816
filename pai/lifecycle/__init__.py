"""Composition of plugins, the chains that the loop runs, and the loader of installed plugins."""

from pai.lifecycle._chains import Chains
from pai.lifecycle._compose import HOOK_NAMES, Lifecycle, compose_lifecycle, plugin_name
from pai.lifecycle._hook import (
    Hook,
    broken_hook,
    error_of,
    is_stray,
    next_answer,
    wrong_answer,
)
from pai.lifecycle._installed import Installed, installed_plugins
from pai.lifecycle._loader import RAISED, LoadedPlugins, chosen_plugins, load_plugins
from pai.lifecycle._options import options_class
from pai.lifecycle._origin import Origin
from pai.lifecycle._report import PluginReport, cause_of
from pai.lifecycle._target import hook_of, load_target

__all__ = (
    "HOOK_NAMES",
    "RAISED",
    "Chains",
    "Hook",
    "Installed",
    "Lifecycle",
    "LoadedPlugins",
    "Origin",
    "PluginReport",
    "broken_hook",
    "cause_of",
    "chosen_plugins",
    "compose_lifecycle",
    "error_of",
    "hook_of",
    "installed_plugins",
    "is_stray",
    "load_plugins",
    "load_target",
    "next_answer",
    "options_class",
    "plugin_name",
    "wrong_answer",
)
