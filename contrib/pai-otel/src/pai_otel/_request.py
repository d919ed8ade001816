"""What a span tells of a request to a model, content aside."""

from __future__ import annotations

from pai import ModelRequest, Reasoning
from pai_otel import genai_names as names
from pai_otel._span import Attributes

__all__ = ("model_of", "request_attributes")


def model_of(request: ModelRequest) -> tuple[str, str]:
    """Provider and model of a request, whose model may be a name still."""
    model = request.model
    if isinstance(model, str):
        provider, _, name = model.partition(":")
        return provider, name or provider
    return model.provider, model.name


def request_attributes(request: ModelRequest) -> Attributes:
    """The settings of a request that are set."""
    attributes: Attributes = {names.REQUEST_STREAM: True}
    settings = request.settings
    for setting, name in names.REQUEST_SETTINGS.items():
        value = getattr(settings, setting)
        if value is not None:
            attributes[name] = tuple(value) if setting == "stop_sequences" else value
    reasoning = settings.reasoning
    if reasoning is not None:
        level = reasoning.level if isinstance(reasoning, Reasoning) else reasoning
        attributes[names.REQUEST_REASONING_LEVEL] = level
    if request.output is not None:
        attributes[names.OUTPUT_TYPE] = "json"
    return attributes
