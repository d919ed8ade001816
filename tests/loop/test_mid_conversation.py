"""What of tools and instructions has changed since the last call (O-10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest
from hypothesis import given, strategies as st

from pai import (
    AgentToolConfig,
    ModelProfile,
    ModelRequest,
    RunPatch,
    StepPatch,
    SystemMessage,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.loop._mid_conversation import Offer, follow, hash_text, plan
from pai.protocol import Message, TextPart, new_id
from pai.testing import Call, ScriptedModel

BOTH = ModelProfile(mid_conversation=("tools", "instructions"))


@pytest.mark.parametrize(
    ("text", "hash_"),
    [("", "811c9dc5"), ("a", "e40c292c"), ("foobar", "bf9cf968"), ("ü", "119dd44a")],
)
def test_hashes_are_portable(text: str, hash_: str) -> None:
    """The same numbers in every language."""
    assert hash_text(text) == hash_


# ---------------------------------------------------------------------------- in runs


@tool
def a(ctx) -> str:
    """A."""
    return ""


@tool
def b(ctx) -> str:
    """B."""
    return ""


@attrs.define
class World:
    """What an agent offers in its next step."""

    b: bool = False
    more: tuple[str, ...] = ()
    patch: Any = None

    def agent(self, model: ScriptedModel) -> Any:
        world = self

        class Patches:
            @hookimpl
            def prepare_model_step(self):
                return world.patch

        return define_agent(
            name="x",
            model=model,
            tools={"a": a, "b": AgentToolConfig(b, enabled=lambda given: world.b)},
            instructions=lambda given: [SystemMessage(t) for t in ("head", *world.more)],
            lifecycle=Patches(),
        )


def sent(model: ScriptedModel) -> list[Any]:
    return [asked.mid_conversation for asked in model.requests]


def start(*tools: str, instructions: int = 1) -> Any:
    return {"tools": list(tools), "instructions": instructions}


def rebuilt(request: ModelRequest) -> tuple[list[str], list[str]]:
    """Tools and instructions as a driver finds them that follows the changes."""
    told: Any = request.mid_conversation
    tools = list(told["start"]["tools"])
    count = told["start"]["instructions"]
    said = [each.content for each in request.instructions[:count]]
    for change in told["changes"]:
        assert 0 < change["message"] <= len(request.messages)
        tools += change["tools"]
        said += [request.instructions[index].content for index in change["instructions"]]
    return tools, said


@pytest.mark.anyio
@pytest.mark.parametrize("store", ["memory", "sqlite"])
async def test_changes_within_and_between_runs(store, tmp_path: Path) -> None:
    """What is added is told at its place; the whole lists stay; a restart goes on with it."""
    world = World()

    def turns(request: ModelRequest) -> Any:
        world.b = True
        return Call("a") if len(request.messages) == 1 else "ok"

    model = ScriptedModel(turns, profile=BOTH)
    url = "memory:" if store == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"
    with anyio.fail_after(20):
        async with create_pai(agents={"x": world.agent(model)}, store=url) as app:
            await (await app.thread("x", thread_id="t").send("1")).result()
            if store == "memory":
                await self_check(app, world, model)
                return
        async with create_pai(agents={"x": world.agent(model)}, store=url) as app:
            await self_check(app, world, model)


async def self_check(app: Any, world: World, model: ScriptedModel) -> None:
    world.more = ("more",)
    await (await app.thread("x", thread_id="t").send("2")).result()
    one = {"message": 2, "tools": ["b"], "instructions": []}
    two = {"message": 4, "tools": [], "instructions": [1]}
    assert sent(model) == [
        {"start": start("a"), "changes": []},
        {"start": start("a"), "changes": [one]},
        {"start": start("a"), "changes": [one, two]},
    ]
    for asked in model.requests:
        tools, said = rebuilt(asked)
        assert sorted(tools) == sorted(spec.name for spec in asked.tools)
        assert said == [each.content for each in asked.instructions]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (World(b=True), World()),
        (World(more=("x",)), World()),
        (World(more=("x",)), World(more=("y",))),
        (World(patch=StepPatch(tools=[])), World()),
        (World(), World(patch=StepPatch(messages=[]))),
        (
            World(),
            World(patch=StepPatch(model=ScriptedModel(lambda _: "ok", provider="o", profile=BOTH))),
        ),
    ],
)
async def test_what_is_a_new_beginning(before: World, after: World) -> None:
    """Something is gone or edited, or there was no tool; or another model is asked."""
    world = World(before.b, before.more, before.patch)
    model = ScriptedModel(["1", "2"], profile=BOTH)
    with anyio.fail_after(20):
        async with create_pai(agents={"x": world.agent(model)}) as app:
            thread = app.thread("x")
            await (await thread.send("1")).result()
            world.b, world.more, world.patch = after.b, after.more, after.patch
            result = await (await thread.send("2")).result()
    assert result.status == "completed"
    routed = getattr(getattr(after.patch, "model", None), "requests", [])
    last = (routed or model.requests)[-1]
    assert last.mid_conversation is not None
    assert last.mid_conversation["changes"] == []


@pytest.mark.anyio
@pytest.mark.parametrize("channels", [("tools",), ("instructions",)])
async def test_one_channel_alone(channels) -> None:
    world = World()
    model = ScriptedModel(["1", "2"], profile=ModelProfile(mid_conversation=channels))
    with anyio.fail_after(20):
        async with create_pai(agents={"x": world.agent(model)}) as app:
            thread = app.thread("x")
            await (await thread.send("1")).result()
            world.b, world.more = channels == ("instructions",), ("x",) * (channels == ("tools",))
            await (await thread.send("2")).result()
    assert sent(model)[1]["changes"] == []


@pytest.mark.anyio
async def test_other_drivers_get_nothing() -> None:
    """Neither where the agent's own has no channel, nor where a hook sends a request elsewhere."""
    plain = ScriptedModel(["1"])
    other = ScriptedModel(["2"])

    class Elsewhere:
        @hookimpl
        async def wrap_model_call(self, step, call_model):
            async for part in call_model(attrs.evolve(step.request, model=other)):
                yield part

    with anyio.fail_after(20):
        for agent in (
            define_agent(name="x", model=plain),
            define_agent(name="x", model=ScriptedModel(profile=BOTH), lifecycle=Elsewhere()),
        ):
            async with create_pai(agents={"x": agent}) as app:
                await (await app.thread("x").send("1")).result()
    assert sent(plain) + sent(other) == [None, None]


@pytest.mark.anyio
async def test_a_call_for_the_output_alone() -> None:
    """It has no tools: that is no change of the conversation."""
    world = World()
    model = ScriptedModel(["1", '{"value": 1}', "3"], profile=BOTH)

    class Asks:
        @hookimpl
        def prepare_run(self, run):
            return RunPatch(output=int) if run.input.text == "1" else None

    with anyio.fail_after(20):
        async with create_pai(agents={"x": world.agent(model)}, plugins=[Asks()]) as app:
            thread = app.thread("x")
            await (await thread.send("1")).result()
            await (await thread.send("2")).result()
    kept = {"start": start("a"), "changes": []}
    assert sent(model) == [kept, None, kept]


# ---------------------------------------------------------------------------- always

names = st.sampled_from("abcd")
offers = st.builds(
    Offer, st.just("m"), st.dictionaries(names, names, max_size=4), st.lists(names, max_size=4)
)


@given(st.lists(offers, min_size=1, max_size=6), st.data())
def test_a_driver_that_follows_has_the_whole_lists(found: list[Offer], data: Any) -> None:
    """Whatever comes after one another, also where messages are gone."""
    record: Any = None
    messages: list[Message] = []
    last = Offer("m", {"a": "a"}, [])
    for offered in found:
        now = offered
        if data.draw(st.booleans()):
            # Most of what happens is that something is added.
            now = Offer("m", {**now.tools, **last.tools}, [*last.instructions, *now.instructions])
        last = now
        while messages and data.draw(st.booleans()):
            del messages[0]
        messages.append(Message(new_id(), "user", (TextPart("x"),), "r", None))  # type: ignore[arg-type]  # not looked at
        record = follow(record, now, messages, ("tools", "instructions"))
        told: Any = plan(record, messages)
        tools = list(told["start"]["tools"])
        indexes = list(range(told["start"]["instructions"]))
        places = [change["message"] for change in told["changes"]]
        assert places == sorted(places)
        for change in told["changes"]:
            tools += change["tools"]
            indexes += change["instructions"]
        assert sorted(tools) == sorted(now.tools)
        assert indexes == list(range(len(now.instructions)))
