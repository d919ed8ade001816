"""The plugin, through the runtime's own door."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from pai_prompt_cache import Options, PromptCaching, prompt_cache
from pai_prompt_cache._key import key_of
from pai_prompt_cache._memory import Memory
from pai_prompt_cache._prefix import Chain, Head, Prefix
from pai_prompt_cache.plugin import register_lifecycle

from pai import (
    DefinitionError,
    ModelRequest,
    PromptCache,
    StepPatch,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    tool,
)
from pai.schema import compile_schema
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio


def breaks(events: list[Any]) -> list[Any]:
    return [
        event.value["break"]
        for event in events
        if event.type == "plugin" and event.name == "prompt-cache"
    ]


class Change:
    """Another plugin that patches the requests of some steps."""

    def __init__(self, **patches: StepPatch) -> None:
        self.patches = patches
        self.runs = 0

    @hookimpl
    def run_started(self, run):
        self.runs += 1

    @hookimpl
    def prepare_model_step(self, step):
        return self.patches.get(f"run{self.runs}")


@tool
def add(ctx: Any, a: int, b: int) -> int:
    """Add."""
    return a + b


@tool
def sub(ctx: Any, a: int, b: int) -> int:
    """Subtract."""
    return a - b


async def talk(plugin: object, *, runs: int = 3, **options: Any) -> tuple[list[Any], ScriptedModel]:
    """Play some runs on one thread; give the breaks of each, and the model."""
    model = ScriptedModel(lambda request: f"answer {len(request.messages)}")
    agent = define_agent(
        name="a", model=model, lifecycle=plugin, tools={"add": add, "sub": sub}, **options
    )
    found = []
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        thread = app.thread("main", thread_id="t")
        for _ in range(runs):
            run = await thread.send("go")
            await run.result()
            found.append(breaks([event async for event in run.events()]))
    return found, model


# ------------------------------------------------------------------------ choosing


async def test_each_step_carries_retention_and_key() -> None:
    """O-12, A-LIFE-5"""
    model = ScriptedModel([Call("add", {"a": 1, "b": 2}), "3"])
    agent = define_agent(name="a", model=model, lifecycle=prompt_cache(), tools={"add": add})
    await run_once(agent, "go")
    [first, second] = [request.prompt_cache for request in model.requests]
    assert first == second
    assert first is not None
    assert (first.retention, len(first.key or "")) == ("short", 32)


@pytest.mark.parametrize("retention", ["none", "short", "long"])
async def test_retention_is_as_chosen(retention: Any) -> None:
    """O-12"""
    for chosen in (retention, lambda step: retention):
        model = ScriptedModel(["x"])
        agent = define_agent(name="a", model=model, lifecycle=prompt_cache(chosen, key=None))
        await run_once(agent, "go")
        assert model.requests[0].prompt_cache == PromptCache(retention, None)


async def test_no_key_is_made_where_nothing_is_cached() -> None:
    asked: list[Any] = []
    plugin = prompt_cache("none", key=asked.append)
    _, model = await talk(plugin, runs=1)
    assert (asked, model.requests[0].prompt_cache) == ([], PromptCache("none"))


async def test_what_another_plugin_chose_stays() -> None:
    wish = PromptCache("long", "mine")
    plugin = compose_lifecycle(prompt_cache(), Change(run1=StepPatch(prompt_cache=wish)))
    _, model = await talk(plugin, runs=2)
    first, second = [request.prompt_cache for request in model.requests]
    assert first == wish
    assert second is not None
    assert second.retention == "short"


# ------------------------------------------------------------------------ keys


@attrs.frozen
class Identity:
    """Who."""

    user_id: str
    role: str = "x"


def run_of(identity: Any = None, thread: str = "t", agent: str = "a") -> Any:
    return SimpleNamespace(
        agent=SimpleNamespace(name=agent, version="1"), thread_id=thread, identity=identity
    )


def test_a_key_is_made_of_the_named_ids_and_of_nothing_else() -> None:
    """O-12"""
    key = key_of(("agent", "identity.user_id"))
    own = key(run_of({"user_id": "u", "role": "x"}))
    assert own == key(run_of({"user_id": "u", "role": "y"}, thread="other"))
    assert own == key(run_of(Identity("u")))
    assert own != key(run_of({"user_id": "v"}))
    assert own != key(run_of({"user_id": "u"}, agent="b"))
    assert key_of("thread")(run_of(thread="1")) != key_of("thread")(run_of(thread="2"))
    whole = key_of("identity")
    assert whole(run_of(Identity("u"))) == whole(run_of(Identity("u")))
    assert whole(run_of(Identity("u"))) != whole(run_of(Identity("u", "y")))


def test_a_key_shows_no_id() -> None:
    """R-40"""
    made = key_of(("identity.user_id",))(run_of({"user_id": "alice"}))
    assert made is not None
    assert "alice" not in made
    assert made == key_of(["identity.user_id"])(run_of({"user_id": "alice"}))


def test_ids_are_told_apart_by_their_names() -> None:
    assert key_of("agent")(run_of(agent="x")) != key_of("thread")(run_of(thread="x"))


def test_a_function_makes_the_key_itself() -> None:
    assert key_of(lambda run: f"k-{run.thread_id}")(run_of()) == "k-t"
    assert key_of(None)(run_of()) is None
    assert key_of(())(run_of()) is None


@pytest.mark.parametrize("key", ["run", "thread.id", "identity.", "identity..x", "", ["agent", 3]])
def test_what_is_no_id_is_refused(key: Any) -> None:
    with pytest.raises(DefinitionError, match="key"):
        prompt_cache(key=key)


def test_a_retention_that_nobody_knows_is_refused() -> None:
    with pytest.raises(DefinitionError, match="retention"):
        prompt_cache("forever")  # type: ignore[arg-type]  # the mistake


# ------------------------------------------------------------------------ breaks


async def test_nothing_is_said_while_the_prefix_holds(caplog: pytest.LogCaptureFixture) -> None:
    """O-12"""
    with caplog.at_level(logging.DEBUG, "pai.prompt_cache"):
        found, _ = await talk(prompt_cache())
    assert found == [[], [], []]
    assert [record.levelname for record in caplog.records] == ["DEBUG"] * 3


async def test_it_holds_over_the_steps_of_a_run() -> None:
    model = ScriptedModel([Call("add", {"a": 1, "b": 2}), Call("sub", {"a": 1, "b": 2}), "done"])
    agent = define_agent(
        name="a", model=model, lifecycle=prompt_cache(), tools={"add": add, "sub": sub}
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main").send("go")
        await run.result()
        assert breaks([event async for event in run.events()]) == []
    assert len(model.requests) == 3


@pytest.mark.parametrize(
    ("patch", "at"),
    [
        (StepPatch(tools=["add"]), "tools"),
        (StepPatch(instructions="Other."), "instructions"),
        (StepPatch(model=ScriptedModel(["x"], provider="other")), "model"),
    ],
)
async def test_a_break_is_told_once_and_says_what_changed(patch: StepPatch, at: str) -> None:
    """O-12"""
    # The change holds from the second run on, so that only there it is one.
    change = Change(run2=patch)
    found, _ = await talk(compose_lifecycle(change, prompt_cache()), runs=2, instructions="Be.")
    assert found[0] == []
    [told] = found[1]
    assert (told["step"], told["at"], told["changed"]) == (0, at, [at])
    assert told[at]
    assert told["before"] != told["after"]


async def test_an_edited_history_breaks_at_its_message() -> None:
    """O-12"""

    class Shorten:
        @hookimpl
        def prepare_model_step(self, step):
            messages = step.request.messages
            return StepPatch(messages=messages[2:]) if len(messages) > 4 else None

    found, _ = await talk(compose_lifecycle(Shorten(), prompt_cache()))
    assert found[:2] == [[], []]
    [told] = found[2]
    assert (told["at"], told["kept"], told["lost"]) == ("message 1", 1, 2)


async def test_a_shorter_history_that_the_cache_begins_with_is_no_break() -> None:
    """As where an answer is made again."""

    class First:
        @hookimpl
        def prepare_model_step(self, step):
            messages = step.request.messages
            return StepPatch(messages=messages[:1]) if len(messages) > 4 else None

    found, _ = await talk(compose_lifecycle(First(), prompt_cache()))
    assert found == [[], [], []]


async def test_threads_do_not_mix() -> None:
    """A-CTX-3: an id can repeat in another partition."""
    model = ScriptedModel(lambda request: "ok")
    agent = define_agent(name="a", model=model, lifecycle=prompt_cache())
    async with create_pai(
        agents={"main": agent}, plugins=(), scope_key=lambda who: who["w"]
    ) as app:
        for workspace, text in (("w1", "one"), ("w2", "two"), ("w1", "three")):
            thread = app.thread("main", identity={"w": workspace}, thread_id="t")
            run = await thread.send(text)
            await run.result()
            assert breaks([event async for event in run.events()]) == []


async def test_watching_can_be_left_out() -> None:
    change = Change(run2=StepPatch(tools=["add"]))
    found, model = await talk(compose_lifecycle(change, prompt_cache(watch=False)), runs=2)
    assert found == [[], []]
    assert model.requests[1].prompt_cache is not None


def test_of_many_threads_the_latest_are_remembered() -> None:
    memory = Memory(threads=3)
    prefix = Prefix(Head.of(ModelRequest("m", [])), Chain.of([]).hashes)
    for number in range(5):
        assert memory.swap(run_of(thread=str(number)), prefix) is None
    assert len(memory) == 3
    assert memory.swap(run_of(thread="2"), prefix) is prefix
    assert memory.swap(run_of(thread="0"), prefix) is None
    assert memory.swap(run_of(thread="2"), prefix) is prefix


# ------------------------------------------------------------------------ options


def test_it_works_without_options() -> None:
    """A-LIFE-5"""
    for options in (None, compile_schema(Options).parse({})):
        plugin = register_lifecycle(options)
        assert isinstance(plugin, PromptCaching)
        assert plugin.position == "last"


async def test_the_options_of_a_file_make_the_plugin() -> None:
    options = compile_schema(Options).parse({"retention": "long", "key": [], "watch": False})
    _, model = await talk(register_lifecycle(options), runs=1)
    assert model.requests[0].prompt_cache == PromptCache("long", None)
