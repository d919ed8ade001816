"""Agents that hand work to others (O-20)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    AgentDefinition,
    Answer,
    Approve,
    Ask,
    DefinitionError,
    Pai,
    Provide,
    Respond,
    RunContext,
    RunHandle,
    RunPatch,
    StepContext,
    StoreError,
    StreamPart,
    Subagent,
    SubagentLimits,
    SubagentRef,
    SubagentTask,
    Suspend,
    TextPart,
    ThreadHandle,
    ThreadNotFound,
    ToolCallPart,
    ToolContext,
    ToolError,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.protocol import Event, ThreadKey, ToolProgress, child_id, fold
from pai.stores._sql import bags
from pai.testing import Call, Fail, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


def helper(*turns: Any, **options: Any) -> AgentDefinition[Any]:
    return define_agent(name="helper", model=ScriptedModel([*turns]), **options)


def parent(subagent: Subagent, *turns: Any, **options: Any) -> AgentDefinition[Any]:
    return define_agent(
        name="parent", model=ScriptedModel([*turns]), subagents={"helper": subagent}, **options
    )


def hand_on(prompt: str = "Do it.", call_id: str = "1") -> Call:
    return Call("helper", {"prompt": prompt}, call_id=call_id)


def app_of(agent: AgentDefinition[Any], store: str = "memory:", **options: Any) -> Pai:
    return create_pai(agents={"main": agent}, store=store, plugins=(), **options)


async def log(thread: ThreadHandle) -> list[Event]:
    cursor = (await thread.state()).cursor
    found: list[Event] = []
    events = thread.events()
    while len(found) < cursor:
        found.append(await anext(events))
    return found


async def agree(thread: ThreadHandle) -> None:
    assert fold(None, await log(thread)) == await thread.state()


async def calls_of(thread: ThreadHandle) -> list[ToolCallPart]:
    parts = [part for message in (await thread.state()).messages for part in message.parts]
    return [part for part in parts if isinstance(part, ToolCallPart)]


async def child_of(app: Pai, thread: ThreadHandle) -> ThreadHandle:
    """The thread of the subagent that the thread's log tells of."""
    told: Any = next(event.value for event in await log(thread) if isinstance(event, ToolProgress))
    return app.thread("main/helper", thread_id=told["runId"])


async def test_an_agent_hands_work_to_another(store: str) -> None:
    """O-20: a tool whose run is a row of its own; its events and its usage reach the parent."""
    agent = parent(Subagent(helper("Done."), "Helps."), hand_on(), "All done.")
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        result = await run.result()
        assert (result.text, result.usage and result.usage.total_tokens) == ("All done.", 6)
        (call,) = await calls_of(thread)
        assert (call.tool, call.input, call.output) == ("helper", {"prompt": "Do it."}, "Done.")
        child = await child_of(app, thread)
        (view,) = (await child.state()).runs
        assert (view.parent_run_id, view.status) == (run.id, "completed")
        (asked, said) = (await child.state()).messages
        assert isinstance(asked.parts[0], TextPart)
        assert (asked.parts[0].text, said.role) == ("Do it.", "assistant")
        told: list[Any] = [
            event.value for event in await log(thread) if isinstance(event, ToolProgress)
        ]
        assert [item["event"]["type"] for item in told] == [e.type for e in await log(child)]
        assert {(item["runId"], item["parentRunId"]) for item in told} == {(child.id, run.id)}
        assert [item["seq"] for item in told] == list(range(1, len(told) + 1))
        await agree(thread)
        # Threads of subagents are none of the agent's.
        assert [head.id for head in (await app.threads("main")).items] == [thread.id]


@attrs.frozen
class Order:
    city: str
    days: int


async def test_the_input_has_a_class_and_the_output_may(store: str) -> None:
    """O-20, A-TOOL-6: the subagent gets it as JSON; what it makes is the call's output."""

    class Structured:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> RunPatch:
            return RunPatch(output="order")

    given = helper('{"city": "Rome", "days": 2}', outputs={"order": Order}, lifecycle=Structured())
    turns = (
        [Call("helper", {"city": "Rome", "days": "two"}), Call("helper", {"city": "R", "days": 2})],
        "Ok.",
    )
    agent = parent(Subagent(given, "Helps.", input=Order), *turns, repair_tool_input=False)
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        await (await thread.send("go")).result()
        failed, made = await calls_of(thread)
        assert failed.outcome == "failed"
        assert made.output == {"city": "Rome", "days": 2}
        (asked, *_) = (await (await child_of(app, thread)).state()).messages
        assert isinstance(asked.parts[0], TextPart)
        assert asked.parts[0].text == '{"city":"R","days":2}'


async def test_what_a_subagent_waits_for_is_answered_through_its_parent(store: str) -> None:
    """O-20: approvals and payloads surface on the parent, and the answers reach the child."""
    paid: list[int] = []

    @tool(needs_approval=True)
    def pay(ctx: ToolContext[None], amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    @tool(suspend=Suspend(payload=dict[str, int], answer=int))
    async def ask(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(await ctx.suspend({"n": 1}))

    calls = [Call("pay", {"amount": 3}, call_id="p"), Call("ask", {}, call_id="s")]
    child = helper(calls, "Paid.", tools={"pay": pay, "ask": ask})
    agent = parent(Subagent(child, "Helps."), hand_on(), "All done.")
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        result = await run.result()
        assert result.status == "suspended"
        pending = {call.tool: call for call in result.pending}
        assert set(pending) == {"helper/pay", "helper/ask"}
        assert pending["helper/pay"].kind == "approval"
        assert pending["helper/pay"].input == {"amount": 3}
        assert pending["helper/ask"].payload == {"n": 1}
        assert (await thread.state()).pending == result.pending
        await agree(thread)
        await run.resume([Approve(pending["helper/pay"].call_id, input={"amount": 4})])
        result = await run.result()
        assert [call.tool for call in result.pending] == ["helper/ask"]
        assert paid == [4]
        await agree(thread)
        await run.resume([Provide(pending["helper/ask"].call_id, 7)])
        await run.resume([Provide(pending["helper/ask"].call_id, 7)])
        assert (await run.result()).text == "All done."
        (call,) = await calls_of(thread)
        assert call.output == "Paid."
        outputs = [part.output for part in await calls_of(await child_of(app, thread))]
        assert outputs == ["paid 4", "7"]
        await agree(thread)


async def test_a_question_of_a_subagent_is_answered_through_its_parent() -> None:
    """O-20."""

    class Sure:
        @hookimpl
        def prepare_model_step(self, step: StepContext[None]) -> Ask:
            return Ask("sure", bool, "Sure?")

    agent = parent(Subagent(helper("Sure.", lifecycle=Sure()), "Helps."), hand_on(), "Ok.")
    async with app_of(agent) as app:
        run = await app.thread("main").send("go")
        (call,) = (await run.result()).pending
        assert (call.kind, call.tool) == ("question", "helper")
        await run.resume([Answer(call.call_id, True)])
        assert (await run.result()).text == "Ok."


async def test_an_answer_reaches_a_subagent_after_a_restart(tmp_path: Path) -> None:
    """O-20: nothing of it lives in a process."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"

    @tool(needs_approval=True)
    def pay(ctx: ToolContext[None]) -> str:
        """Pay."""
        return "paid"

    def agent(*turns: Any, own: Any) -> AgentDefinition[Any]:
        return parent(Subagent(helper(*own, tools={"pay": pay}), "Helps."), *turns)

    async with app_of(agent(hand_on(), own=[Call("pay", {})]), url) as app:
        thread = app.thread("main", thread_id="t")
        (call,) = (await (await thread.send("go", run_id="r")).result()).pending
    async with app_of(agent("All done.", own=["Paid."]), url) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.run("r")
        await run.resume([Approve(call.call_id)])
        result = await run.result()
        assert result.text == "All done."
        assert [part.output for part in await calls_of(thread)] == ["Paid."]
        await agree(thread)


async def test_a_parent_is_taken_over_while_its_subagent_works(tmp_path: Path) -> None:
    """O-20, R-12: the run is found again, not made twice; its usage counts once."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    slow = helper(["Half", Hang()])
    async with app_of(parent(Subagent(slow, "Helps."), hand_on()), url) as app:
        run = await app.thread("main", thread_id="t").send("go", run_id="r")
        async for event in run.events():
            if isinstance(event, ToolProgress) and "text-delta" in str(event.value):
                break
    again = parent(Subagent(helper("Whole."), "Helps."), "All done.")
    async with app_of(again, url) as app:
        thread = app.thread("main", thread_id="t")
        result = await (await thread.run("r")).result()
        assert result.text == "All done."
        assert [part.output for part in await calls_of(thread)] == ["Whole."]
        child = await child_of(app, thread)
        assert [view.status for view in (await child.state()).runs] == ["completed"]
        await agree(thread)


@pytest.mark.parametrize("waiting", [False, True])
async def test_cancelling_reaches_the_subagent(store: str, waiting: bool) -> None:
    """O-20, R-8: while it works, and while it waits."""

    @tool(needs_approval=True)
    def pay(ctx: ToolContext[None]) -> str:
        """Pay."""
        return "paid"

    turn = Call("pay", {}) if waiting else ["Half", Hang()]
    agent = parent(Subagent(helper(turn, tools={"pay": pay}), "Helps."), hand_on())
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        if waiting:
            await run.result()
        else:
            async for event in run.events():
                if isinstance(event, ToolProgress) and "text-delta" in str(event.value):
                    break
        child = await child_of(app, thread)
        await run.cancel("enough")
        assert (await run.result()).status == "cancelled"
        ended = await (await child.run(child.id)).result()
        assert (ended.status, ended.reason) == ("cancelled", "enough")
        assert (await thread.state()).pending == ()
        await agree(thread)


@pytest.mark.parametrize("how", ["fails", "is answered"])
async def test_a_subagent_that_waits_ends_with_its_parent(store: str, how: str) -> None:
    """O-20, R-14: also where the parent does not end by a cancel."""

    @tool(needs_approval=True)
    def pay(ctx: ToolContext[None]) -> str:
        """Pay."""
        return "paid"

    class End:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> Respond | None:
            if run.operation != "resume" or run.subagent is not None:
                return None
            if how == "fails":
                raise RuntimeError("no")
            return Respond("Enough.")

    child = helper([Call("pay", {}), Call("pay", {})], tools={"pay": pay})
    agent = parent(Subagent(child, "Helps."), hand_on(), lifecycle=End())
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        (first, _) = (await run.result()).pending
        await run.resume([Approve(first.call_id)])
        assert (await run.result()).status == ("failed" if how == "fails" else "completed")
        child_thread = await child_of(app, thread)
        ended = await (await child_thread.run(child_thread.id)).result()
        assert ended.status == "cancelled"
        await agree(thread)


@pytest.mark.parametrize("how", ["time limit", "gave up", "failed"])
async def test_a_subagent_ends_with_the_body_that_waits_no_more(store: str, how: str) -> None:
    """O-20: whatever becomes of the call, nothing of it works on."""
    waited = anyio.Event()

    async def run_one(ctx: ToolContext[None]) -> str:
        if how == "time limit":
            await ctx.run_agent("helper", SubagentTask("go on for ever"))
        async with anyio.create_task_group() as group:
            group.start_soon(ctx.run_agent, "helper", SubagentTask("go on for ever"))
            await waited.wait()
            group.cancel_scope.cancel()
        if how == "failed":
            raise ToolError("It took too long.")
        return "without"

    asks = tool(
        name="asks", description="Ask.", timeout=0.2 if how == "time limit" else None
    )(run_one)  # fmt: skip

    def noticed(request: Any) -> Any:
        waited.set()
        return Hang()

    child = define_agent(name="helper", model=ScriptedModel(noticed))
    agent = parent(
        Subagent(child, "Helps."), Call("asks", {}, call_id="1"), "Ok.", tools={"asks": asks}
    )
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        assert (await (await thread.send("go")).result()).text == "Ok."
        (call,) = await calls_of(thread)
        assert call.outcome == ("completed" if how == "gave up" else "failed")
        child_thread = await child_of(app, thread)
        ended = await (await child_thread.run(child_thread.id)).result()
        assert (ended.status, ended.reason) == ("cancelled", "given up")
        await agree(thread)
        await agree(child_thread)


async def test_limits(store: str) -> None:
    """O-20: on calls, width, depth and time; the model is told."""
    at_once: list[int] = []
    most: list[int] = []

    @tool
    async def work(ctx: ToolContext[None]) -> str:
        """Work."""
        at_once.append(1)
        most.append(len(at_once))
        await anyio.sleep(0.01)
        at_once.pop()
        return "ok"

    turns = [item for _ in range(3) for item in (Call("work", {}), "Done.")]
    model = ScriptedModel(lambda request: turns[0] if len(request.messages) == 1 else "Done.")
    child = define_agent(name="helper", model=model, tools={"work": work})
    limited = Subagent(child, "Helps.", limits=SubagentLimits(calls=3, width=1))
    turn = [hand_on(f"{n}", f"{n}") for n in range(4)]
    async with app_of(parent(limited, turn, "Ok."), store) as app:
        thread = app.thread("main")
        assert (await (await thread.send("go")).result()).text == "Ok."
        calls = await calls_of(thread)
        assert [call.output for call in calls] == ["Done."] * 3 + [None]
        assert calls[3].error == "The subagent 'helper' was run 3 times: that is its limit."
        assert max(most) == 1

    late = Subagent(helper(Hang()), "Helps.", limits=SubagentLimits(timeout=0.05))
    async with app_of(parent(late, hand_on(), "Ok."), store) as app:
        thread = app.thread("main", thread_id="late")
        await (await thread.send("go")).result()
        (call,) = await calls_of(thread)
        assert call.error == "The subagent 'helper' took longer than 0.05 s."
        child_thread = await child_of(app, thread)
        ended = await (await child_thread.run(child_thread.id)).result()
        assert (ended.status, ended.reason) == ("cancelled", "timeout")

    inner = Subagent(helper("Deep."), "Helps.", limits=SubagentLimits(depth=1))
    middle = define_agent(
        name="middle", model=ScriptedModel([hand_on(), "Well."]), subagents={"helper": inner}
    )
    outer = parent(Subagent(middle, "Helps."), hand_on(), "Ok.")
    async with app_of(outer, store) as app:
        thread = app.thread("main", thread_id="deep")
        await (await thread.send("go")).result()
        (failed,) = await calls_of(await child_of(app, thread))
        assert failed.error == "The subagent 'helper' may not be run at depth 2."

    for wrong in ({"calls": 0}, {"timeout": -1}, {"depth": "x"}):
        with pytest.raises(DefinitionError):
            SubagentLimits(**wrong)


class Seen:
    """A plugin that notes where it is called."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.runs: list[tuple[str, SubagentRef | None, str | None]] = []

    @hookimpl
    def run_started(self, run: RunContext[None]) -> None:
        self.runs.append((run.agent.name, run.subagent, run.parent_run_id))

    @hookimpl
    async def transform_step_stream(
        self, step: StepContext[None], stream: AsyncIterator[StreamPart]
    ) -> AsyncIterator[StreamPart]:
        async for part in stream:
            yield part


async def test_hooks_are_inherited_by_name_only() -> None:
    """O-20: explicit; contexts say where a run stands."""
    kept, left, own = Seen("kept"), Seen("left"), Seen("own")
    subagent = Subagent(helper("Done.", lifecycle=own), "Helps.", inherit=("kept",))
    agent = parent(subagent, hand_on(), "Ok.", lifecycle=compose_lifecycle(kept, left))
    async with app_of(agent) as app:
        run = await app.thread("main").send("go")
        await run.result()
        assert left.runs == [("parent", None, None)]
        assert [name for name, _, _ in kept.runs] == ["parent", "helper"]
        ((name, ref, parent_id),) = own.runs
        assert ref is not None
        assert (name, ref.name, ref.parent_run_id, parent_id) == (
            "helper",
            "helper",
            run.id,
            run.id,
        )
    with pytest.raises(DefinitionError) as caught:
        app_of(parent(Subagent(helper("x"), "Helps.", inherit=("none",)), "x"))
    assert [fault.path for fault in caught.value.faults] == ["agents.main.subagents.helper.inherit"]


async def test_a_subagent_that_fails_is_a_failed_call() -> None:
    """R-18, A-RUN-3: the model is told how it ended, and nothing of its error."""
    child = helper(Fail(RuntimeError("marker-secret")))
    async with app_of(parent(Subagent(child, "Helps."), hand_on(), "Well.")) as app:
        thread = app.thread("main")
        assert (await (await thread.send("go")).result()).text == "Well."
        (call,) = await calls_of(thread)
        assert call.error == "The subagent 'helper' ended as failed."
        assert "marker-secret" not in repr(await log(thread))


async def test_a_tool_runs_a_subagent(store: str) -> None:
    """O-20: ``ctx.run_agent``; where that waits, the body is run again."""
    bodies: list[int] = []

    @tool(needs_approval=True)
    def pay(ctx: ToolContext[None]) -> str:
        """Pay."""
        return "paid"

    @tool
    async def both(ctx: ToolContext[None]) -> str:
        """Ask two."""
        bodies.append(1)
        first = await ctx.run_agent("helper", SubagentTask("one"))
        second = await ctx.run_agent("helper", {"prompt": "two"})
        return f"{first} {second}"

    child = helper("One.", Call("pay", {}), "Two.", tools={"pay": pay})
    agent = parent(
        Subagent(child, "Helps."), Call("both", {}, call_id="b"), "Ok.", tools={"both": both}
    )
    async with app_of(agent, store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        (call,) = (await run.result()).pending
        await run.resume([Approve(call.call_id)])
        assert (await run.result()).text == "Ok."
        (made,) = await calls_of(thread)
        assert made.output == "One. Two."
        assert len(bodies) == 2
        await agree(thread)


async def test_one_place_for_a_run_is_enough() -> None:
    """O-20: a parent that waits for its subagent does not keep it from its place."""
    agent = parent(Subagent(helper("Done."), "Helps."), hand_on(), "Ok.")
    with anyio.fail_after(10):
        async with app_of(agent, max_runs=1) as app:
            assert (await (await app.thread("main").send("go")).result()).text == "Ok."


async def test_identity_is_its_parents() -> None:
    """O-20, A-DEF-4: with its partition, whatever the model asks for."""
    seen: list[object] = []

    class Look:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> None:
            seen.append((run.identity, run.client_data))

    child = helper("Done.", lifecycle=Look())
    agent = parent(Subagent(child, "Helps."), hand_on(), "Ok.")
    async with app_of(agent, scope_key=lambda who: str(who["w"])) as app:
        thread = app.thread("main", identity={"w": "one"})
        run = await thread.send("go", client_data={"x": 1})
        await run.result()
        told: Any = next(e.value for e in await log(thread) if isinstance(e, ToolProgress))
        key = ThreadKey("one", told["runId"])
        assert await app._core.store.run(key, told["runId"]) is not None
    assert seen == [({"w": "one"}, {"x": 1})]


async def test_threads_of_subagents_go_with_their_parents(store: str) -> None:
    """R-16: and those of theirs."""
    inner = define_agent(
        name="middle",
        model=ScriptedModel([hand_on(), "Well."]),
        subagents={"helper": Subagent(helper("Deep."), "Helps.")},
    )
    async with app_of(parent(Subagent(inner, "Helps."), hand_on(), "Ok."), store) as app:
        thread = app.thread("main")
        await (await thread.send("go")).result()
        child = await child_of(app, thread)
        told: Any = next(e.value for e in await log(child) if isinstance(e, ToolProgress))
        deep = app.thread("main/helper/helper", thread_id=told["runId"])
        assert len((await deep.state()).runs) == 1
        await thread.delete()
        for gone in (thread, child, deep):
            with pytest.raises(ThreadNotFound):
                await gone.state()


async def test_a_deletion_that_is_cut_short_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-16: no thread of a subagent stays behind where nobody would find it."""
    agent = parent(Subagent(helper("Done."), "Helps."), hand_on(), "Ok.")
    async with app_of(agent, f"sqlite:///{tmp_path / 'pai.db'}") as app:
        thread = app.thread("main")
        await (await thread.send("go")).result()
        child = await child_of(app, thread)
        real: Any = bags.delete

        def breaks(c: Any, q: Any, key: ThreadKey, *args: Any) -> Any:
            if key.thread_id != thread.id:
                raise StoreError("the connection broke")
            return real(c, q, key, *args)

        with monkeypatch.context() as patch:
            patch.setattr(bags, "delete", breaks)
            with pytest.raises(StoreError):
                await thread.delete()
        for there in (thread, child):
            assert len((await there.state()).runs) == 1
        await thread.delete()
        for gone in (thread, child):
            with pytest.raises(ThreadNotFound):
                await gone.state()


async def test_threads_are_locked_from_parents_to_children(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-16: as where a run ends those of its subagents, else two transactions could lock each other out."""
    middle = define_agent(
        name="middle",
        model=ScriptedModel(lambda request: "Well." if len(request.messages) > 1 else hand_on()),
        subagents={"helper": Subagent(helper("Deep.", "Deep."), "Helps.")},
    )
    agent = parent(Subagent(middle, "Helps."), [hand_on(call_id="1"), hand_on(call_id="2")], "Ok.")
    locked: list[str] = []
    async with app_of(agent, f"sqlite:///{tmp_path / 'pai.db'}") as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        families = []
        for call_id in ("1", "2"):
            child = child_id(thread.id, run.id, call_id, 0)
            families.append((child, child_id(child, child, "1", 0)))
        real: Any = bags.delete

        def noted(c: Any, q: Any, key: ThreadKey, *args: Any) -> Any:
            locked.append(key.thread_id)
            return real(c, q, key, *args)

        monkeypatch.setattr(bags, "delete", noted)
        await thread.delete()
    assert locked[0] == thread.id
    assert sorted(locked[1:]) == sorted([id_ for family in families for id_ in family])
    for child, deep in families:
        assert locked.index(child) < locked.index(deep)


async def to_its_end(events: AsyncIterator[Event]) -> None:
    async for _ in events:
        pass


async def begun(run: RunHandle) -> str:
    """The id of the subagent's run, as soon as the run's events tell of it."""
    async for event in run.events():
        if isinstance(event, ToolProgress):
            told: Any = event.value
            return str(told["runId"])
    raise AssertionError("no subagent has begun")


async def test_a_thread_is_deleted_while_its_subagent_works(store: str) -> None:
    """R-16: that is no failure of the tool, and the model is asked no more."""
    errors: list[BaseException] = []
    agent = parent(Subagent(helper(Hang()), "Helps."), hand_on(), "Ok.")
    async with app_of(agent, store, on_runtime_error=errors.append) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        own = await begun(run)
        child = app.thread("main/helper", thread_id=own).events()
        await anext(child)
        await thread.delete()
        # Who watches it is told.
        with anyio.fail_after(10), pytest.raises(ThreadNotFound):
            await to_its_end(child)
        await app._core.settled()
    assert errors == []
    model: Any = agent.model
    assert len(model.requests) == 1


async def test_the_thread_of_a_subagent_alone_is_deleted(store: str) -> None:
    """R-16, R-18: the model is told, and it is no failure of ours."""
    errors: list[BaseException] = []
    agent = parent(Subagent(helper(Hang()), "Helps."), hand_on(), "Ok.")
    async with app_of(agent, store, on_runtime_error=errors.append) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        own = await begun(run)
        await app.thread("main/helper", thread_id=own).delete()
        with anyio.fail_after(10):
            assert (await run.result()).text == "Ok."
        (call,) = await calls_of(thread)
        assert call.error == "The thread of the subagent 'helper' was deleted."
        await agree(thread)
    assert errors == []


def test_faults_of_subagents_are_told_at_once() -> None:
    """A-DEF-2."""
    given: dict[str, Any] = {
        "no name": Subagent(helper("x"), "Helps."),
        "look": Subagent(helper("x"), "Helps."),
        "none": helper("x"),
        "wrong": Subagent("helper", " ", input=int),  # type: ignore[arg-type]
    }

    @tool
    def look(ctx: ToolContext[None]) -> None:
        """Look."""

    with pytest.raises(DefinitionError) as caught:
        define_agent(name="a", model="demo", subagents=given, tools={"look": look})
    assert {fault.path for fault in caught.value.faults} == {
        "subagents.no name",
        "subagents.look",
        "subagents.none",
        "subagents.wrong.agent",
        "subagents.wrong.description",
        "subagents.wrong.input",
    }
