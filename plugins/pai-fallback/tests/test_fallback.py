"""A chain of scripted models, through the runtime's own door."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pai_fallback import Target, fallback
from pai_fallback._target import Link

from pai import (
    ContextOverflow,
    ModelError,
    ModelProfile,
    ModelRequest,
    ModelSettings,
    RateLimited,
    RunResult,
    StepPatch,
    SystemMessage,
    Usage,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    run_once_sync,
    tool,
)
from pai.protocol import ToolSpec
from pai.testing import Call, Cut, Fail, Finish, Hang, Output, ScriptedModel

pytestmark = pytest.mark.anyio

LIMITED = Fail(RateLimited("slow down", provider="scripted", status=429, retry_after=3.0))
OVERFLOW = Fail(ContextOverflow("too long", provider="scripted"))
REFUSED = Finish("content-filter", Usage(5, 2, 7))


def failing(turn: Any = LIMITED, times: int = 1) -> ScriptedModel:
    return ScriptedModel([turn] * times)


async def play(model: ScriptedModel, *plugins: object, **options: Any) -> tuple[Any, RunResult]:
    """Run once on a thread; give its events and the result."""
    agent = define_agent(name="a", model=model, lifecycle=compose_lifecycle(*plugins), **options)
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main", thread_id="t").send("go")
        result = await run.result()
        events = [event async for event in run.events()]
        assert [event async for event in run.events(after=0)] == events
        return events, result


def switches(events: list[Any]) -> list[dict[str, Any]]:
    return [e.value for e in events if e.type == "plugin" and e.name == "fallback"]


def visible(events: list[Any]) -> str:
    """What a client shows: the text since the last reset (R-37)."""
    text = ""
    for event in events:
        if event.type == "step-reset":
            text = ""
        elif event.type == "text-delta":
            text += event.text
    return text


@tool
def add(ctx: Any, a: int, b: int) -> int:
    """Add."""
    return a + b


# ------------------------------------------------------------------------ switching


async def test_a_failure_before_the_first_chunk_switches_silently() -> None:
    """A-LIFE-5"""
    first, second = failing(), ScriptedModel(["Hello."])
    events, result = await play(first, fallback(second))
    assert result.text == "Hello."
    assert "step-reset" not in [event.type for event in events]
    assert switches(events) == [
        {
            "step": 0,
            "from": "scripted:script",
            "to": "scripted:script",
            "code": "rate_limited",
            "status": 429,
            "retryAfter": 3.0,
            "reset": False,
        }
    ]
    assert result.usage == Usage(1, 1, 2)


async def test_after_chunks_the_step_is_reset_and_only_the_second_answer_is_kept() -> None:
    """R-37: live, in replay, and in history."""
    first = ScriptedModel([["Never ", "seen", Cut()], "unused"], chunk=2)
    second = ScriptedModel(["Kept.", "And on."])
    agent = define_agent(name="a", model=first, lifecycle=fallback(second, sticky=True))
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send("go")
        live: list[Any] = [event async for event in run.events()]
        replay = [event async for event in run.events(after=0)]
        assert live == replay
        assert [e.reason for e in live if e.type == "step-reset"] == ["incomplete_stream"]
        assert visible(live) == "Kept."
        assert switches(live)[0]["reset"] is True
        state = await thread.state()
        parts: list[Any] = [message.parts for message in state.messages]
        assert [[part.text for part in kept] for kept in parts] == [["go"], ["Kept."]]
        assert (await run.result()).text == "Kept."


async def test_calls_of_an_answer_that_broke_off_are_never_run() -> None:
    """R-37"""
    ran: list[int] = []

    @tool
    def note(ctx: Any, a: int) -> int:
        """Note."""
        ran.append(a)
        return a

    first = ScriptedModel([[Call("note", {"a": 1}), Cut()]])
    second = ScriptedModel([Call("note", {"a": 2}), "Done."])
    _, result = await play(first, fallback(second), tools={"note": note})
    assert (ran, result.text) == ([2], "Done.")


@pytest.mark.parametrize("shown", [[], ["Sorry"]], ids=["at once", "after text"])
async def test_a_refusal_switches_and_what_it_used_is_counted(shown: list[str]) -> None:
    events, result = await play(
        ScriptedModel([[*shown, REFUSED]]), fallback(ScriptedModel(["Yes."]))
    )
    assert (result.text, visible(events)) == ("Yes.", "Yes.")
    assert switches(events)[0]["code"] == "refusal"
    assert [e.type for e in events].count("step-reset") == len(shown)
    assert result.usage == Usage(6, 3, 9)


async def test_a_structured_output_is_passed_on() -> None:
    """O-11: also where the use of the calls before it is added."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    second = ScriptedModel([Output({"n": 5})], profile=ModelProfile(output_source="event"))
    agent = define_agent(
        name="a", model=ScriptedModel([["Sorry", REFUSED]]), lifecycle=fallback(second)
    )
    result = await run_once(agent, "go", output=schema)
    assert result.output == {"n": 5}
    assert result.usage == Usage(6, 3, 9)


async def test_the_last_refusal_is_the_answer() -> None:
    events, result = await play(
        ScriptedModel([["No.", REFUSED]]), fallback(ScriptedModel([["Nor I.", REFUSED]]))
    )
    assert (result.text, result.stop_reason) == ("Nor I.", "content-filter")
    assert result.usage == Usage(10, 4, 14)
    assert len(switches(events)) == 1


async def test_a_refusal_stays_where_it_does_not_switch() -> None:
    second = ScriptedModel(["Yes."])
    _, result = await play(ScriptedModel([["No.", REFUSED]]), fallback(second, on="model_error"))
    assert (result.text, second.requests) == ("No.", [])


async def test_an_error_that_does_not_switch_ends_it() -> None:
    second = ScriptedModel(["Yes."])
    events, result = await play(failing(), fallback(second, on=ContextOverflow))
    assert (result.status, second.requests, switches(events)) == ("failed", [], [])


async def test_what_is_no_error_of_the_model_passes() -> None:
    second = ScriptedModel(["Yes."])
    _, result = await play(failing(Fail(ValueError("a fault"))), fallback(second))
    assert (result.status, second.requests) == ("failed", [])


async def test_the_last_error_is_raised_and_tells_of_those_before() -> None:
    events, result = await play(failing(), fallback(failing(OVERFLOW)))
    assert result.error is not None
    assert result.error["code"] == "context_overflow"
    assert [(s["code"], s["to"] is None) for s in switches(events)] == [
        ("rate_limited", False),
        ("context_overflow", True),
    ]


async def test_the_notes_name_codes_only() -> None:
    """R-40"""
    seen: list[Any] = []

    class Look:
        @hookimpl
        async def wrap_model_call(self, step, call_model):
            try:
                async for part in call_model(step.request):
                    yield part
            except ModelError as error:
                seen.append((type(error), *error.__notes__))
                raise

    last = Fail(ContextOverflow("too long", provider="scripted"))
    second = failing(Fail(ModelError("a secret", provider="two", code="broken")))
    await play(failing(), Look(), fallback(second, failing(last)))
    before = "scripted:script was asked before and given up"
    assert seen == [(ContextOverflow, f"{before}: rate_limited", f"{before}: broken")]


# ------------------------------------------------------------------------ time


@pytest.mark.parametrize(
    ("turn", "limit", "reset"),
    [
        ([Hang()], {"first": 0.01}, False),
        (["Text", Hang()], {"between": 0.01}, True),
        (["Text", Hang()], {"total": 0.01}, True),
    ],
)
async def test_a_limit_switches(turn: Any, limit: dict[str, Any], reset: bool) -> None:
    """R-35"""
    events, result = await play(ScriptedModel([turn]), fallback(ScriptedModel(["Yes."]), **limit))
    assert (result.text, visible(events)) == ("Yes.", "Yes.")
    [switch] = switches(events)
    assert (switch["code"], switch["reset"]) == ("model_timeout", reset)


async def test_cancellation_passes_through() -> None:
    """R-35: it is no failure of a model."""
    second = ScriptedModel(["Yes."])
    agent = define_agent(
        name="a", model=ScriptedModel([["Text", Hang()]]), lifecycle=fallback(second)
    )
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        run = await app.thread("main").send("go")
        async for event in run.events():
            if event.type == "text-delta":
                await run.cancel("enough")
        result = await run.result()
    assert (result.status, second.requests) == ("cancelled", [])


# ------------------------------------------------------------------------ what a target gets


async def test_a_target_gets_the_request_with_what_is_different_for_it() -> None:
    """A-INSTR-3"""
    first = ScriptedModel([LIMITED], provider="one")
    second = ScriptedModel([LIMITED], provider="two")
    third = ScriptedModel(["Yes."], provider="two")
    marked = SystemMessage("Be brief.", {"one": {"cache": True}})
    own = Target(
        third,
        instructions=SystemMessage("Be kind."),
        model_settings=ModelSettings(temperature=0.5),
        provider_options={"two": {"x": 1}},
    )
    _, result = await play(
        first, fallback(second, own, instructions={"two": "Be brief, two."}), instructions=[marked]
    )
    assert result.text == "Yes."
    asked = [model.requests[0] for model in (first, second, third)]
    assert [request.instructions for request in asked] == [
        (marked,),
        (SystemMessage("Be brief, two."),),
        (SystemMessage("Be kind."),),
    ]
    assert asked[1].settings == ModelSettings()
    assert asked[2].settings == ModelSettings(temperature=0.5)
    assert asked[2].provider_options == {"two": {"x": 1}}
    assert [request.model for request in asked] == [first, second, third]
    assert [request.messages for request in asked] == [asked[0].messages] * 3


async def test_instructions_stay_with_their_options_where_nothing_else_is_said() -> None:
    """A-INSTR-3"""
    marked = SystemMessage("Be brief.", {"scripted": {"cache": True}})
    second = ScriptedModel(["Yes."])
    await play(failing(), fallback(second), instructions=[marked])
    assert second.requests[0].instructions == (marked,)


@pytest.mark.parametrize(("tools", "combined"), [(True, True), (True, False), (False, False)])
def test_a_target_gets_nothing_that_was_meant_for_another_model(
    tools: bool, combined: bool
) -> None:
    """O-11"""
    link = Link.of(Target(ScriptedModel(profile=ModelProfile(combined_output=combined))))
    request = ModelRequest(
        ScriptedModel(),
        [],
        tools=(ToolSpec("add", "Add.", {"type": "object"}),) if tools else (),
        output={"type": "object"},
        mid_conversation={"added": []},
    )
    given_ = link.request(request)
    assert given_.mid_conversation is None
    assert given_.output == (None if tools and not combined else {"type": "object"})


# ------------------------------------------------------------------------ steps


@pytest.mark.parametrize("sticky", [True, False])
async def test_later_steps_begin_where_the_last_one_was_answered(sticky: bool) -> None:
    """R-34"""
    first = ScriptedModel([LIMITED, "From the first."])
    second = ScriptedModel([Call("add", {"a": 1, "b": 2}), "From the second."])
    _, result = await play(first, fallback(second, sticky=sticky), tools={"add": add})
    assert result.text == ("From the second." if sticky else "From the first.")
    assert len(first.requests) == (1 if sticky else 2)


async def test_the_next_run_begins_with_the_first_model_again() -> None:
    """R-34: the switch is kept for one episode."""
    first, second = ScriptedModel([LIMITED, "Back."]), ScriptedModel(["Here."])
    agent = define_agent(name="a", model=first, lifecycle=fallback(second))
    async with create_pai(agents={"main": agent}, plugins=()) as app:
        thread = app.thread("main")
        texts = [(await (await thread.send("go")).result()).text for _ in range(2)]
    assert texts == ["Here.", "Back."]


async def test_a_step_that_goes_to_another_model_begins_with_that_one() -> None:
    first, second = failing(), ScriptedModel([Call("add", {"a": 1, "b": 2})])
    other = ScriptedModel(["From another."])

    class Route:
        @hookimpl
        def prepare_model_step(self, step):
            return StepPatch(model=other) if step.index == 1 else None

    _, result = await play(first, Route(), fallback(second), tools={"add": add})
    assert result.text == "From another."


# ------------------------------------------------------------------------ beside other plugins


class Count:
    """Another plugin around the call."""

    def __init__(self) -> None:
        self.opened = self.closed = 0

    @hookimpl
    async def wrap_model_call(self, step, call_model):
        self.opened += 1
        try:
            async for part in call_model(step.request):
                yield part
        finally:
            self.closed += 1


@pytest.mark.parametrize("inside", [True, False])
async def test_it_stands_inside_or_outside_others(inside: bool) -> None:
    count, plugin = Count(), fallback(ScriptedModel(["Yes."]))
    order = (plugin, count) if inside else (count, plugin)
    events, result = await play(ScriptedModel([["Lost", Cut()]]), *order)
    assert (result.text, visible(events)) == ("Yes.", "Yes.")
    assert count.opened == count.closed == (2 if inside else 1)


@pytest.mark.parametrize("turn", [["Lost", Hang()], ["Lost", REFUSED], ["Lost", Cut()]])
async def test_a_stream_is_closed_before_the_next_one_is_opened(turn: Any) -> None:
    """R-28"""
    order: list[str] = []

    class Watch:
        @hookimpl
        async def wrap_model_call(self, step, call_model):
            order.append("open")
            try:
                async for part in call_model(step.request):
                    yield part
            finally:
                order.append("close")

    await play(ScriptedModel([turn]), fallback(ScriptedModel(["Yes."]), between=0.01), Watch())
    assert order == ["open", "close"] * 2


async def test_what_its_reader_throws_is_not_caught() -> None:
    own, second = ScriptedModel(["Text"]), ScriptedModel(["Yes."])
    step = SimpleNamespace(request=ModelRequest(own, []), index=0, run=None)
    opened: list[Any] = []

    def call_model(request: ModelRequest) -> Any:
        opened.append(own.stream(request))
        return opened[-1]

    stream: Any = fallback(second).wrap_model_call(step, call_model, {})  # type: ignore[arg-type]  # as much of a step as it needs
    await anext(stream)
    with pytest.raises(RateLimited, match="thrown in"):
        await stream.athrow(RateLimited("thrown in", provider="reader"))
    assert second.requests == []
    with pytest.raises(StopAsyncIteration):
        await anext(opened[0])


async def test_stacked_fallbacks_ask_no_model_twice() -> None:
    """O-17: they do not multiply."""
    own, b, c, d = (failing(times=9) for _ in range(4))
    events, result = await play(own, fallback(b), fallback(c, d))
    assert result.status == "failed"
    assert [len(model.requests) for model in (own, b, c, d)] == [1, 1, 1, 1]
    assert switches(events)[-1]["to"] is None


@pytest.mark.parametrize(("turn", "resets"), [(["two", Cut()], 2), (LIMITED, 1)])
async def test_stacked_fallbacks_reset_what_was_shown_and_no_more(turn: Any, resets: int) -> None:
    """R-37"""
    own, inner = ScriptedModel([["one", Cut()]]), ScriptedModel([turn])
    events, result = await play(own, fallback(ScriptedModel(["three"])), fallback(inner))
    assert (result.text, visible(events)) == ("three", "three")
    assert [e.type for e in events].count("step-reset") == resets


async def test_a_place_that_failed_in_this_step_is_no_beginning() -> None:
    """O-17: the inner one remembers C for B, and C has just failed after A."""
    a, b = ScriptedModel([LIMITED]), ScriptedModel([LIMITED, "Yes."])
    c = ScriptedModel([Call("add", {"a": 1, "b": 2}), LIMITED])

    class Route:
        @hookimpl
        def prepare_model_step(self, step):
            return StepPatch(model=b) if step.index == 0 else None

    _, result = await play(a, Route(), fallback(b), fallback(c), tools={"add": add})
    assert result.text == "Yes."
    assert [len(model.requests) for model in (a, b, c)] == [1, 2, 2]


async def test_stacked_fallbacks_ask_a_shared_target_once() -> None:
    shared = ScriptedModel([["No.", REFUSED], "never"])
    _, result = await play(ScriptedModel([REFUSED]), fallback(shared), fallback(shared))
    assert (result.text, len(shared.requests)) == ("No.", 1)


@given(
    st.lists(st.sampled_from(["limited", "cut", "refused", "over", "ok"]), min_size=2, max_size=5)
)
@settings(deadline=None)
def test_whatever_fails_one_answer_is_left_and_each_model_is_asked_once(kinds: list[str]) -> None:
    """R-37, O-17"""
    turns: dict[str, Any] = {
        "limited": LIMITED,
        "cut": ["part of ", "it", Cut()],
        "refused": ["I would", REFUSED],
        "over": [Call("add", {"a": 1, "b": 1}), OVERFLOW],
    }
    models = [
        ScriptedModel([[f"answer {n}"] if kind == "ok" else turns[kind]], chunk=3)
        for n, kind in enumerate(kinds)
    ]
    first, *rest = models
    agent = define_agent(name="a", model=first, lifecycle=fallback(*rest), tools={"add": add})
    result = run_once_sync(agent, "go")
    good = next((n for n, kind in enumerate(kinds) if kind == "ok"), None)
    asked = len(kinds) if good is None else good + 1
    assert [len(model.requests) for model in models] == [1] * asked + [0] * (len(kinds) - asked)
    if good is not None:
        assert result.text == f"answer {good}"
        assert result.message is not None
        assert len(result.message.parts) == 1
    elif kinds[-1] == "refused":
        assert result.text == "I would"
    else:
        assert result.status == "failed"


def test_the_agents_retries_do_not_multiply() -> None:
    """O-17: a model of the chain that fails is asked once; without the chain it is asked again."""
    busy = Fail(RateLimited("slow", provider="p", status=429, retry_after=0.0))
    first, second = ScriptedModel([busy, "first"]), ScriptedModel([busy, "second"])
    third = ScriptedModel(["third"])
    agent = define_agent(name="a", model=first, lifecycle=fallback(second, third))
    assert run_once_sync(agent, "go").text == "third"
    assert [len(model.requests) for model in (first, second, third)] == [1, 1, 1]
    alone = ScriptedModel([busy, "first"])
    assert run_once_sync(define_agent(name="a", model=alone), "go").text == "first"
