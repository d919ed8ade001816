"""Agents as tools of another agent (O-20)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    DefinitionError,
    ModelRequest,
    Pai,
    Provide,
    RunContext,
    Subagent,
    SubagentLimits,
    SubagentRef,
    ToolContext,
    Usage,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.protocol import event_from_json, event_to_json, fold
from pai.testing import Call, Fail, Hang, ScriptedModel

from ..definition.refusals import refused_agent

pytestmark = pytest.mark.anyio


def asks(*tasks: str, name: str = "research") -> list[Call]:
    return [Call(name, {"task": task}, f"c{n}") for n, task in enumerate(tasks, 1)]


def echo(request: ModelRequest) -> str:
    return f"found {request.messages[-1].text}"


def boss(child: Any, *turns: Any, limits: Any = None, inherit: Any = (), **fields: Any) -> Any:
    sub = Subagent(child, inherit=inherit, limits=limits or SubagentLimits())
    return define_agent(
        name="boss", model=ScriptedModel(turns), subagents={"research": sub}, **fields
    )


def researcher(model: Any = echo, **fields: Any) -> Any:
    made = model if isinstance(model, ScriptedModel) else ScriptedModel(model)
    return define_agent(name="researcher", model=made, **fields)


def outputs(agent: Any) -> list[Any]:
    """How the calls ended, as the caller's model was told."""
    parts = agent.model.requests[-1].messages[-1].parts
    return [part.output if part.error is None else part.error for part in parts]


async def result_of(agent: Any, **options: Any) -> Any:
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}, **options) as app:
            run = await app.thread("a", thread_id="t").send("go", run_id="r")
            return await run.result()


class Sees:
    """Keeps who each run is."""

    def __init__(self) -> None:
        self.runs: list[Any] = []

    @hookimpl
    def prepare_run(self, run: RunContext[Any]) -> None:
        self.runs.append((run.agent.name, run.parent_run_id, run.subagent, run.identity))


class Mine(Sees):
    pass


class Yours(Sees):
    pass


async def test_a_call_is_a_run_of_its_own() -> None:
    """With rows, parent ids, forwarded events, and usage that counts above."""
    sees = Sees()
    child = researcher(lifecycle=sees)
    agent = boss(child, [*asks("x", "y")], "done", lifecycle=sees)
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}) as app:
            thread = app.thread("a", identity={"u": 1}, thread_id="t")
            run = await thread.send("go", run_id="r")
            events = [event async for event in run.events()]
            result = await run.result()
            assert fold(None, events) == await thread.state()
            below = app.thread("a/research", identity={"u": 1}, thread_id="t:r:c1")
            state = await below.state()
            assert app.agents == ("a",)
    assert result.text == "done"
    assert outputs(agent) == ["found x", "found y"]
    assert result.usage == Usage(4, 4, 8)
    (row,) = state.runs
    assert (row.id, row.parent_run_id, row.status) == ("r:c1", "r", "completed")
    assert sees.runs[0] == ("boss", None, None, {"u": 1})
    assert sorted(sees.runs[1:], key=str) == [
        ("researcher", "r", SubagentRef("research", f"r:{call}", "r"), {"u": 1})
        for call in ("c1", "c2")
    ]
    told: list[Any] = [event for event in events if event.type == "subagent-event"]
    assert {(e.call_id, e.subagent, e.child_run_id, e.run_id) for e in told} == {
        ("c1", "research", "r:c1", "r"), ("c2", "research", "r:c2", "r"),
    }  # fmt: skip
    first = [e.event["type"] for e in told if e.call_id == "c1"]
    assert first == ["step-started", "text-start", "text-delta", "text-end", "step-finished"]
    ends: list[Any] = [event for event in events if event.type == "subagent-finished"]
    assert [end.status for end in ends] == ["completed"] * 2
    for event in (told[0], ends[0]):
        assert event_from_json(event_to_json(event)) == event


async def test_deeper_ones() -> None:
    low = researcher()
    middle = define_agent(
        name="middle",
        model=ScriptedModel(lambda r: asks("z") if len(r.messages) == 1 else "middle done"),
        subagents={"research": Subagent(low)},
    )
    agent = boss(middle, asks("x"), "done")
    result = await result_of(agent)
    assert result.usage == Usage(5, 5, 10)
    assert outputs(agent) == ["middle done"]
    assert low.model.requests[0].messages[-1].text == "z"
    agent = boss(middle, asks("x"), "done", limits=SubagentLimits(depth=1))
    assert (await result_of(agent)).text == "done"


# ---------------------------------------------------------------------------- hooks


async def test_which_hooks_stand_around_is_explicit() -> None:
    """A subagent has its own, and of the caller's only those that it inherits by name."""

    for inherit in ((), ("Yours",)):
        mine, yours = Mine(), Yours()
        agent = boss(researcher(), asks("x"), "done", inherit=inherit, lifecycle=mine)
        await result_of(agent, plugins=[yours])
        assert [each[0] for each in mine.runs] == ["boss"]
        assert [each[0] for each in yours.runs] == ["boss", "researcher"][: len(inherit) + 1]


def test_a_plugin_that_is_not_there() -> None:
    agent = boss(researcher(), inherit=("Nobody",))
    with pytest.raises(DefinitionError, match=r"agents.a.subagents.research.inherit: no plugin"):
        create_pai(agents={"a": agent})


# ---------------------------------------------------------------------------- limits


async def test_calls() -> None:
    """Those beyond it fail, and the model reads why; over all steps of the run."""
    agent = boss(
        researcher(),
        asks("1", "2", "3"),
        [Call("research", {"task": "4"}, "c4")],
        "done",
        limits=SubagentLimits(calls=2),
    )
    await result_of(agent)
    steps = [request.messages for request in agent.model.requests]
    told = [[part.output or part.error for part in step[-1].parts] for step in steps[1:]]
    beyond = "subagent limit reached (calls: 2)"
    assert told == [["found 1", "found 2", beyond], [beyond]]


async def test_depth() -> None:
    low = researcher()
    middle = define_agent(
        name="middle",
        model=ScriptedModel(lambda r: asks("z") if len(r.messages) == 1 else "end"),
        subagents={"research": Subagent(low, limits=SubagentLimits(depth=1))},
    )
    assert (await result_of(boss(middle, asks("x"), "done"))).text == "done"
    assert low.model.requests == []
    part = middle.model.requests[1].messages[-1].parts[0]
    assert part.error == "subagent limit reached (depth: 1)"


@pytest.mark.parametrize("width", [1, 2, None])
async def test_width(width: int | None) -> None:
    """Others wait for their turn."""
    at_once: list[int] = []
    running = 0

    @tool
    async def work(ctx: ToolContext[Any]) -> str:
        """Work."""
        nonlocal running
        running += 1
        at_once.append(running)
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        running -= 1
        return ""

    model = ScriptedModel(lambda r: Call("work", {}) if len(r.messages) == 1 else "ok")
    child = researcher(model, tools={"work": work})
    agent = boss(child, asks("1", "2", "3", "4"), "done", limits=SubagentLimits(width=width))
    await result_of(agent)
    assert len(at_once) == 4
    assert max(at_once) == (width or 4)


async def test_time() -> None:
    """The subagent's run is cancelled with the call."""
    child = researcher([["I think", Hang()]])
    agent = boss(child, asks("x"), "done", limits=SubagentLimits(timeout=0.2))
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}) as app:
            run = await app.thread("a", thread_id="t").send("go", run_id="r")
            assert (await run.result()).text == "done"
            below = await app.thread("a/research", thread_id="t:r:c1").run("r:c1")
            assert (await below.result()).status == "cancelled"
    assert outputs(agent) == ["The subagent 'research' took longer than 0.2 s."]


async def test_room_for_one_run_is_enough() -> None:
    """A subagent runs in the room of the run that waits for it."""
    result = await result_of(boss(researcher(), asks("x", "y"), "done"), max_runs=1)
    assert result.text == "done"


# ---------------------------------------------------------------------------- ends


@pytest.mark.parametrize(
    ("turn", "words"), [(Fail(), "its run is failed"), (Hang(), "its run is cancelled")]
)
async def test_one_that_does_not_complete(turn: Any, words: str) -> None:
    agent = boss(researcher([["x", turn]]), asks("x"), "done")
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}) as app:
            run = await app.thread("a", thread_id="t").send("go", run_id="r")
            if isinstance(turn, Hang):
                async for event in run.events():
                    if event.type == "subagent-event" and event.event["type"] == "text-delta":
                        break
                below = await app.thread("a/research", thread_id="t:r:c1").run("r:c1")
                await below.cancel("enough")
            assert (await run.result()).text == "done"
    assert outputs(agent) == [f"The subagent 'research' did not complete: {words}."]


@pytest.mark.parametrize("durable", [False, True])
async def test_cancel_reaches_it(durable: bool, tmp_path: Path) -> None:
    """With the reason, at any depth."""
    low = researcher([["x", Hang()]])
    middle = define_agent(
        name="middle", model=ScriptedModel([asks("z")]), subagents={"research": Subagent(low)}
    )
    store = f"sqlite:///{tmp_path / 'pai.db'}" if durable else "memory:"
    with anyio.fail_after(20):
        async with create_pai(agents={"a": boss(middle, asks("x"))}, store=store) as app:
            run = await app.thread("a", thread_id="t").send("go", run_id="r")
            async for event in run.events():
                if event.type == "subagent-event" and event.event["type"] == "subagent-event":
                    break
            await run.cancel("enough")
            assert (await run.result()).status == "cancelled"
            ids = [("a/research", "t:r:c1", "r:c1"), ("a/research/research", "t:r:c1:r:c1:c1", "r:c1:c1")]  # fmt: skip
            for key, thread_id, run_id in ids:
                ended = await (await app.thread(key, thread_id=thread_id).run(run_id)).result()
                assert (ended.status, ended.reason) == ("cancelled", "enough")


async def test_another_worker_goes_on(tmp_path: Path) -> None:
    """The call is made again, and finds the run that it had started; nothing is counted twice."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    reached = anyio.Event()

    def hangs(request: ModelRequest) -> Any:
        reached.set()
        return ["half", Hang()]

    with anyio.fail_after(20):
        first = boss(researcher(hangs), asks("x"))
        async with create_pai(agents={"a": first}, store=url) as app:
            await app.thread("a", thread_id="t").send("go", run_id="r")
            await reached.wait()
        again = boss(researcher(), "done")
        async with create_pai(agents={"a": again}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            result = await (await thread.run("r")).result()
            events = [e async for e in (await thread.run("r")).events(after=0)]
            state = await app.thread("a/research", thread_id="t:r:c1").state()
            assert fold(None, events) == await thread.state()
    assert result.text == "done"
    assert outputs(again) == ["found x"]
    assert result.usage == Usage(3, 3, 6)
    assert len(state.runs) == 1


# ---------------------------------------------------------------------------- waiting


@tool(needs_approval=True)
def send(ctx: ToolContext[Any], to: str) -> str:
    """Send."""
    return f"sent to {to}"


async def test_what_a_subagent_waits_for_is_answered_through_its_caller(tmp_path: Path) -> None:
    """Also after a restart, and more than once."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"

    def agents() -> Any:
        def turns(request: ModelRequest) -> Any:
            sent = sum(message.role == "assistant" for message in request.messages)
            return Call("send", {"to": "ab"[sent]}, f"s{sent}") if sent < 2 else "sent both"

        return boss(researcher(turns, tools={"send": send}), asks("x"), "done")

    async def waiting(app: Pai) -> Any:
        run = await app.thread("a", thread_id="t").run("r")
        result = await run.result()
        assert result.status == "suspended"
        (call,) = result.pending
        return run, call

    with anyio.fail_after(20):
        async with create_pai(agents={"a": agents()}, store=url) as app:
            await app.thread("a", thread_id="t").send("go", run_id="r")
            _, call = await waiting(app)
        assert (call.kind, call.call_id, call.tool) == ("suspend", "c1", "research")
        payload: Any = call.payload
        assert (payload["subagent"], payload["runId"]) == ("research", "r:c1")
        (inner,) = payload["pending"]
        assert (inner["callId"], inner["kind"], inner["input"]) == ("s0", "approval", {"to": "a"})
        async with create_pai(agents={"a": agents()}, store=url) as app:
            run, _ = await waiting(app)
            await run.resume([Provide("c1", [{"type": "approve", "callId": "s0"}])])
            run, call = await waiting(app)
            assert call.payload["pending"][0]["callId"] == "s1"
            deny = {"type": "deny", "callId": "s1", "reason": "no"}
            agent = app._agents["a"].definition
            agent.model._turns = ["done"]
            await run.resume([Provide("c1", {"answers": [deny]})])
            assert (await run.result()).text == "done"
            below = await app.thread("a/research", thread_id="t:r:c1").state()
    sends = [part for m in below.messages for part in m.parts if part.type == "tool-call"]
    assert [part.outcome for part in sends] == ["completed", "denied"]


async def test_cancel_while_it_waits() -> None:
    child = researcher(lambda _: Call("send", {"to": "a"}), tools={"send": send})
    with anyio.fail_after(20):
        async with create_pai(agents={"a": boss(child, asks("x"))}) as app:
            run = await app.thread("a", thread_id="t").send("go", run_id="r")
            assert (await run.result()).status == "suspended"
            await run.cancel("enough")
            below = await app.thread("a/research", thread_id="t:r:c1").run("r:c1")
            ended = await below.result()
    assert (ended.status, ended.reason) == ("cancelled", "enough")


# ---------------------------------------------------------------------------- declared


@attrs.frozen
class Topic:
    name: str
    depth: int = 1


async def test_its_input() -> None:
    """A class of one's own reaches it as JSON."""
    child = researcher()
    agent = define_agent(
        name="boss",
        model=ScriptedModel([Call("r", {"name": "x"}), "done"]),
        subagents={"r": Subagent(child, description="Look it up.", input=Topic)},
    )
    await result_of(agent)
    assert child.model.requests[0].messages[-1].text == '{"name":"x","depth":1}'
    assert agent.specs[0].description == "Look it up."


async def test_from_a_tool_of_ones_own() -> None:
    """``ctx.run_agent``: each of a call is a run of its own."""

    @tool
    async def survey(ctx: ToolContext[Any]) -> str:
        """Ask twice."""
        one = await ctx.run_agent("research", {"task": "1"})
        return f"{one}, {await ctx.run_agent('research', {'task': '2'})}"

    child = researcher()
    agent = boss(child, [Call("survey", {}, "c1")], "done", tools={"survey": survey})
    result = await result_of(agent)
    assert outputs(agent) == ["found 1, found 2"]
    assert result.usage == Usage(4, 4, 8)


CASES: list[tuple[Callable[[], Any], dict[str, str]]] = [
    (lambda: {"x": None}, {"subagents.x": "expected Subagent"}),
    (lambda: {"bad name": Subagent(researcher())}, {"subagents.bad name": "bad tool name"}),
    (lambda: {"x": Subagent("researcher")}, {"subagents.x.agent": "expected what define_agent"}),  # type: ignore[arg-type]  # what is to be found
    (
        lambda: {
            "x": Subagent(
                researcher(),
                description="",
                input=object(),
                inherit="Mine",
                limits=SubagentLimits(0, 0, 0, 0),
            )
        },
        {
            "subagents.x.description": "expected a text",
            "subagents.x.input": "",
            "subagents.x.inherit": "expected names",
            "subagents.x.limits.depth": "at least 1",
            "subagents.x.limits.width": "at least 1",
            "subagents.x.limits.calls": "at least 1",
            "subagents.x.limits.timeout": "above 0",
        },
    ),
]


@pytest.mark.parametrize(("make", "faults"), CASES)
def test_what_can_be_no_subagent(make: Callable[[], Any], faults: dict[str, str]) -> None:
    """A-DEF-2."""
    found = refused_agent(subagents=make())
    for path, words in faults.items():
        assert words in found[path]


def test_a_tool_of_the_same_name() -> None:
    found = refused_agent(tools={"x": send}, subagents={"x": Subagent(researcher())})
    assert found == {"subagents.x": "a tool has this name already"}
