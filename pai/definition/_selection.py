"""Which model answers, and how (A-MODEL-1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from pai.definition._behavior import AgentBehaviorInput
from pai.definition._checks import arity_faults, provider_options_faults
from pai.errors import Fault
from pai.ports import ModelDriver
from pai.protocol import ModelSettings, ProviderOptions
from pai.schema import compile_schema

__all__ = (
    "ModelSelection",
    "ModelSource",
    "model_faults",
    "model_name_faults",
    "settings_faults",
)

ContextT = TypeVar("ContextT")


@attrs.frozen(eq=False)
class ModelSelection:
    """
    A model with its settings.

    Args:
        model: A driver, or a name such as ``"openai:gpt-5.2"``.
        model_settings: Sampling.
        provider_options: Options by provider name (A-MODEL-3).
    """

    model: ModelDriver | str
    model_settings: ModelSettings = ModelSettings()
    provider_options: ProviderOptions = attrs.field(factory=dict)


ModelSource = (
    str
    | ModelDriver
    | ModelSelection
    | Callable[
        [AgentBehaviorInput[ContextT]],
        "str | ModelDriver | ModelSelection | Awaitable[str | ModelDriver | ModelSelection]",
    ]
)
"""A model, a selection, or a function that chooses (A-MODEL-1)."""


def model_faults(model: object, at: str) -> list[Fault]:
    """Faults of what is given as a model, as far as they show before it is asked for."""
    if isinstance(model, ModelSelection):
        return _selection_faults(model, at)
    if _is_model(model):
        return model_name_faults(model, at) if isinstance(model, str) else []
    if callable(model) and not isinstance(model, type):
        return arity_faults(model, at)
    return [
        Fault(at, f"expected a name, a driver, a ModelSelection or a function, got {_kind(model)}")
    ]


def _is_model(model: object) -> bool:
    # A class of drivers has all that a driver has, and is none.
    return isinstance(model, (str, ModelDriver)) and not isinstance(model, type)


def _kind(model: object) -> str:
    return f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__


def model_name_faults(model: str, at: str) -> list[Fault]:
    """Faults of a name, as far as they show without looking it up."""
    provider, colon, rest = model.partition(":")
    if model == "demo" or (colon and provider and rest.strip() and model == model.strip()):
        return []
    return [Fault(at, f"{model!r} names no model: write 'provider:model', e.g. 'openai:gpt-5.2'")]


def _selection_faults(selection: ModelSelection, at: str) -> list[Fault]:
    faults = []
    if isinstance(selection.model, str):
        faults += model_name_faults(selection.model, f"{at}.model")
    elif not _is_model(selection.model):
        faults.append(
            Fault(f"{at}.model", f"expected a name or a driver, got {_kind(selection.model)}")
        )
    faults += settings_faults(selection.model_settings, f"{at}.model_settings")
    return faults + provider_options_faults(selection.provider_options, f"{at}.provider_options")


def settings_faults(settings: object, at: str) -> list[Fault]:
    """Faults of model settings."""
    if not isinstance(settings, ModelSettings):
        return [Fault(at, f"expected ModelSettings, got {type(settings).__name__}")]
    names = [field.name for field in attrs.fields(ModelSettings)]
    given = {name: value for name in names if (value := getattr(settings, name)) is not None}
    if not given:
        return []
    return [fault.under(at) for fault in compile_schema(ModelSettings).faults(given)]
