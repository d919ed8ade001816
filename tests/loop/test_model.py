"""Choosing the model, its instructions, and what the application's functions are handed."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    AgentBehaviorInput,
    ContextInput,
    DefinitionError,
    ModelSelection,
    ModelSettings,
    PluginError,
    Respond,
    RunPatch,
    StepPatch,
    SystemMessage,
    compose_lifecycle,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..played import play


@tool
def look(ctx: Any) -> str:
    """Look."""
    return "seen"


TWO_STEPS: Any = [[Call("look")], "done"]


class Prepares:
    """Answers `prepare_run` with what it is given."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    @hookimpl
    def prepare_run(self, run):
        return self.answer


class Routes:
    """Answers `prepare_model_step` with what a function makes of the step."""

    def __init__(self, function: Any) -> None:
        self.function = function

    @hookimpl
    def prepare_model_step(self, step):
        return self.function(step)


class Transforms:
    def __init__(self) -> None:
        self.requests: list[Any] = []

    @hookimpl
    def transform_step_stream(self, step, stream):
        self.requests.append(step.request)
        return stream


# ------------------------------------------------------------------------ A-MODEL


@pytest.mark.anyio
@pytest.mark.parametrize("is_async", [False, True])
async def test_the_resolver_is_asked_once_an_episode(is_async: bool) -> None:
    """A-MODEL-1, A-MODEL-4"""
    asked: list[object] = []
    model = ScriptedModel(TWO_STEPS)

    def resolve(behavior: AgentBehaviorInput[Any]) -> ModelSelection:
        asked.append(behavior.runtime_context)
        return ModelSelection(model, ModelSettings(seed=1), {"scripted": {"x": 1}})

    async def resolve_later(behavior: AgentBehaviorInput[Any]) -> ModelSelection:
        return resolve(behavior)

    agent = define_agent(
        name="a",
        model=resolve_later if is_async else resolve,
        tools={"look": look},
        runtime_context=lambda given: given.thread_id,
    )
    played = await play(agent)
    assert asked == [played.state.thread.id]
    assert [request.settings.seed for request in model.requests] == [1, 1]
    assert [request.provider_options for request in model.requests] == [{"scripted": {"x": 1}}] * 2


def refused(_: object) -> Any:
    raise AssertionError("was asked")


@pytest.mark.anyio
async def test_a_run_patch_s_model_keeps_the_resolver_from_being_asked() -> None:
    """A-MODEL-4"""
    model = ScriptedModel(TWO_STEPS)
    agent = define_agent(
        name="a", model=refused, tools={"look": look}, lifecycle=Prepares(RunPatch(model=model))
    )
    assert (await play(agent)).result.text == "done"


@pytest.mark.anyio
async def test_a_patched_model_keeps_what_the_selection_says_besides() -> None:
    model = ScriptedModel(["hi"])
    agent = define_agent(
        name="a",
        model=ModelSelection(ScriptedModel(), ModelSettings(seed=1), {"x": {}}),
        lifecycle=Prepares(RunPatch(model=model, provider_options={"y": {}})),
    )
    await play(agent)
    (request,) = model.requests
    assert (request.settings.seed, request.provider_options) == (1, {"y": {}})


@pytest.mark.anyio
async def test_each_step_may_be_routed_to_another_model() -> None:
    """A-MODEL-5"""
    root, other = ScriptedModel([[Call("look")]]), ScriptedModel(["from the other"])
    routes = Routes(lambda step: StepPatch(model=other) if step.index else None)
    agent = define_agent(name="a", model=root, tools={"look": look}, lifecycle=routes)
    played = await play(agent)
    assert played.result.text == "from the other"
    assert len(root.requests) == len(other.requests) == 1


@pytest.mark.anyio
async def test_a_synthetic_answer_resolves_nothing() -> None:
    agent = define_agent(
        name="a", model=refused, instructions=refused, lifecycle=Prepares(Respond("no"))
    )
    assert (await play(agent)).result.text == "no"


@pytest.mark.anyio
async def test_a_synthetic_answer_with_a_transform_resolves_the_whole_request() -> None:
    """A-MODEL-6: root model and instructions are resolved, the provider is not called."""
    model = ScriptedModel()
    transforms = Transforms()
    agent = define_agent(
        name="a",
        model=lambda _: ModelSelection(model, ModelSettings(seed=3)),
        instructions=lambda _: "be kind",
        tools={"look": look},
        lifecycle=compose_lifecycle(Prepares(Respond("no")), transforms),
    )
    assert (await play(agent)).result.text == "no"
    (request,) = transforms.requests
    assert request.model is model
    assert request.settings.seed == 3
    assert [message.content for message in request.instructions] == ["be kind"]
    assert [spec.name for spec in request.tools] == ["look"]
    assert [message.text for message in request.messages] == ["go"]
    assert model.requests == []


@attrs.frozen
class WiderSettings(ModelSettings):
    timeout: float = 99.0


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["selection", "run", "step"])
async def test_only_the_settings_of_the_list_reach_a_driver(where: str) -> None:
    """A-MODEL-2"""
    model = ScriptedModel(["hi"])
    wide = WiderSettings(seed=1)
    hooks = {
        "selection": Prepares(None),
        "run": Prepares(RunPatch(model_settings=wide)),
        "step": Routes(lambda step: StepPatch(model_settings=wide)),
    }
    selection = ModelSelection(model, wide if where == "selection" else ModelSettings(seed=7))
    await play(define_agent(name="a", model=selection, lifecycle=hooks[where]))
    (request,) = model.requests
    assert type(request.settings) is ModelSettings
    assert request.settings.seed == 1


@pytest.mark.anyio
async def test_a_model_that_cannot_be_resolved_fails_the_run() -> None:
    played = await play(define_agent(name="a", model=lambda _: "nobody:knows"))
    assert played.result.status == "failed"
    assert isinstance(played.errors[0], DefinitionError)


@pytest.mark.anyio
async def test_a_model_that_a_patch_gives_and_nobody_knows_is_the_plugin_s_fault() -> None:
    for hook in (
        Prepares(RunPatch(model="nobody:knows")),
        Routes(lambda step: StepPatch(model="nobody:knows")),
    ):
        played = await play(define_agent(name="a", model=ScriptedModel(["hi"]), lifecycle=hook))
        assert isinstance(played.errors[0], PluginError)


# ------------------------------------------------------------------------ A-INSTR


@pytest.mark.anyio
async def test_instructions_are_written_for_each_step() -> None:
    """A-INSTR-1"""
    asked: list[str] = []

    async def write(behavior: AgentBehaviorInput[Any]) -> str:
        asked.append(behavior.thread_id)
        return f"step {len(asked)}"

    model = ScriptedModel(TWO_STEPS)
    await play(define_agent(name="a", model=model, instructions=write, tools={"look": look}))
    assert [request.instructions[0].content for request in model.requests] == ["step 1", "step 2"]


@pytest.mark.anyio
async def test_a_run_patch_replaces_the_instructions_whole() -> None:
    """A-INSTR-2: the root builder is not asked, lists are not merged."""
    left = Prepares(RunPatch(instructions=[SystemMessage("a"), SystemMessage("b")]))
    right = Prepares(RunPatch(instructions=[SystemMessage("c")]))
    model = ScriptedModel(TWO_STEPS)
    agent = define_agent(
        name="a", model=model, instructions=refused, tools={"look": look},
        lifecycle=compose_lifecycle(left, right),
    )  # fmt: skip
    await play(agent)
    told = [[message.content for message in request.instructions] for request in model.requests]
    assert told == [["c"], ["c"]]


@pytest.mark.anyio
async def test_options_stay_with_their_system_message() -> None:
    """A-INSTR-3"""
    messages = [SystemMessage("a", {"other": {"cache": True}}), SystemMessage("b")]
    for where in ("agent", "run", "step"):
        model = ScriptedModel(["hi"])
        agent = define_agent(
            name="a",
            model=model,
            instructions=messages if where == "agent" else "",
            lifecycle=compose_lifecycle(
                Prepares(RunPatch(instructions=messages) if where == "run" else None),
                Routes(
                    lambda _, w=where: StepPatch(instructions=messages) if w == "step" else None
                ),
            ),
        )
        await play(agent)
        assert model.requests[0].instructions == tuple(messages)


@pytest.mark.anyio
async def test_no_instructions_are_no_message() -> None:
    model = ScriptedModel(["hi"])
    await play(define_agent(name="a", model=model))
    assert model.requests[0].instructions == ()


# ------------------------------------------------------------------------ A-CTX


@attrs.frozen
class Identity:
    user: str


@attrs.frozen
class ClientData:
    locale: str = "en"


@pytest.mark.anyio
async def test_what_functions_are_handed() -> None:
    """A-CTX-1, A-CTX-2"""
    given: list[ContextInput] = []
    seen: dict[str, AgentBehaviorInput[Any]] = {}

    async def context(value: ContextInput) -> object:
        given.append(value)
        return SECRET

    def note(name: str, answer: Any) -> Any:
        def function(behavior: AgentBehaviorInput[Any]) -> Any:
            seen[name] = behavior
            return answer

        return function

    model = ScriptedModel(TWO_STEPS)
    agent = define_agent(
        name="a",
        model=note("model", model),
        instructions=note("instructions", "hi"),
        identity=Identity,
        client_data=ClientData,
        runtime_context=context,
        tools={"look": look},
    )
    played = await play(agent, identity={"user": "u"}, client_data={"locale": "de"})
    (value,) = given
    assert (value.identity, value.client_data) == (Identity("u"), ClientData("de"))
    assert value.thread_id == played.state.thread.id
    assert not value.signal.is_set()
    for behavior in seen.values():
        assert behavior.runtime_context is SECRET
        assert behavior.identity == Identity("u")
        assert behavior.client_data == ClientData("de")
        assert behavior.signal is value.signal
        assert behavior.thread_id == value.thread_id
    assert set(seen) == {"model", "instructions"}
    assert "runtime-only" not in played.seen


class Secret:
    def __repr__(self) -> str:
        return "runtime-only"


SECRET = Secret()


@pytest.mark.anyio
async def test_a_context_that_raises_fails_the_run() -> None:
    def context(_: ContextInput) -> object:
        raise RuntimeError("runtime-only")

    model = ScriptedModel(["hi"])
    played = await play(define_agent(name="a", model=model, runtime_context=context))
    assert (played.result.error or {})["code"] == "internal_error"
    assert "runtime-only" not in played.seen
    assert model.requests == []
