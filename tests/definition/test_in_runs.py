"""What a definition means when it runs, at the door where everything passes: ``run_once``."""

from __future__ import annotations

from collections import UserDict
from itertools import count
from typing import Any

import attrs
import pytest

from pai import (
    AgentBehaviorInput,
    AgentToolConfig,
    ContextInput,
    InvalidInput,
    MetadataPatch,
    MetadataSchemas,
    ModelSelection,
    ModelSettings,
    ProviderTool,
    RunPatch,
    Signal,
    SystemMessage,
    ToolContext,
    create_agent_runtime,
    define_agent,
    define_tool,
    hookimpl,
    run_once,
    tool,
)
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio


@attrs.frozen
class User:
    user_id: str
    workspace_id: str = "w1"


@attrs.frozen
class Page:
    url: str = "/"


@attrs.frozen
class Ctx:
    user: str


class Asked:
    """Keeps what the agent's functions were handed."""

    def __init__(self) -> None:
        self.contexts: list[ContextInput] = []
        self.inputs: list[AgentBehaviorInput[Any]] = []

    async def build(self, given: ContextInput) -> Ctx:
        self.contexts.append(given)
        assert isinstance(given.identity, User)
        return Ctx(given.identity.user_id)

    def keep(self, given: AgentBehaviorInput[Any]) -> AgentBehaviorInput[Any]:
        self.inputs.append(given)
        return given


@pytest.mark.parametrize("identity", [User("u1"), {"user_id": "u1"}, UserDict({"user_id": "u1"})])
async def test_identity_is_given_as_an_instance_or_as_a_mapping(identity: object) -> None:
    """A-DEF-4: it is validated, and code sees an instance."""
    asked = Asked()
    agent = define_agent(
        name="calc", model=ScriptedModel(["hi"]), identity=User, runtime_context=asked.build
    )
    result = await run_once(agent, "hello", identity=identity)
    result.raise_for_status()
    assert asked.contexts[0].identity == User("u1", "w1")


async def test_identity_and_client_data_that_do_not_fit_are_refused_before_the_run() -> None:
    """A-DEF-4."""
    model = ScriptedModel(["hi"])
    agent = define_agent(name="calc", model=model, identity=User, client_data=Page)
    with pytest.raises(InvalidInput) as caught:
        await run_once(agent, "hello", identity={"user_id": 7}, client_data={"url": "/"})
    assert [fault.path for fault in caught.value.faults] == ["identity.user_id"]
    with pytest.raises(InvalidInput) as caught:
        await run_once(agent, "hello", identity={"user_id": "u"}, client_data={"url": 7})
    assert [fault.path for fault in caught.value.faults] == ["client_data.url"]
    assert model.requests == []


async def test_every_function_is_handed_the_same_five_things() -> None:
    """A-CTX-1, A-CTX-2: context, identity, client data, thread id, signal; sync and async."""
    asked = Asked()
    model = ScriptedModel([Call("whoami", {}, "c1"), "done"])

    async def choose(given: AgentBehaviorInput[Ctx]) -> ModelSelection:
        asked.keep(given)
        return ModelSelection(model, ModelSettings(seed=7), {"scripted": {"x": 1}})

    def enabled(given: AgentBehaviorInput[Ctx]) -> bool:
        return bool(asked.keep(given).runtime_context == Ctx("u1"))

    async def map_context(given: AgentBehaviorInput[Ctx]) -> str:
        return f"mapped {asked.keep(given).runtime_context.user}"

    @tool(context=str)
    def whoami(ctx: ToolContext[str]) -> str:
        """Say who asks."""
        return ctx.context

    agent = define_agent(
        name="calc",
        model=choose,
        instructions=lambda given: f"You serve {asked.keep(given).runtime_context.user}.",
        identity=User,
        client_data=Page,
        runtime_context=asked.build,
        tools={"whoami": AgentToolConfig(whoami, enabled=enabled, map_context=map_context)},
    )
    result = await run_once(agent, "hello", identity={"user_id": "u1"}, client_data={"url": "/a"})
    result.raise_for_status()
    assert len(asked.contexts) == 1
    built = asked.contexts[0]
    assert {attrs.astuple(item, recurse=False) for item in asked.inputs} == {
        (Ctx("u1"), User("u1"), Page("/a"), built.thread_id, built.signal)
    }
    assert isinstance(built.signal, Signal)
    first, second = model.requests
    # A-MODEL-1, A-MODEL-3, A-INSTR-1: the selection and the instructions reach the driver.
    assert first.settings == ModelSettings(seed=7)
    assert first.provider_options == {"scripted": {"x": 1}}
    assert first.instructions == (SystemMessage("You serve u1."),)
    last: Any = second.messages[-1].parts[0]
    assert last.output == "mapped u1"


async def test_settings_that_are_wider_than_ours_lose_what_is_not_ours() -> None:
    """A-MODEL-2: the list of settings is applied again when they are used."""

    @attrs.frozen
    class Wider(ModelSettings):
        timeout: float = 5.0
        headers: Any = None

    model = ScriptedModel(["hi"])
    selection = ModelSelection(model, Wider(temperature=0.5, headers={"x": "y"}))
    agent = define_agent(name="calc", model=selection)
    (await run_once(agent, "hello")).raise_for_status()
    assert type(model.requests[0].settings) is ModelSettings
    assert model.requests[0].settings == ModelSettings(temperature=0.5)


async def test_options_of_a_message_stay_with_it() -> None:
    """A-INSTR-1, A-INSTR-3."""
    messages = [SystemMessage("a", {"scripted": {"cache": True}}), SystemMessage("b")]
    model = ScriptedModel(["hi"])
    agent = define_agent(name="calc", model=model, instructions=messages)
    (await run_once(agent, "hello")).raise_for_status()
    assert model.requests[0].instructions == tuple(messages)


async def test_a_default_factory_runs_anew_for_each_run_and_thread() -> None:
    """A-META-3: what was made when the agent was defined is never kept."""
    numbers = count()

    @attrs.frozen
    class Numbered:
        number: int = attrs.field(factory=lambda: next(numbers))

    seen: list[tuple[Any, Any]] = []

    class Keep:
        @hookimpl
        def prepare_run(self, run: Any) -> None:
            seen.append((run.metadata.private["number"], run.thread.metadata.public["number"]))

    bags = MetadataSchemas(private=Numbered, public=Numbered)
    agent = define_agent(
        name="calc",
        model=ScriptedModel(["a", "b"]),
        run_metadata=bags,
        thread_metadata=bags,
        lifecycle=Keep(),
    )
    defined = next(numbers)
    async with create_agent_runtime(agent=agent) as app:
        thread = app.thread("calc")
        for text in ("one", "two"):
            (await (await thread.send(text)).result()).raise_for_status()
    (first, own), (second, same) = seen
    assert len({first, second, own}) == 3
    assert own == same
    assert min(first, second, own) > defined


async def test_a_refused_patch_fails_the_run_and_changes_nothing() -> None:
    """A-META-5, A-META-6: neither bag, and the error shows no private value."""

    @attrs.frozen
    class Private:
        token: str = ""

    @attrs.frozen
    class Public:
        rating: int = 0

    class Patch:
        @hookimpl
        def prepare_run(self, run: Any) -> RunPatch:
            return RunPatch(
                run_metadata=MetadataPatch(
                    private={"token": ["planted-secret"]}, public={"rating": 5}
                )
            )

    errors: list[BaseException] = []
    agent = define_agent(
        name="calc",
        model=ScriptedModel(["hi"]),
        run_metadata=MetadataSchemas(private=Private, public=Public),
        lifecycle=Patch(),
    )
    async with create_agent_runtime(agent=agent, on_runtime_error=errors.append) as app:
        thread = app.thread("calc")
        result = await (await thread.send("hello")).result()
        state = await thread.state()
    assert result.status == "failed"
    assert state.runs[0].metadata == {"rating": 0}
    assert errors
    assert "planted-secret" not in "".join(map(str, errors)) + str(state)


@attrs.frozen
class Question:
    words: list[str]


@attrs.frozen
class Answer:
    text: str


async def test_input_and_output_of_a_tool_are_validated_on_both_sides() -> None:
    """A-TOOL-6: execute gets an instance; what it returns is checked before the model sees it."""
    got: list[Question] = []

    def answer(ctx: ToolContext[object], given: Question) -> Answer:
        got.append(given)
        wrong: Any = 7
        return Answer("yes") if len(given.words) == 1 else Answer(wrong)

    asks = define_tool(
        name="ask", description="Ask.", input=Question, output=Answer, execute=answer
    )
    model = ScriptedModel(
        [
            [
                Call("ask", {"words": ["a"]}, "c1"),
                Call("ask", {"words": ["a", "b"]}, "c2"),
                Call("ask", {"words": "a"}, "c3"),
            ],
            "done",
        ]
    )
    agent = define_agent(name="calc", model=model, tools={"ask": asks})
    result = await run_once(agent, "hello", on_runtime_error=lambda error: None)
    result.raise_for_status()
    assert sorted(got, key=lambda given: len(given.words)) == [
        Question(["a"]),
        Question(["a", "b"]),
    ]
    parts: list[Any] = list(model.requests[1].messages[-1].parts)
    assert [part.outcome for part in parts] == ["completed", "failed", "failed"]
    assert parts[0].output == {"text": "yes"}
    assert "input.words" in parts[2].error


async def test_provider_tools_reach_the_driver_as_they_were_declared() -> None:
    """A-TOOL-7."""
    search = ProviderTool("scripted", "web_search", {"filters": {"domain": "example.org"}})
    model = ScriptedModel(["hi"])
    agent = define_agent(name="calc", model=model, provider_tools={"web_search": search})
    (await run_once(agent, "hello")).raise_for_status()
    assert model.requests[0].provider_tools == (search,)
    assert model.requests[0].tools == ()


@attrs.frozen
class Progress:
    percent: int = attrs.field(validator=attrs.validators.le(100))


async def test_a_data_part_is_checked_where_it_is_written() -> None:
    """A-UI-1, A-UI-2: an unregistered or invalid part is refused in the tool that writes it."""
    refused: list[str] = []

    @tool
    def work(ctx: ToolContext[object]) -> str:
        """Work."""
        ctx.write_data("report-progress", Progress(50), id="p")
        ctx.write_data("report-progress", {"percent": 60}, id="p")
        for name, value in (
            ("report-progress", {"percent": 101}),
            ("report-progress", {"percent": 1, "more": 1}),
            ("other", {}),
        ):
            try:
                ctx.write_data(name, value)
            except InvalidInput as error:
                refused.extend(fault.path for fault in error.faults)
        return "ok"

    agent = define_agent(
        name="calc",
        model=ScriptedModel([Call("work"), "done"]),
        tools={"work": work},
        ui_data={"report-progress": Progress},
    )
    async with create_agent_runtime(agent=agent) as app:
        run = await app.thread("calc").send("hello")
        written = [event.value async for event in run.events() if event.type == "data"]
    assert refused == ["report-progress.percent", "report-progress.more", "other"]
    assert written == [{"percent": 50}, {"percent": 60}]


async def test_patches_select_provider_tools_and_never_bring_one() -> None:
    """A-TOOL-7: a subset of the very definitions, by name."""
    search = ProviderTool("scripted", "web_search")
    files = ProviderTool("scripted", "file_search")

    class Select:
        def __init__(self, *names: str) -> None:
            self.names = names

        @hookimpl
        def prepare_run(self, run: Any) -> RunPatch:
            return RunPatch(provider_tools=self.names)

    async def requested(*names: str) -> Any:
        model = ScriptedModel(["hi"])
        agent = define_agent(
            name="calc",
            model=model,
            provider_tools={"web_search": search, "file_search": files},
            lifecycle=Select(*names),
        )
        result = await run_once(agent, "hello", on_runtime_error=lambda error: None)
        return result.status, [
            item for request in model.requests for item in request.provider_tools
        ]

    assert await requested("file_search") == ("completed", [files])
    assert await requested() == ("completed", [])
    assert await requested("file_search", "code_interpreter") == ("failed", [])


async def test_a_context_of_another_class_is_found_at_the_first_step() -> None:
    """A-TOOL-4: where no type said so before."""

    @tool(context=int)
    def look(ctx: ToolContext[int]) -> str:
        """Look."""
        return "looked"

    errors: list[BaseException] = []

    def build(given: ContextInput) -> Any:
        return "one"

    agent = define_agent(
        name="calc",
        model=ScriptedModel([Call("look"), "done"]),
        runtime_context=build,
        tools={"look": look},
    )
    result = await run_once(agent, "hello", on_runtime_error=errors.append)
    assert result.status == "failed"
    assert "map_context" in "".join(map(str, errors))
