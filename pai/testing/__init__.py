"""What plugin and application authors test with."""

from pai.testing._driver_kit import Situation, check_model_driver, check_stream
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
    "Call",
    "Cut",
    "Data",
    "Fail",
    "Finish",
    "Hang",
    "Reason",
    "STORE_CHECKS",
    "ScriptedModel",
    "Situation",
    "Turn",
    "check_model_driver",
    "check_store",
    "check_stream",
)
