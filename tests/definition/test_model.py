"""Models, settings and instructions where they are declared (A-MODEL, A-INSTR)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    ModelProfile,
    ModelSelection,
    ModelSettings,
    Reasoning,
    SystemMessage,
    define_agent,
)
from pai.testing import ScriptedModel

from .refusals import refused_agent


class Driver:
    """A driver whose class has all that a driver has."""

    provider = name = "mine"
    profile = ModelProfile()

    def stream(self, request):
        raise NotImplementedError


async def choose(given):
    return "demo"


@pytest.mark.parametrize(
    "model",
    [
        "demo",
        "openai:gpt-5.2",
        "openai-chat:llama3:8b",
        ScriptedModel(["hi"]),
        Driver(),
        ModelSelection("demo"),
        ModelSelection(ScriptedModel(), ModelSettings(seed=1), {"scripted": {"a": [1]}}),
        choose,
        lambda given: ModelSelection("demo"),
    ],
)
def test_a_model_is_a_name_a_driver_a_selection_or_a_function(model):
    """A-MODEL-1."""
    assert define_agent(name="calc", model=model).model is model


@pytest.mark.parametrize(
    "model", [None, 7, "", "gpt-5.2", ":gpt", "openai:", "openai: ", " openai:x", Driver, []]
)
def test_what_is_no_model_is_refused(model):
    """A-MODEL-1: a class of drivers is none either."""
    assert list(refused_agent(model=model)) == ["model"]


def test_the_settings_are_exactly_these():
    """A-MODEL-2: transport policy has no way in."""
    assert [field.name for field in attrs.fields(ModelSettings)] == [
        "max_output_tokens",
        "temperature",
        "top_p",
        "top_k",
        "presence_penalty",
        "frequency_penalty",
        "stop_sequences",
        "seed",
        "reasoning",
    ]
    for name in ("timeout", "max_retries", "headers", "signal"):
        given: dict[str, Any] = {name: 1}
        with pytest.raises(TypeError, match=name):
            ModelSettings(**given)


@pytest.mark.parametrize(
    "settings",
    [
        ModelSettings(),
        ModelSettings(max_output_tokens=5, temperature=1, top_p=0.5, top_k=3),
        ModelSettings(presence_penalty=0.1, frequency_penalty=-0.1, stop_sequences=["a"], seed=7),
        ModelSettings(reasoning="high"),
        ModelSettings(reasoning=Reasoning("low", summary=False, budget_tokens=100)),
    ],
)
def test_settings_that_fit(settings):
    """A-MODEL-2."""
    assert define_agent(name="calc", model=ModelSelection("demo", settings))


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        (ModelSettings(temperature="hot"), "temperature"),  # type: ignore[arg-type]
        (ModelSettings(max_output_tokens=1.5), "max_output_tokens"),  # type: ignore[arg-type]
        (ModelSettings(reasoning="much"), "reasoning"),  # type: ignore[arg-type]
        (ModelSettings(temperature=float("nan")), "temperature"),
    ],
)
def test_settings_that_do_not_fit(settings, path):
    """A-MODEL-2."""
    faults = refused_agent(model=ModelSelection("demo", settings))
    assert list(faults) == [f"model.model_settings.{path}"]


def test_all_faults_of_a_selection_are_one_error():
    """A-MODEL-1, A-MODEL-3: options are JSON, by provider name."""
    wrong: Any = {"openai": {"x": {1}}, "other": 5, "third": {"y": float("inf")}}
    selection = ModelSelection("gpt", {"temperature": 1}, wrong)  # type: ignore[arg-type]
    assert set(refused_agent(model=selection)) == {
        "model.model",
        "model.model_settings",
        "model.provider_options.openai.x",
        "model.provider_options.other",
        "model.provider_options.third.y",
    }
    selection = ModelSelection(Driver, provider_options=[])  # type: ignore[arg-type]
    assert set(refused_agent(model=selection)) == {"model.model", "model.provider_options"}


async def written(given):
    return "Be brief."


@pytest.mark.parametrize(
    "instructions",
    [
        "",
        "Be brief.",
        SystemMessage("Be brief.", {"anthropic": {"cache": True}}),
        [SystemMessage("a"), SystemMessage("b", {"openai": {}})],
        (SystemMessage("a"),),
        [],
        lambda given: "Be brief.",
        written,
    ],
)
def test_instructions_are_text_messages_or_a_function(instructions):
    """A-INSTR-1."""
    agent = define_agent(name="calc", model="demo", instructions=instructions)
    assert agent.instructions is instructions


@pytest.mark.parametrize(
    ("instructions", "path"),
    [
        (7, "instructions"),
        (None, "instructions"),
        ({"content": "a"}, "instructions"),
        (["a"], "instructions[0]"),
        ([SystemMessage("a"), {"content": "b"}], "instructions[1]"),
        (SystemMessage(7), "instructions.content"),  # type: ignore[arg-type]
        ([SystemMessage("a", {"x": 1})], "instructions[0].provider_options.x"),  # type: ignore[dict-item]
        (SystemMessage("a", {"x": {"y": {1}}}), "instructions.provider_options.x.y"),  # type: ignore[dict-item]
    ],
)
def test_what_is_wrong_with_instructions(instructions, path):
    """A-INSTR-1, A-INSTR-3."""
    assert list(refused_agent(instructions=instructions)) == [path]
