"""Runs that wait for answers: approvals, clients' tools, suspended bodies, questions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    AgentToolConfig,
    Answer,
    AnswerConflict,
    Approve,
    AsideItem,
    Ask,
    CallsPending,
    Cancel,
    ClientTool,
    DataPart,
    Deny,
    DenyCall,
    InvalidInput,
    Pai,
    Provide,
    ReplaceInput,
    ReplaceValue,
    RequireApproval,
    Respond,
    RunContext,
    RunOutcome,
    RunPatch,
    SkipCall,
    StepContext,
    Suspend,
    TextPart,
    ThreadHandle,
    ToolCallContext,
    ToolCallPart,
    ToolContext,
    UnknownOptionError,
    compose_lifecycle,
    create_pai,
    define_agent,
    define_tool,
    hookimpl,
    tool,
)
from pai.protocol import Event, StepStarted, fold
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


class Till:
    """What tools have done, in order."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def tools(self) -> dict[str, Any]:
        @tool(needs_approval=True)
        def pay(ctx: ToolContext[None], amount: int) -> str:
            """Pay."""
            self.done.append(amount)
            return f"paid {amount}"

        @tool
        def count(ctx: ToolContext[None]) -> int:
            """Count."""
            self.done.append("count")
            return len(self.done)

        return {"pay": pay, "count": count}


def pay(amount: int = 3, call_id: str = "p") -> Call:
    return Call("pay", {"amount": amount}, call_id=call_id)


def app_of(tools: dict[str, Any], *turns: Any, store: str = "memory:", **options: Any) -> Pai:
    lifecycle = options.pop("lifecycle", None)
    agent = define_agent(
        name="a", model=ScriptedModel([*turns]), tools=tools, lifecycle=lifecycle, **options
    )
    return create_pai(agents={"main": agent}, store=store, plugins=())


async def calls_of(thread: ThreadHandle) -> list[ToolCallPart]:
    """The calls of the first answer."""
    parts = (await thread.state()).messages[1].parts
    return [part for part in parts if isinstance(part, ToolCallPart)]


async def log(thread: ThreadHandle) -> list[Event]:
    """All events so far."""
    cursor = (await thread.state()).cursor
    found: list[Event] = []
    events = thread.events()
    while len(found) < cursor:
        found.append(await anext(events))
    return found


async def agree(thread: ThreadHandle) -> None:
    """R-25: the folded log is the state."""
    state = await thread.state()
    events = await log(thread)
    assert fold(None, events) == state
    for middle in range(1, len(events), 3):
        assert fold(fold(None, events[:middle]), events[middle:]) == state


# ---------------------------------------------------------------------------- approvals


async def test_an_approval_is_asked_for_while_siblings_run(store: str) -> None:
    """R-19, R-22: the others run at once; the run suspends on the rest, and goes on when approved."""
    till = Till()
    turn = [pay(), Call("count", {}, call_id="c")]
    async with app_of(till.tools(), turn, "Thanks.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        result = await run.result()
        assert (result.status, till.done) == ("suspended", ["count"])
        (pending,) = result.pending
        assert (pending.call_id, pending.kind, pending.tool) == ("p", "approval", "pay")
        assert (pending.input, pending.payload, pending.expires_at) == ({"amount": 3}, None, None)
        state = await thread.state()
        assert state.pending == result.pending
        assert [(view.status, view.usage) for view in state.runs] == [("suspended", result.usage)]
        await agree(thread)
        types = [event.type async for event in run.events()]
        assert types[-1] == "run-suspended"
        assert "".join([text async for text in run.text()]) == ""
        await run.resume([Approve("p")])
        result = await run.result()
        assert (result.status, result.text, till.done) == ("completed", "Thanks.", ["count", 3])
        assert "".join([text async for text in run.text()]) == "Thanks."
        # The suspension was answered: no replay ends with it any more.
        types = [event.type async for event in run.events()]
        assert types.count("run-suspended") == 1
        assert types[-1] == "run-finished"
        assert (await thread.state()).pending == ()
        await agree(thread)


async def test_an_input_can_be_edited_and_is_checked_again(store: str) -> None:
    """R-21: approved with another input, that is what runs, is stored, told and sent on."""
    till = Till()
    async with app_of(till.tools(), pay(), "Thanks.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        with pytest.raises(InvalidInput) as caught:
            await run.resume([Approve("p", input={"amount": "much"})])
        assert [fault.path for fault in caught.value.faults] == ["answers[0].input.amount"]
        assert (await run.result()).status == "suspended"
        await run.resume([Approve("p", input={"amount": 5})])
        assert (await run.result()).status == "completed"
        assert till.done == [5]
        call = (await calls_of(thread))[0]
        assert (call.input, call.output) == ({"amount": 5}, "paid 5")
        await agree(thread)


async def test_a_denial_is_told_to_the_model(store: str) -> None:
    """R-21: with its reason; nothing runs."""
    till = Till()
    async with app_of(till.tools(), pay(), "Sorry.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        await run.resume([Deny("p", reason="Too much.")])
        assert (await run.result()).text == "Sorry."
        call = (await calls_of(thread))[0]
        assert call.outcome == "denied"
        assert call.error == "The call was denied. Too much."
        assert till.done == []
        await agree(thread)


async def test_part_of_a_batch_is_decided(store: str) -> None:
    """R-21, O-16: what is answered goes on, and the run waits again for the rest."""
    till = Till()
    turn = [pay(1, "p1"), pay(2, "p2"), pay(3, "p3")]
    async with app_of(till.tools(), turn, "Thanks.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        assert [call.call_id for call in (await run.result()).pending] == ["p1", "p2", "p3"]
        await run.resume([Approve("p2")])
        assert [call.call_id for call in (await run.result()).pending] == ["p1", "p3"]
        assert till.done == [2]
        await run.resume([Deny("p1"), Cancel("p3")])
        assert (await run.result()).status == "completed"
        assert till.done == [2]
        outcomes = [part.outcome for part in await calls_of(thread)]
        assert outcomes == ["denied", "completed", "cancelled"]
        await agree(thread)


async def test_the_same_answers_are_safe_and_others_a_conflict(store: str) -> None:
    """R-20, O-16: given twice, also after the end, nothing happens; otherwise nothing is written."""
    till = Till()
    turn = [pay(1, "p1"), pay(2, "p2")]
    async with app_of(till.tools(), turn, "Thanks.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        (pending, _) = (await run.result()).pending
        wrong: list[list[Any]] = [
            [Approve("p1"), Approve("p9")],
            [Approve("p1"), Provide("p2", 1)],
            [Approve("p1", digest="0" * 64)],
            [Answer("p1", True)],
        ]
        for answers in wrong:
            with pytest.raises(AnswerConflict):
                await run.resume(answers)
        with pytest.raises(InvalidInput):
            await run.resume([Approve("p1"), Deny("p1")])
        with pytest.raises(InvalidInput):
            await run.resume([])
        with pytest.raises(UnknownOptionError):
            await run.resume([Approve("p1")], when="now")
        assert len((await thread.state()).pending) == 2
        await run.resume([Approve("p1", digest=pending.digest)])
        await run.result()
        cursor = (await thread.state()).cursor
        await run.resume([Approve("p1")])
        with pytest.raises(AnswerConflict, match="otherwise"):
            await run.resume([Deny("p1")])
        with pytest.raises(AnswerConflict):
            await run.resume([Deny("p1"), Approve("p2")])
        assert (await thread.state()).cursor == cursor
        await run.resume([Approve("p1"), Approve("p2")])
        assert (await run.result()).status == "completed"
        await run.resume([Approve("p2"), Approve("p1")])
        with pytest.raises(AnswerConflict):
            await run.resume([Approve("p1", input={"amount": 7})])
        assert till.done == [1, 2]
        await agree(thread)


async def test_an_answer_belongs_to_its_thread(store: str) -> None:
    """R-20, R-7: through another thread, partition or run there is no such call."""
    till = Till()
    agent = define_agent(name="a", model=ScriptedModel([pay(), "x", "y"]), tools=till.tools())
    async with create_pai(
        agents={"main": agent}, store=store, plugins=(), scope_key=lambda who: str(who["w"])
    ) as app:
        thread = app.thread("main", thread_id="t", identity={"w": "1"})
        run = await thread.send("go")
        await run.result()
        other = await app.thread("main", thread_id="t", identity={"w": "2"}).send("hi")
        await other.result()
        with pytest.raises(AnswerConflict):
            await other.resume([Approve("p")])
        assert till.done == []
        assert len((await thread.state()).pending) == 1


async def test_a_resume_may_be_answered_in_place_of_the_model(store: str) -> None:
    """A-LIFE-3, R-30: what was approved does not run then, and nothing waits any more."""

    class Closed:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> Respond | None:
            if run.operation != "resume":
                return None
            return Respond("Not now.", outcome="blocked", reason="closed")

    till = Till()
    turn = [pay(1, "p1"), pay(2, "p2")]
    async with app_of(till.tools(), turn, store=store, lifecycle=Closed()) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        await run.resume([Approve("p1")])
        result = await run.result()
        assert (result.status, result.reason, result.text) == ("blocked", "closed", "Not now.")
        assert till.done == []
        assert [call.outcome for call in await calls_of(thread)] == ["interrupted"] * 2
        assert (await thread.state()).pending == ()
        await agree(thread)


async def test_steps_are_counted_anew_in_each_episode(store: str) -> None:
    """A-DEF-8: also the closing step behind them, and where a worker took the episode over."""
    till = Till()
    turns = (Call("count", {}), pay(), Call("count", {}), '{"value": 3}')
    async with app_of(till.tools(), *turns, store=store, outputs={"n": int}) as app:
        thread = app.thread("main")
        run = await thread.send("go", options={"output": "n"})
        await run.result()
        await run.resume([Approve("p")], options={"output": "n", "max_steps": 1})
        result = await run.result()
        assert (result.status, result.output) == ("completed", 3)
        indexes = [event.index for event in await log(thread) if isinstance(event, StepStarted)]
        assert indexes == [0, 1, 0, 1]


async def test_who_decided_is_kept(store: str) -> None:
    """A-RUN-5: the actor is on the decision, and hooks of the resume see the run's own identity."""
    till = Till()
    seen: list[tuple[object, str, int, int]] = []

    class Watch:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> None:
            seen.append((run.identity, run.operation, run.episode, run.attempt))

    agent = define_agent(
        name="a", model=ScriptedModel([pay(), "x"]), tools=till.tools(), lifecycle=Watch()
    )
    async with create_pai(agents={"main": agent}, store=store, plugins=(), actor_key=str) as app:
        run = await app.thread("main", thread_id="t", identity="alice").send("go")
        await run.result()
        boss = await app.thread("main", thread_id="t", identity="bob").run(run.id)
        await boss.resume([Approve("p")])
        assert (await run.result()).status == "completed"
        (row,) = await app._core.store.calls(run._key, run.id)
        assert [decision["actor"] for decision in row.decisions] == ["bob"]
        # A-DEF-8: a resume is an episode of its own.
        assert seen == [("alice", "send", 1, 1), ("alice", "resume", 2, 1)]


async def test_hooks_ask_for_approval_and_the_strictest_wins(store: str) -> None:
    """A-LIFE-1: deny, then require approval, then skip; each sees the frozen input (R-23)."""
    asked: list[object] = []

    class Skip:
        @hookimpl
        def before_tool_call(self, call: ToolCallContext[None]) -> SkipCall | None:
            return SkipCall(0) if call.tool == "count" else None

    class Gate:
        @hookimpl
        def rewrite_tool_input(self, call: ToolCallContext[None]) -> ReplaceInput | None:
            if call.tool != "pay":
                return None
            return ReplaceInput({"amount": call.input["amount"] + 1})  # type: ignore[index]

        @hookimpl
        def before_tool_call(
            self, call: ToolCallContext[None]
        ) -> RequireApproval | DenyCall | None:
            asked.append(call.raw_input)
            if call.tool == "pay" and call.input["amount"] > 100:  # type: ignore[index]
                return DenyCall("Never.")
            return RequireApproval("because", expires_after=60)

    till = Till()
    turn = [Call("count", {}, call_id="c"), pay(1, "p1"), pay(1000, "p2")]
    lifecycle = compose_lifecycle(Skip(), Gate())
    async with app_of(till.tools(), turn, "Done.", store=store, lifecycle=lifecycle) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        result = await run.result()
        assert [(call.call_id, call.payload) for call in result.pending] == [
            ("c", {"reason": "because"}),
            ("p1", {"reason": "because"}),
        ]
        assert result.pending[0].expires_at is not None
        assert result.pending[1].input == {"amount": 2}
        before = len(asked)
        await run.resume([Approve("c"), Approve("p1")])
        assert (await run.result()).status == "completed"
        assert set(till.done) == {"count", 2}
        assert len(asked) == before  # what was decided on this input stays decided
        await agree(thread)


async def test_policy_sees_an_edited_input() -> None:
    """R-23: what whoever approves puts in place is judged like any other."""

    class Cap:
        @hookimpl
        def before_tool_call(self, call: ToolCallContext[None]) -> DenyCall | None:
            return DenyCall("Never.") if call.input["amount"] > 100 else None  # type: ignore[index]

    till = Till()
    async with app_of(till.tools(), pay(), "Done.", lifecycle=Cap()) as app:
        run = await app.thread("main").send("go")
        await run.result()
        await run.resume([Approve("p", input={"amount": 1000})])
        assert (await run.result()).status == "completed"
        assert till.done == []


async def test_enabled_is_asked_again_at_resume(store: str) -> None:
    """A-TOOL-3, R-20: a tool that is off by then does not run, whoever approved."""
    on = True
    till = Till()
    tools = till.tools()
    tools["pay"] = AgentToolConfig(tools["pay"], enabled=lambda given: on)
    async with app_of(tools, pay(), "Done.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        on = False
        await run.resume([Approve("p")])
        assert (await run.result()).status == "completed"
        assert till.done == []
        call = (await calls_of(thread))[0]
        assert call.error == "The tool 'pay' is not available now."


# ---------------------------------------------------------------------------- clients


@attrs.frozen
class Place:
    city: str


async def test_a_client_gives_the_output(store: str) -> None:
    """A-TOOL-1, A-TOOL-5, A-TOOL-6: checked by the tool's output class, observed like any other."""
    seen: list[object] = []
    where = define_tool(name="where", description="Where.", input=Place, output=Place)
    config = AgentToolConfig(where, on_output=lambda observed: seen.append(observed.output))
    turn = [Call("where", {"city": "?"}, call_id="1"), Call("where", {"city": "!"}, call_id="2")]
    async with app_of({"where": config}, turn, "There.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        result = await run.result()
        assert [(call.kind, call.input) for call in result.pending] == [
            ("client", {"city": "?"}),
            ("client", {"city": "!"}),
        ]
        with pytest.raises(InvalidInput) as caught:
            await run.resume([Provide("1", {"town": "Rome"}), Provide("2", {"city": 1})])
        assert {fault.path for fault in caught.value.faults} == {
            "answers[0].value.city",
            "answers[0].value.town",
            "answers[1].value.city",
        }
        await run.resume([Provide("1", {"city": "Rome"}), Provide("2", Place("Oslo"))])
        assert (await run.result()).text == "There."
        outputs = [part.output for part in await calls_of(thread)]
        assert outputs == [{"city": "Rome"}, {"city": "Oslo"}]
        assert seen == outputs
        await agree(thread)


async def test_a_client_tool_may_need_an_approval_first(store: str) -> None:
    """A-TOOL-1: approved, it waits for the client."""
    where = define_tool(
        name="where", description="Where.", input=Place, output=Place, needs_approval=True
    )
    turn = Call("where", {"city": "?"}, call_id="1")
    async with app_of({"where": where}, turn, "There.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        assert [call.kind for call in (await run.result()).pending] == ["approval"]
        await run.resume([Approve("1", input={"city": "Oslo"})])
        (pending,) = (await run.result()).pending
        assert (pending.kind, pending.input) == ("client", {"city": "Oslo"})
        await agree(thread)
        await run.resume([Provide("1", {"city": "Rome"})])
        assert (await run.result()).status == "completed"
        call = (await calls_of(thread))[0]
        assert (call.input, call.output) == ({"city": "Oslo"}, {"city": "Rome"})
        await agree(thread)


async def test_a_request_brings_its_own_tools(store: str) -> None:
    """A-TOOL-8: offered, checked and answered in that run, and unknown in the next."""
    model = ScriptedModel(
        [
            [Call("zoom", {"by": "much"}, call_id="1"), Call("zoom", {"by": 2}, call_id="2")],
            "Bigger.",
            Call("zoom", {"by": 2}, call_id="1"),
            "No.",
        ]
    )
    agent = define_agent(name="a", model=model)
    schema = {"type": "object", "properties": {"by": {"type": "number"}}, "required": ["by"]}
    zoom = ClientTool("zoom", "Zoom.", schema)  # type: ignore[arg-type]
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        run = await thread.send("go", client_tools=[zoom])
        (pending,) = (await run.result()).pending
        assert (pending.call_id, pending.kind) == ("2", "client")
        assert [spec.name for spec in model.requests[0].tools] == ["zoom"]
        await run.resume([Provide("2", {"any": ["thing"]})])
        assert (await run.result()).text == "Bigger."
        assert [spec.name for spec in model.requests[1].tools] == ["zoom"]
        again = await thread.send("again")
        assert (await again.result()).text == "No."
        assert model.requests[3].tools == ()
        for faulty in (
            [zoom, zoom],
            [ClientTool("no name", "x", schema)],  # type: ignore[arg-type]
            [ClientTool("a", "", {"type": "array"})],
            ["zoom"],
        ):
            with pytest.raises(InvalidInput):
                await thread.send("x", client_tools=faulty)  # type: ignore[arg-type]


# ---------------------------------------------------------------------------- suspend


@attrs.frozen
class Choice:
    options: list[str]


async def test_a_body_suspends_itself(store: str) -> None:
    """R-22: it is run again from its start, and the n-th suspend gives the n-th answer."""
    begun: list[int] = []

    @tool(suspend=Suspend(payload=Choice, answer=int))
    async def choose(ctx: ToolContext[None]) -> str:
        """Choose."""
        begun.append(len(begun))
        first = await ctx.suspend(Choice(["a", "b"]))
        try:
            second = await ctx.suspend({"options": ["c"]})
        except Exception:  # what ends the body is none
            return "swallowed"
        return f"{first}, {second}"

    turn = Call("choose", {}, call_id="1")
    async with app_of({"choose": choose}, turn, "Chosen.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        (pending,) = (await run.result()).pending
        assert (pending.kind, pending.payload) == ("suspend", {"options": ["a", "b"]})
        with pytest.raises(InvalidInput):
            await run.resume([Provide("1", "one")])
        await run.resume([Provide("1", 1)])
        (second,) = (await run.result()).pending
        assert second.payload == {"options": ["c"]}
        with pytest.raises(AnswerConflict, match="another input"):
            await run.resume([Provide("1", 1, digest=pending.digest)])
        await agree(thread)
        await run.resume([Provide("1", 2)])
        assert (await run.result()).text == "Chosen."
        call = (await calls_of(thread))[0]
        assert call.output == "1, 2"
        assert begun == [0, 1, 2]
        await agree(thread)


async def test_a_payload_that_does_not_fit_fails_the_call() -> None:
    """A-TOOL-6, R-18: nothing waits."""

    @tool(suspend=Suspend(payload=Choice, answer=int))
    async def choose(ctx: ToolContext[None]) -> str:
        """Choose."""
        return str(await ctx.suspend({"options": 1}))

    async with app_of({"choose": choose}, Call("choose", {}), "Well.") as app:
        thread = app.thread("main")
        assert (await (await thread.send("go")).result()).status == "completed"
        call = (await calls_of(thread))[0]
        assert call.outcome == "failed"


async def test_a_body_may_suspend_in_a_task_group_and_hide_it() -> None:
    """R-22: whatever comes out of the body then, it waits."""

    @tool
    async def nested(ctx: ToolContext[None]) -> str:
        """Nest."""
        answers: list[object] = []

        async def ask() -> None:
            answers.append(await ctx.suspend({"n": 1}))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
        return str(answers)

    @tool
    async def hidden(ctx: ToolContext[None]) -> str:
        """Hide."""
        try:
            return str(await ctx.suspend())
        except BaseException:  # what a careless body does
            return "hidden"

    turn = [Call("nested", {}, call_id="1"), Call("hidden", {}, call_id="2")]
    async with app_of({"nested": nested, "hidden": hidden}, turn, "Well.") as app:
        thread = app.thread("main")
        run = await thread.send("go")
        assert {call.call_id for call in (await run.result()).pending} == {"1", "2"}
        await run.resume([Provide("1", "a"), Provide("2", "b")])
        assert (await run.result()).status == "completed"
        outputs = [part.output for part in await calls_of(thread)]
        assert outputs == ["['a']", "b"]


async def test_payloads_and_reasons_pass_the_aside_transform() -> None:
    """A-LIFE-1: of kind *suspend*, before the first write."""

    class Mask:
        @hookimpl
        def transform_aside(self, item: AsideItem) -> ReplaceValue | None:
            return ReplaceValue("***") if item.kind == "suspend" else None

        @hookimpl
        def before_tool_call(self, call: ToolCallContext[None]) -> RequireApproval | None:
            return RequireApproval("secret") if call.tool == "count" else None

    @tool
    async def ask(ctx: ToolContext[None]) -> str:
        """Ask."""
        return str(await ctx.suspend("secret"))

    tools = {"ask": ask, "count": Till().tools()["count"]}
    async with app_of(tools, [Call("ask", {}), Call("count", {})], lifecycle=Mask()) as app:
        thread = app.thread("main")
        result = await (await thread.send("go")).result()
        assert [call.payload for call in result.pending] == ["***", "***"]
        assert not any("secret" in str(event) for event in await log(thread))


# ---------------------------------------------------------------------------- questions


class Budget:
    """Asks before the second step, and before it pays."""

    def __init__(self) -> None:
        self.heard: list[object] = []

    @hookimpl
    def prepare_model_step(self, step: StepContext[None]) -> Ask | None:
        self.heard.append(dict(step.run.answers))
        return Ask("more?", bool, "Go on?") if step.run.episode == 1 and step.index == 1 else None

    @hookimpl
    def before_tool_call(self, call: ToolCallContext[None]) -> Ask | DenyCall | None:
        if call.tool != "pay":
            return None
        if call.run.answers.get("limit", 10) < call.input["amount"]:  # type: ignore[index]
            return DenyCall("Over the limit.")
        return Ask("limit", int, "How much at most?")


async def test_a_hook_asks_a_question(store: str) -> None:
    """O-16: the run suspends until it is answered; hooks are asked again and see the answer."""
    tools = Till().tools()
    tools["pay"] = AgentToolConfig(attrs.evolve(tools["pay"], needs_approval=False))
    hooks = Budget()
    turns = ([pay(3), Call("count", {}, call_id="c")], "Done.")
    async with app_of(tools, *turns, store=store, lifecycle=hooks) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        (pending,) = (await run.result()).pending
        assert (pending.call_id, pending.kind, pending.tool) == ("limit", "question", "pay")
        assert pending.payload == {"schema": {"type": "integer"}, "message": "How much at most?"}
        await agree(thread)
        with pytest.raises(InvalidInput):
            await run.resume([Answer("limit", "lots")])
        await run.resume([Answer("limit", 2)])
        result = await run.result()
        assert result.status == "completed"
        calls = await calls_of(thread)
        assert [call.outcome for call in calls] == ["denied", "completed"]
        assert hooks.heard == [{}, {"limit": 2}]
        await run.resume([Answer("limit", 2)])
        with pytest.raises(AnswerConflict):
            await run.resume([Answer("limit", 3)])
        await agree(thread)


async def test_a_question_stands_before_a_step(store: str) -> None:
    """O-16: before the model is asked; a second episode goes on with its own steps (A-DEF-8)."""
    tools = {"count": Till().tools()["count"]}
    hooks = Budget()
    turns = (Call("count", {}, call_id="c"), "Done.")
    async with app_of(tools, *turns, store=store, lifecycle=hooks) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        (pending,) = (await run.result()).pending
        assert (pending.call_id, pending.tool, pending.input) == ("more?", None, None)
        await agree(thread)
        await run.resume([Answer("more?", True)])
        assert (await run.result()).text == "Done."
        assert hooks.heard == [{}, {}, {"more?": True}]
        await agree(thread)


async def test_what_a_hook_wrote_before_its_question_is_void() -> None:
    """R-13: the step is made anew."""

    class Note:
        @hookimpl
        def prepare_model_step(self, step: StepContext[None]) -> Ask | None:
            step.run.write_data("note", {"n": step.run.episode})
            return Ask("q", bool) if step.run.episode == 1 else None

    async with app_of({}, "Hi.", lifecycle=Note(), ui_data={"note": dict[str, int]}) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        assert [message.role for message in (await thread.state()).messages] == ["user"]
        await agree(thread)
        await run.resume([Answer("q", False)])
        await run.result()
        data, text = (await thread.state()).messages[1].parts
        assert isinstance(data, DataPart)
        assert isinstance(text, TextPart)
        assert (data.value, text.text) == ({"n": 2}, "Hi.")
        await agree(thread)


async def test_whoever_renders_a_call_sees_no_context() -> None:
    """A-TOOL-9, A-CTX-1: input, output, payload and data; nothing of what the server knows."""

    @tool(data=dict[str, int], suspend=Suspend(payload=dict[str, int], answer=int))
    async def ask(ctx: ToolContext[dict[str, str]], n: int) -> int:
        """Ask."""
        assert ctx.context == {"key": "marker-5150"}
        ctx.progress({"at": n})
        answer: int = await ctx.suspend({"n": n})
        return answer

    agent = define_agent(
        name="a",
        model=ScriptedModel([Call("ask", {"n": 1}, call_id="1"), "Done."]),
        tools={"ask": ask},
        runtime_context=lambda _: {"key": "marker-5150"},
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        suspended = await run.result()
        await run.resume([Provide("1", 2)])
        ended = await run.result()
        shown = [suspended, ended, await thread.state(), await log(thread), agent.contract]
        assert "marker-5150" not in repr(shown)
        types = [event.type for event in await log(thread)]
        assert {"tool-progress", "tool-suspended", "tool-output"} <= set(types)


# ---------------------------------------------------------------------------- ends


async def test_a_suspended_run_is_cancelled_at_once(store: str) -> None:
    """R-3, R-14: its calls end as interrupted, the history is one any provider takes."""
    till = Till()
    model = ScriptedModel([pay(), "Next."])
    agent = define_agent(name="a", model=model, tools=till.tools())
    async with create_pai(agents={"main": agent}, store=store, plugins=()) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        await run.cancel("enough")
        result = await run.result()
        assert (result.status, result.reason) == ("cancelled", "enough")
        state = await thread.state()
        assert state.pending == ()
        assert (await calls_of(thread))[0].outcome == "interrupted"
        with pytest.raises(AnswerConflict):
            await run.resume([Approve("p")])
        await run.cancel("twice")
        assert (await (await thread.send("next")).result()).text == "Next."
        assert till.done == []
        await agree(thread)


async def test_a_send_on_a_suspended_thread(store: str) -> None:
    """R-3a: refused, naming the calls; or they are denied and the run makes place."""
    till = Till()
    async with app_of(till.tools(), pay(), "Instead.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        for start in (thread.send("more"), thread.trigger(), thread.regenerate()):
            with pytest.raises(CallsPending) as caught:
                await start
            assert caught.value.calls == ("p",)
        instead = await thread.send("more", when_pending="supersede")
        assert (await instead.result()).text == "Instead."
        result = await run.result()
        assert (result.status, result.reason) == ("cancelled", "superseded")
        state = await thread.state()
        assert (await calls_of(thread))[0].outcome == "denied"
        assert [view.status for view in state.runs] == ["cancelled", "completed"]
        with pytest.raises(AnswerConflict):
            await run.resume([Approve("p")])
        await agree(thread)


@pytest.mark.parametrize("how", ["cancel", "supersede"])
async def test_observers_are_told_of_an_end_without_a_worker(store: str, how: str) -> None:
    """R-33a: once, with how it ended."""
    told: list[tuple[str, str | None]] = []
    heard = anyio.Event()

    class Watch:
        @hookimpl
        def run_settled(self, run: RunContext[None], result: RunOutcome) -> None:
            told.append((run.id, result.reason))
            heard.set()

    till = Till()
    async with app_of(till.tools(), pay(), "Next.", store=store, lifecycle=Watch()) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        await run.result()
        if how == "cancel":
            await run.cancel("enough")
            wanted: list[tuple[str, str | None]] = [(run.id, "enough")]
        else:
            later = await thread.send("more", when_pending="supersede")
            await later.result()
            wanted = [(run.id, "superseded"), (later.id, None)]
        with anyio.fail_after(5):
            while set(told) != set(wanted):
                await heard.wait()
                heard = anyio.Event()


async def test_what_is_queued_waits_behind_a_suspended_run(store: str) -> None:
    """R-1, R-3: a resumed run goes before those that wait."""
    order: list[str] = []
    started = anyio.Event()
    go = anyio.Event()

    @tool
    async def slow(ctx: ToolContext[None]) -> str:
        """Wait."""
        started.set()
        await go.wait()
        return "ok"

    class Watch:
        @hookimpl
        def prepare_run(self, run: RunContext[None]) -> RunPatch | None:
            order.append(run.operation)
            return None

    turn = [Call("slow", {}), pay()]
    tools = {**Till().tools(), "slow": slow}
    async with app_of(tools, turn, "One.", "Two.", store=store, lifecycle=Watch()) as app:
        thread = app.thread("main")
        run = await thread.send("one")
        await started.wait()
        second = await thread.send("two")
        # It is asked for already, and answered while a sibling runs.
        state = await thread.state()
        assert [call.call_id for call in state.pending] == ["p"]
        assert state.runs[0].status == "running"
        await run.resume([Approve("p")])
        assert (await thread.state()).pending == ()
        go.set()
        assert (await run.result()).text == "One."
        assert (await second.result()).text == "Two."
        assert order == ["send", "resume", "send"]
        await agree(thread)


async def test_pending_calls_expire(store: str) -> None:
    """R-21: the run wakes by itself and the call has failed; an answer comes too late."""
    where = define_tool(
        name="where", description="Where.", input=Place, output=Place, expires_after=0.05
    )
    turn = Call("where", {"city": "?"}, call_id="1")
    async with app_of({"where": where}, turn, "Nobody.", store=store) as app:
        thread = app.thread("main")
        run = await thread.send("go")
        async for event in thread.events():
            if event.type == "run-finished":
                break
        assert (await run.result()).text == "Nobody."
        call = (await calls_of(thread))[0]
        assert call.outcome == "expired"
        with pytest.raises(AnswerConflict):
            await run.resume([Provide("1", {"city": "Rome"})])
        await agree(thread)


async def test_another_runtime_answers_and_goes_on(tmp_path: Path) -> None:
    """R-5, R-8, R-22: suspension is rows; any process takes it up, and runs nothing twice."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    till = Till()
    turn = [pay(), Call("count", {}, call_id="c")]
    async with app_of(till.tools(), turn, store=url) as app:
        await (await app.thread("main", thread_id="t").send("go", run_id="r")).result()
    later = Till()
    async with app_of(later.tools(), "Thanks.", store=url) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.run("r")
        assert (await run.result()).status == "suspended"
        await run.resume([Approve("p")])
        assert (await run.result()).text == "Thanks."
        await agree(thread)
    assert (till.done, later.done) == (["count"], [3])


async def test_a_watcher_of_the_run_ends_where_it_rests(store: str) -> None:
    """R-25: live and replayed alike, in each episode."""
    till = Till()
    seen: list[list[str]] = []

    async def watch(run: Any) -> None:
        seen.append([event.type async for event in run.events()])

    async with app_of(till.tools(), pay(), "Thanks.", store=store) as app:
        run = await app.thread("main").send("go")
        async with anyio.create_task_group() as group:
            group.start_soon(watch, run)
        await run.resume([Approve("p")])
        async with anyio.create_task_group() as group:
            group.start_soon(watch, run)
        await watch(run)
    first, second, replay = seen
    assert first[-1] == "run-suspended"
    assert second == replay
    assert second[: len(first)] == first
    assert second[-1] == "run-finished"
