"""
What plugin and application authors test with.

Nothing is imported before it is asked for, since the pytest plugin is loaded by every test run of an
environment that has pai.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pai.testing._clock import FakeClock
    from pai.testing._driver_kit import Situation, check_model_driver, check_stream
    from pai.testing._plugin_kit import PLUGIN_CHECKS, PluginCase, check_plugin
    from pai.testing._schema_search import Finding, check_metadata_schemas, search
    from pai.testing._scripted import (
        Call,
        Cut,
        Data,
        Fail,
        Finish,
        Hang,
        Output,
        Reason,
        ScriptedModel,
        Turn,
    )
    from pai.testing._store_kit import STORE_CHECKS, check_store

__all__ = (
    "PLUGIN_CHECKS",
    "STORE_CHECKS",
    "Call",
    "Cut",
    "Data",
    "Fail",
    "FakeClock",
    "Finding",
    "Finish",
    "Hang",
    "Output",
    "PluginCase",
    "Reason",
    "ScriptedModel",
    "Situation",
    "Turn",
    "check_metadata_schemas",
    "check_model_driver",
    "check_plugin",
    "check_store",
    "check_stream",
    "search",
)

_FILES = {
    "_clock": "FakeClock",
    "_driver_kit": "Situation check_model_driver check_stream",
    "_plugin_kit": "PLUGIN_CHECKS PluginCase check_plugin",
    "_schema_search": "Finding check_metadata_schemas search",
    "_scripted": "Call Cut Data Fail Finish Hang Output Reason ScriptedModel Turn",
    "_store_kit": "STORE_CHECKS check_store",
}


def __getattr__(name: str) -> object:
    for file, names in _FILES.items():
        if name in names.split():
            from importlib import import_module

            value: object = getattr(import_module(f"{__name__}.{file}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
