"""Which model answers, and how (A-MODEL-1)."""

from __future__ import annotations

import attrs

from pai.ports import ModelDriver
from pai.protocol import ModelSettings, ProviderOptions

__all__ = ("ModelSelection",)


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
