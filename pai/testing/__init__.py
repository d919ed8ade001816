"""What plugin and application authors test with."""

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
