"""Options of one call: at the door, in the store, in what hooks see."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, strategies as st

from pai import (
    UNSET,
    FirstStep,
    InvalidInput,
    LazyTools,
    ModelSelection,
    ModelSettings,
    PaiError,
    PromptCache,
    ProviderTool,
    Reasoning,
    Retry,
    RunContext,
    RunOptions,
    RunPatch,
    ToolName,
    UnknownOptionError,
    budget,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    step_limit,
    until_finish_reason,
)
from pai.definition import run_options
from pai.testing import ScriptedModel

from ..played import play
from .agents import add, endless, look

EVERYTHING = RunOptions(
    model="demo",
    model_settings=ModelSettings(temperature=0.5, reasoning=Reasoning("low", budget_tokens=9)),
    provider_options={"openai": {"user": "u", "list": [1, {"a": None}]}},
    max_steps=3,
    stop_when=step_limit(2) | budget(tokens=9, tool_calls=3) & until_finish_reason("length"),
    tool_choice=FirstStep(ToolName("add"), then="required"),
    tool_execution="sequential",
    max_parallel_tools=2,
    retry=Retry(0, 1.5),
    prompt_cache=PromptCache("long", "k"),
    repair_tool_input=False,
    lazy_tools=LazyTools("full"),
    state={"page": 3},
    parent_run_id="p",
)


def test_options_are_json_and_back() -> None:
    """Whatever is set is in the JSON form, and what is not is absent."""
    stored = EVERYTHING.to_json()
    assert set(stored) == set(RunOptions.__annotations__) - {"output"}
    assert run_options(stored) == EVERYTHING
    assert RunOptions().to_json() == {}
    assert run_options({}) == RunOptions()
    assert RunOptions(state=None).to_json() == {"state": None}
    assert RunOptions().state is UNSET
    assert run_options({"prompt_cache": "short"}).prompt_cache == PromptCache("short")
    assert run_options(EVERYTHING) is EVERYTHING


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [*RunOptions.__annotations__, "step_limit", "any", "budget", "tool", "first"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=8,
    )
)
def test_whatever_comes_from_outside_is_taken_or_refused(value: Any) -> None:
    """Nothing else is raised, and what is taken is stable."""
    try:
        options = run_options(value)
    except PaiError:
        return
    assert run_options(options.to_json()) == options


async def send(options: Any) -> None:
    app = create_pai(agents={"a": endless(provider_tools={"web": ProviderTool("x", "web")})})
    async with app:
        thread = app.thread("a")
        for call in (lambda **given: thread.send("go", **given), thread.trigger):
            with pytest.raises(PaiError) as caught:
                await call(options=options)
            with pytest.raises(PaiError):
                await thread.state()
    raise caught.value


@pytest.mark.anyio
async def test_an_unknown_option_is_refused_by_name() -> None:
    """Nothing is written."""
    with pytest.raises(UnknownOptionError, match="temperatur: is no option of a run"):
        RunOptions(temperatur=1)
    with pytest.raises(TypeError):
        RunOptions(temperatur=1)
    with pytest.raises(UnknownOptionError) as caught:
        await send({"maxSteps": 1, "max_steps": 1})
    assert [fault.path for fault in caught.value.faults] == ["options.maxSteps"]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "paths"),
    [
        (5, ["options"]),
        ({"max_steps": 0, "retry": {"max_retries": "x"}}, ["retry.max_retries", "max_steps"]),
        ({"model": "nobody:x"}, ["model"]),
        ({"model": "x"}, ["model"]),
        ({"model": {"name": "demo"}}, ["model"]),
        ({"model_settings": {"temperature": "hot"}}, ["model_settings.temperature"]),
        ({"provider_options": {"openai": 1}}, ["provider_options.openai"]),
        ({"stop_when": {"any": [{"step_limit": 1}, {"budget": {}}]}}, ["stop_when.any[1].budget"]),
        ({"stop_when": {"budget": {"money": 1}}}, ["stop_when.budget"]),
        ({"stop_when": {"any": []}}, ["stop_when"]),
        ({"tool_choice": {"tool": "subtract"}}, ["tool_choice"]),
        ({"tool_choice": {"first": "auto", "then": {"tool": "x"}}}, ["tool_choice"]),
        ({"tool_choice": {"name": "add"}}, ["tool_choice"]),
        ({"tool_choice": "sometimes"}, ["tool_choice"]),
        ({"tool_execution": "later", "max_parallel_tools": 0}, ["tool_execution", "max_parallel_tools"]),
        ({"retry": {"max_wait": -1}}, ["retry.max_wait"]),
        ({"prompt_cache": "forever"}, ["prompt_cache"]),
        ({"repair_tool_input": "yes"}, ["repair_tool_input"]),
        ({"lazy_tools": {"describe": "some"}}, ["lazy_tools.describe"]),
        ({"state": float("nan")}, ["state"]),
        ({"parent_run_id": ""}, ["parent_run_id"]),
    ],
)  # fmt: skip
async def test_what_does_not_fit_is_refused_at_the_door(options: Any, paths: list[str]) -> None:
    """With the path of each fault; nothing is written."""
    with pytest.raises(InvalidInput) as caught:
        await send(options)
    found = [fault.path.removeprefix("options").removeprefix(".") for fault in caught.value.faults]
    assert found == [path.removeprefix("options") for path in paths]


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"stop_when": lambda state: True}, "stop_when: a function belongs into define_agent"),
        ({"stop_when": step_limit(1) | (lambda s: True)}, "stop_when: a function belongs into"),
        ({"repair_tool_input": lambda given: None}, "repair_tool_input: expected True or False"),
        ({"model": ScriptedModel()}, "model: expected a name"),
        ({"state": {"a": object()}}, "state.a: "),
        ({"output": int}, "output: expected the name of an output"),
    ],
)
def test_what_can_not_be_stored_is_no_option(fields: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        RunOptions(**fields)


class Watch:
    def __init__(self, patch: RunPatch | None = None) -> None:
        self.patch = patch
        self.runs: list[RunContext[Any]] = []

    @hookimpl
    def prepare_run(self, run: RunContext[Any]) -> RunPatch | None:
        self.runs.append(run)
        return self.patch


@pytest.mark.anyio
async def test_hooks_see_the_options_and_the_run_has_its_parent() -> None:
    watch = Watch()
    options = RunOptions(state={"page": 3}, parent_run_id="p", max_steps=2)
    played = await play(endless("done"), plugins=[watch], options=options)
    (run,) = watch.runs
    assert run.options == {"state": {"page": 3}, "parent_run_id": "p", "max_steps": 2}
    assert run.parent_run_id == played.state.runs[0].parent_run_id == "p"
    assert played.of("run-queued")[0].parent_run_id == "p"
    await play(endless("done"), plugins=[watch])
    assert watch.runs[1].options == {}


@pytest.mark.anyio
async def test_what_a_caller_changes_later_is_not_what_was_stored() -> None:
    watch = Watch()
    state = {"page": [1]}
    app = create_pai(agents={"a": endless("done")}, plugins=[watch])
    async with app:
        run = await app.thread("a").send("go", options=RunOptions(state=state))
        state["page"].append(2)
        await run.result()
    assert watch.runs[0].options["state"] == {"page": [1]}


@pytest.mark.anyio
async def test_the_same_run_id_with_other_options_is_a_conflict() -> None:
    """O-18"""
    app = create_pai(agents={"a": endless("one", "two")})
    async with app:
        thread = app.thread("a")
        await thread.trigger(run_id="r", options=RunOptions(max_steps=2))
        await thread.trigger(run_id="r", options={"max_steps": 2})
        with pytest.raises(PaiError, match="r"):
            await thread.trigger(run_id="r", options={"max_steps": 3})


@pytest.mark.anyio
async def test_options_of_a_run_without_a_thread() -> None:
    result = await run_once(endless(), "go", options=RunOptions(max_steps=2))
    assert result.stop_reason == "max_steps"


# ---------------------------------------------------------------------------- the model


SETTINGS = [ModelSettings(temperature=value) for value in (0.1, 0.2, 0.3)]
OPTIONS: list[dict[str, dict[str, Any]]] = [{"x": {"n": number}} for number in range(3)]


@pytest.mark.anyio
@pytest.mark.parametrize("patched", [False, True])
async def test_model_settings_and_provider_options(patched: bool) -> None:
    """The options win over the agent, hooks win over them."""
    model = ScriptedModel(["done"])
    definition = define_agent(
        name="a", model=ModelSelection(model, SETTINGS[0], OPTIONS[0]), tools={"add": add}
    )
    options = RunOptions(model_settings=SETTINGS[1], provider_options=OPTIONS[1])
    patch = RunPatch(model_settings=SETTINGS[2], provider_options=OPTIONS[2]) if patched else None
    await play(definition, options=options, plugins=[Watch(patch)])
    (request,) = model.requests
    assert request.settings == SETTINGS[2 if patched else 1]
    assert request.provider_options == OPTIONS[2 if patched else 1]


@pytest.mark.anyio
async def test_the_model_of_the_options() -> None:
    """A-MODEL-4: then the agent's resolver is not asked."""

    def resolve(given: Any) -> Any:
        raise AssertionError("asked")

    definition = define_agent(name="a", model=resolve, tools={"add": add, "look": look})
    played = await play(definition, "hello", options=RunOptions(model="demo"))
    assert played.errors == []
    assert played.result.status == "completed"
    own = ScriptedModel(["own"])
    patched = await play(
        definition, "hello", options=RunOptions(model="demo"), plugins=[Watch(RunPatch(model=own))]
    )
    assert patched.result.text == "own"
