"""What patches change: all that is set, and nothing else."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from pai import (
    FirstStep,
    InvalidInput,
    Message,
    MetadataPatch,
    ModelSettings,
    PluginError,
    ProviderTool,
    Respond,
    RunPatch,
    StepPatch,
    TextPart,
    ToolCallPart,
    compose_lifecycle,
    define_agent,
    hookimpl,
    tool,
)
from pai.protocol import new_id
from pai.testing import Call, ScriptedModel

from ..played import play


@tool
def look(ctx: Any) -> str:
    """Look."""
    return "seen"


@tool
def listen(ctx: Any) -> str:
    """Listen."""
    return "heard"


SEARCH = ProviderTool("scripted", "web_search")
DRAW = ProviderTool("scripted", "image")


class Run:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[Any] = []

    @hookimpl
    def prepare_run(self, run):
        self.seen.append(run.patch)
        return self.answer(run) if callable(self.answer) else self.answer


class Step:
    def __init__(self, answer: Any) -> None:
        self.answer = answer
        self.seen: list[Any] = []

    @hookimpl
    async def prepare_model_step(self, step):
        self.seen.append(step.request)
        return self.answer(step) if callable(self.answer) else self.answer


def agent(*plugins: object, turns: Any = None, **fields: Any) -> Any:
    return define_agent(
        name="a",
        model=ScriptedModel(turns or [[Call("look")], "done"]),
        instructions="root",
        tools={"look": look, "listen": listen},
        provider_tools={"web_search": SEARCH, "image": DRAW},
        lifecycle=compose_lifecycle(*plugins),
        **fields,
    )


def said(text: str) -> Message:
    from datetime import UTC, datetime

    return Message(new_id(), "user", (TextPart(text),), "r", datetime.now(UTC))


OTHER = ScriptedModel(lambda request: "other")
FIELDS: dict[str, tuple[Any, Any]] = {
    "model": (OTHER, lambda request: request.model is OTHER),
    "model_settings": (ModelSettings(seed=9), lambda request: request.settings.seed == 9),
    "provider_options": ({"x": {"y": 1}}, lambda request: request.provider_options == {"x": {"y": 1}}),
    "instructions": ("new", lambda request: [m.content for m in request.instructions] == ["new"]),
    "messages": ([said("edited")], lambda request: request.messages[0].text == "edited"),
    "tools": (["listen"], lambda request: [spec.name for spec in request.tools] == ["listen"]),
    "provider_tools": (["image"], lambda request: request.provider_tools == (DRAW,)),
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["run", "step"])
@pytest.mark.parametrize("field", FIELDS)
async def test_each_field_takes_effect_alone(kind: str, field: str) -> None:
    """Only what is set is applied."""
    value, holds = FIELDS[field]
    plugin = Run(RunPatch(**{field: value})) if kind == "run" else Step(StepPatch(**{field: value}))
    last = Step(None)
    await play(agent(plugin, last, turns=["hi"]))
    (request,) = last.seen
    for name, (_, other) in FIELDS.items():
        assert other(request) == (name == field), name
    assert holds(request)


@pytest.mark.anyio
async def test_a_run_patch_holds_for_the_episode_a_step_patch_for_its_step() -> None:
    run = Run(RunPatch(instructions="all", messages=[said("edited")]))
    step = Step(lambda step: None if step.index else StepPatch(instructions="first"))
    definition = agent(run, step)
    await play(definition)
    first, second = definition.model.requests
    assert [first.instructions[0].content, second.instructions[0].content] == ["first", "all"]
    # The messages of this run come after those a patch put for the history.
    assert [message.text for message in first.messages] == ["edited"]
    assert [message.role for message in second.messages] == ["user", "assistant"]


@pytest.mark.anyio
async def test_patches_are_piped() -> None:
    """R-31: each hook sees what those further left decided."""
    left = Run(RunPatch(instructions="a", tools=["look"]))
    right = Run(lambda run: RunPatch(instructions=run.patch.instructions + "b"))
    steps = [Step(StepPatch(provider_options={"x": {}})), Step(None)]
    definition = agent(left, right, *steps)
    await play(definition)
    assert left.seen == [None]
    assert steps[0].seen[0].instructions[0].content == "ab"
    assert [spec.name for spec in steps[0].seen[0].tools] == ["look"]
    assert steps[1].seen[0].provider_options == {"x": {}}


@pytest.mark.anyio
async def test_respond_keeps_what_was_patched_further_left() -> None:
    @attrs.frozen
    class Bag:
        note: str = ""

    from pai import MetadataSchemas

    schemas = MetadataSchemas(private=Bag, public=Bag)
    note = MetadataPatch(public={"note": "kept"})
    lost = MetadataPatch(public={"note": "lost"})
    definition = agent(
        Run(RunPatch(run_metadata=note, thread_metadata=note, message_metadata=note)),
        Run(Respond("no")),
        Run(RunPatch(run_metadata=lost)),
        run_metadata=schemas,
        thread_metadata=schemas,
        message_metadata=schemas,
    )
    played = await play(definition)
    assert played.state.runs[0].metadata == {"note": "kept"}
    assert played.state.thread.metadata == {"note": "kept"}
    assert played.state.messages[1].metadata == {"note": "kept"}


@pytest.mark.anyio
@pytest.mark.parametrize("field", ["tools", "provider_tools"])
async def test_a_patch_introduces_no_tool(field: str) -> None:
    """A-TOOL-7"""
    stranger: Any = {field: ["stranger"]}
    for plugin in (
        Run(RunPatch(**stranger)),
        Step(StepPatch(**stranger)),
    ):
        (told,) = (await play(agent(plugin))).errors
        assert isinstance(told, PluginError)
        assert f"{field}.stranger: the agent declares no tool of this name" in str(told.__cause__)


@pytest.mark.anyio
async def test_a_step_patch_cannot_bring_back_what_the_run_left_out() -> None:
    run = Run(RunPatch(tools=["look"], provider_tools=["image"]))
    step = Step(StepPatch(tools=["look", "listen"], provider_tools=["image", "web_search"]))
    definition = agent(run, step)
    await play(definition)
    request = definition.model.requests[0]
    assert [spec.name for spec in request.tools] == ["look"]
    assert request.provider_tools == (DRAW,)


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["run", "step", "empty"])
async def test_a_tool_that_a_patch_left_out_does_not_run(kind: str) -> None:
    """A-TOOL-3: not even by a forged call."""
    plugin = {
        "run": Run(RunPatch(tools=["listen"])),
        "step": Step(StepPatch(tools=["listen"])),
        "empty": Run(RunPatch(tools=[])),
    }[kind]
    played = await play(agent(plugin))
    (call,) = [p for m in played.state.messages for p in m.parts if isinstance(p, ToolCallPart)]
    assert (call.outcome, call.error) == ("failed", "The tool 'look' is not available now.")


@pytest.mark.anyio
async def test_max_steps_of_a_run_patch() -> None:
    definition = agent(Run(RunPatch(max_steps=1)))
    played = await play(definition)
    assert played.result.stop_reason == "max_steps"
    assert len(definition.model.requests) == 1


@pytest.mark.parametrize(
    ("kind", "fields", "text"),
    [
        (RunPatch, {"max_steps": 0}, "max_steps: expected a whole number of at least 1"),
        (RunPatch, {"max_steps": True}, "max_steps"),
        (StepPatch, {"tools": "look"}, "tools: expected a list of names"),
        (StepPatch, {"messages": ["hi"]}, "messages: expected a list of messages"),
        (StepPatch, {"instructions": ["hi"]}, "instructions: expected text"),
        (StepPatch, {"model_settings": {"seed": 1}}, "model_settings: expected ModelSettings"),
        (StepPatch, {"provider_options": []}, "provider_options: expected options"),
        (RunPatch, {"model": 5}, "model: expected a driver or a name"),
        (RunPatch, {"run_metadata": {}}, "run_metadata: expected MetadataPatch"),
        (StepPatch, {"wrap_transport": 1}, "wrap_transport: expected a function"),
        (StepPatch, {"tool_choice": "nothing"}, "tool_choice: expected 'auto'"),
        (StepPatch, {"tool_choice": FirstStep("none")}, "tool_choice: is for one step"),
        (
            RunPatch,
            {"tool_choice": FirstStep(cast("Any", "nothing"))},
            "tool_choice: choice: expected 'auto'",
        ),
        (RunPatch, {"stop_when": 1}, "stop_when: expected step_limit"),
    ],
)
def test_what_can_be_no_patch(kind: Any, fields: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        kind(**fields)


def test_all_that_is_wrong_with_a_patch_is_told_at_once() -> None:
    with pytest.raises(InvalidInput) as caught:
        RunPatch(max_steps=0, tools="look", output={})
    assert [fault.path for fault in caught.value.faults] == ["tools", "output", "max_steps"]


def test_respond_takes_no_tool_calls() -> None:
    with pytest.raises(InvalidInput, match="an answer has text"):
        Respond([TextPart("a"), ToolCallPart("c", "look")])
