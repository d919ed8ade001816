"""What plugin and application authors test with."""

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

__all__ = (
    "Call",
    "Cut",
    "Data",
    "Fail",
    "Finish",
    "Hang",
    "Reason",
    "ScriptedModel",
    "Turn",
)
