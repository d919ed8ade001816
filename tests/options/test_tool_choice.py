"""Which tool a model must, may or may not call (O-21)."""

from __future__ import annotations

from typing import Any

import pytest

from pai import (
    AgentToolConfig,
    FirstStep,
    PluginError,
    ProviderTool,
    RunOptions,
    RunPatch,
    StepPatch,
    ToolName,
    hookimpl,
)
from pai.testing import Call

from ..definition.refusals import refused_agent
from ..played import play
from .agents import add, endless, look

ADD = ToolName("add")
MISTAKEN: Any = "sometimes"


class Patch:
    """A hook of a run, and of its steps: by index, or all."""

    def __init__(self, run: RunPatch | None = None, *steps: StepPatch | None) -> None:
        self.run = run
        self.steps = steps

    @hookimpl
    def prepare_run(self) -> RunPatch | None:
        return self.run

    @hookimpl
    def prepare_model_step(self, step: Any) -> StepPatch | None:
        return self.steps[step.index] if step.index < len(self.steps) else None


async def asked(*plugins: Any, options: Any = None, **fields: Any) -> list[Any]:
    """The tool choices of a run's three steps."""
    definition: Any = endless([Call("add")], [Call("add")], "done", **fields)
    played = await play(definition, plugins=plugins, options=options)
    assert played.errors == []
    return [request.tool_choice for request in definition.model.requests]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("choice", "steps"),
    [
        (None, [None] * 3),
        ("auto", ["auto"] * 3),
        ("none", ["none"] * 3),
        # Else the model could never just answer.
        ("required", ["required", None, None]),
        (ADD, [ADD, None, None]),
        (FirstStep("none"), ["none", None, None]),
        (FirstStep(ADD, then="auto"), [ADD, "auto", "auto"]),
        (FirstStep("auto", then="required"), ["auto", "required", "required"]),
        (FirstStep("required", then=ADD), ["required", ADD, ADD]),
    ],
)
async def test_what_is_asked_for_in_which_step(choice: Any, steps: list[Any]) -> None:
    """O-21: alike as a field, an option and a hook's patch."""
    assert await asked(tool_choice=choice) == steps
    if choice is not None:
        assert await asked(options=RunOptions(tool_choice=choice), tool_choice="none") == steps
        plugin = Patch(RunPatch(tool_choice=choice))
        assert await asked(plugin, options=RunOptions(tool_choice="none")) == steps


@pytest.mark.anyio
async def test_a_step_patch_is_for_its_step() -> None:
    """O-21: whichever it is."""
    plugin = Patch(None, None, StepPatch(tool_choice=ADD))
    assert await asked(plugin, tool_choice="required") == ["required", ADD, None]


@pytest.mark.anyio
async def test_nothing_is_asked_for_without_tools() -> None:
    """O-21"""
    assert await asked(tools={}, tool_choice="required") == [None] * 3
    off = {"add": AgentToolConfig(add, enabled=False)}
    assert await asked(tools=off, tool_choice="none") == [None] * 3
    nothing = StepPatch(tools=[])
    assert await asked(Patch(None, *[nothing] * 3), tool_choice="auto") == [None] * 3
    hosted = {"web": ProviderTool("scripted", "web")}
    only = {"tools": {}, "provider_tools": hosted}
    assert await asked(tool_choice="auto", **only) == ["auto"] * 3
    assert await asked(tool_choice=ToolName("web"), **only) == [ToolName("web"), None, None]


@pytest.mark.anyio
async def test_a_tool_that_is_not_offered_is_not_asked_for() -> None:
    """O-21: a provider refuses that."""
    tools = {"add": AgentToolConfig(add, enabled=False), "look": look}
    assert await asked(tools=tools, tool_choice=ADD) == [None] * 3
    assert await asked(Patch(RunPatch(tools=["look"])), tool_choice=ADD) == [None] * 3
    assert await asked(Patch(None, StepPatch(tools=["look"])), tool_choice=ADD) == [None] * 3


def test_an_unknown_name_is_refused_at_the_definition() -> None:
    """O-21"""
    faults = refused_agent(tools={"add": add}, tool_choice=ToolName("subtract"))
    assert faults == {"tool_choice": "the agent declares no tool named 'subtract'"}
    faults = refused_agent(tool_choice=FirstStep("auto", then=ADD))
    assert faults == {"tool_choice": "the agent declares no tool named 'add'"}
    assert list(refused_agent(tool_choice=FirstStep(MISTAKEN))) == ["tool_choice.choice"]
    assert list(refused_agent(tool_choice=MISTAKEN)) == ["tool_choice"]


@pytest.mark.anyio
@pytest.mark.parametrize("step", [False, True])
async def test_an_unknown_name_of_a_hook_fails_the_run(step: bool) -> None:
    """O-21, R-33"""
    unknown = ToolName("subtract")
    plugin = (
        Patch(None, StepPatch(tool_choice=unknown))
        if step
        else Patch(RunPatch(tool_choice=unknown))
    )
    played = await play(endless("done"), plugins=[plugin])
    assert played.result.status == "failed"
    (error,) = played.errors
    assert isinstance(error, PluginError)
    assert "tool_choice: the agent declares no tool named 'subtract'" in str(error.__cause__)
