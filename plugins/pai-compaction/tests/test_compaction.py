"""Compaction in runs, through the runtime's own door."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import attrs
import pytest
from pai_compaction import clear_tool_outputs, compaction, summarise, window

from pai import (
    ContextOverflow,
    DataPart,
    ModelError,
    ModelProfile,
    ModelRequest,
    Pai,
    StepPatch,
    ToolCallPart,
    Usage,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, Fail, Finish, Output, ScriptedModel

pytestmark = pytest.mark.anyio

OVERFLOW = Fail(ContextOverflow("too long", provider="scripted", status=400))
LONG = "word " * 400  # about 570 tokens


@tool
def look(ctx, at: str) -> str:
    """Look something up."""
    return f"{at}: {LONG}"


def is_summary(request: ModelRequest) -> bool:
    return request.messages[0].id == "summary-request"


def app_of(model: ScriptedModel, *plugins: object, store: str = "memory:", **options: Any) -> Pai:
    agent = define_agent(
        name="a",
        model=model,
        tools={"look": look},
        lifecycle=compose_lifecycle(*plugins),
        **options,
    )
    return create_pai(agents={"main": agent}, plugins=(), store=store)


async def ask(app: Pai, text: str) -> tuple[Any, list[Any]]:
    """Send a message to the thread; the result and the compactions of that run."""
    run = await app.thread("main", thread_id="t").send(text)
    result = await run.result()
    events = [event async for event in run.events()]
    told = [each.value for each in events if each.type == "plugin" and each.name == "compaction"]
    return result, told


def texts(request: ModelRequest) -> list[str]:
    return [message.text for message in request.messages]


async def test_an_overflow_is_compacted_and_tried_once_more():
    model = ScriptedModel(["One.", "Two.", OVERFLOW, "They talked.", "Three."])
    async with app_of(model, compaction()) as app:
        for text in (LONG, LONG):
            assert (await ask(app, text))[0].text in {"One.", "Two."}
        result, told = await ask(app, "and now?")
        state = await app.thread("main", thread_id="t").state()

    assert result.text == "Three."
    refused, summary, last = model.requests[2:]
    assert texts(refused) == [LONG, "One.", LONG, "Two.", "and now?"]
    assert is_summary(summary)
    assert summary.tools == ()
    assert texts(last)[1:] == [LONG, "Two.", "and now?"]
    assert "They talked." in texts(last)[0]
    assert last.messages[0].role == "user"
    [event] = told
    assert event["strategy"] == ["summarise"]
    assert event["reason"] == "overflow"
    assert event["messages"] == {"before": 5, "after": 4}
    assert event["after"] < event["before"]
    # The thread keeps all that was said, and nothing else.
    assert [len(message.parts) for message in state.messages] == [1] * 6
    assert state.messages[0].parts[0].text == LONG


async def test_a_later_run_begins_with_what_was_compacted():
    model = ScriptedModel(["One.", OVERFLOW, "Two.", "Three."])
    async with app_of(model, compaction(strategies=[window()])) as app:
        for text in (LONG, "and now?", "and then?"):
            assert (await ask(app, text))[0].status == "completed"
    assert texts(model.requests[-1]) == ["and now?", "Two.", "and then?"]


async def test_what_was_streamed_before_an_overflow_is_void():
    model = ScriptedModel(["One.", ["Half an ans", OVERFLOW], "Whole."])
    async with app_of(model, compaction(strategies=[window()])) as app:
        await ask(app, LONG)
        run = await app.thread("main", thread_id="t").send("and now?")
        result = await run.result()
        types = [event.type async for event in run.events()]
        state = await app.thread("main", thread_id="t").state()
    assert result.text == "Whole."
    assert types.count("step-reset") == 1
    assert [part.text for part in state.messages[-1].parts] == ["Whole."]


async def test_a_second_overflow_and_one_that_nothing_helps_are_the_runs_own():
    model = ScriptedModel(["One.", *[OVERFLOW] * 2])
    async with app_of(model, compaction(strategies=[window()])) as app:
        await ask(app, LONG)
        result, told = await ask(app, "and now?")
        assert result.error["code"] == "context_overflow"
        assert len(told) == 1
    assert [texts(request)[0][:4] for request in model.requests] == ["word", "word", "and "]
    model = ScriptedModel([OVERFLOW])
    async with app_of(model, compaction()) as app:
        result, told = await ask(app, LONG)
        # There is one turn, and it stays.
        assert result.error["code"] == "context_overflow"
        assert not told
    assert len(model.requests) == 1


async def test_old_outputs_are_cleared_and_calls_stay():
    script = [*[Call("look", {"at": str(n)}, f"c{n}") for n in range(4)], "Done."]
    model = ScriptedModel(script)
    plugin = compaction(1_500, strategies=[clear_tool_outputs(keep=1)])
    async with app_of(model, plugin) as app:
        result, told = await ask(app, "look four times")
    assert result.text == "Done."
    calls = [
        part
        for message in model.requests[-1].messages
        for part in message.parts
        if isinstance(part, ToolCallPart)
    ]
    assert [call.call_id for call in calls] == ["c0", "c1", "c2", "c3"]
    assert [call.outcome for call in calls] == ["completed"] * 4
    assert [LONG in str(call.output) for call in calls] == [False, False, True, True]
    assert [event["strategy"] for event in told] == [["clear_tool_outputs"]]
    # What was cleared once stays so: a later request is the earlier one and some more.
    third, fourth = model.requests[3:5]
    assert [m.parts for m in fourth.messages][: len(third.messages)] == [
        m.parts for m in third.messages
    ]


async def test_the_summary_is_kept_and_extended_in_later_runs():
    def answer(request: ModelRequest) -> Any:
        if not is_summary(request):
            return "Ok."
        return f"S{sum(map(is_summary, model.requests))}."

    model = ScriptedModel(answer)
    plugin = compaction(1_500, target=1_400, strategies=[summarise(keep=1)])
    async with app_of(model, plugin) as app:
        for number in range(6):
            result, _ = await ask(app, f"{number} {LONG}")
            assert result.status == "completed"

    summaries = [request for request in model.requests if is_summary(request)]
    others = [request for request in model.requests if not is_summary(request)]
    assert len(summaries) >= 2
    first, second = summaries[:2]
    assert "0 word" in texts(first)[0]
    # It is extended: what it stands for is not read again.
    assert "S1." in texts(second)[0]
    assert "0 word" not in texts(second)[0]
    for index, request in enumerate(others):
        assert texts(request)[-1] == f"{index} {LONG}"
    assert f"S{len(summaries)}." in texts(others[-1])[0]


SCRIPT = """
import sys
import anyio
from pai import create_pai, define_agent
from pai.testing import ScriptedModel
from pai_compaction import compaction, summarise

def answer(request):
    asked.append(request.messages[0].id)
    return "SUM" if request.messages[0].id == "summary-request" else "Ok."

async def main():
    model = ScriptedModel(answer)
    plugin = compaction(1_500, strategies=[summarise(keep=1)])
    agent = define_agent(name="a", model=model, lifecycle=plugin)
    async with create_pai(agents={"main": agent}, store=sys.argv[1], plugins=()) as app:
        for text in sys.argv[2:]:
            run = await app.thread("main", thread_id="t").send(text)
            assert (await run.result()).status == "completed"
    print(*asked)

asked = []
anyio.run(main)
"""


def test_the_summary_is_used_by_another_process(tmp_path):
    def process(*texts: str) -> list[str]:
        store = f"sqlite:///{tmp_path / 'pai.db'}"
        command = [sys.executable, "-c", SCRIPT, store, *texts]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return done.stdout.split()

    first = process(LONG, LONG, LONG)
    assert "summary-request" in first
    assert first[-1].startswith("summary:")
    assert process("and now?") == [first[-1]]


async def test_the_provider_has_the_last_word_on_sizes():
    # It counts twice what we do: the estimate alone would let all of this pass.
    def answer(request: ModelRequest) -> Any:
        tokens = 2 * sum(len(message.text) for message in request.messages) // 3
        return ["Ok.", Finish("stop", Usage(tokens, 1, tokens + 1))]

    model = ScriptedModel(answer)
    async with app_of(model, compaction(4_000, strategies=[window()])) as app:
        told = [(await ask(app, LONG))[1] for _ in range(4)]
    assert [len(each) for each in told] == [0, 0, 0, 1]
    assert told[3][0]["before"] > 4_000
    assert len(model.requests[-1].messages) < 7


async def test_what_a_summary_used_counts_for_the_run():
    def answer(request: ModelRequest) -> Any:
        return ["Ok.", Finish("stop", Usage(700 if is_summary(request) else 600, 7, 0))]

    model = ScriptedModel(answer)
    async with app_of(model, compaction(900, strategies=[summarise(keep=1)])) as app:
        plain, _ = await ask(app, LONG)
        summed, _ = await ask(app, LONG)
    assert plain.usage.input_tokens == 600
    assert summed.usage.input_tokens == 1_300


async def test_a_structured_output_is_passed_on():
    """O-11: also where what a summary used is added."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def answer(request: ModelRequest) -> Any:
        return "They talked." if is_summary(request) else ["Ok.", Output({"n": 5})]

    profile = ModelProfile(combined_output=True, output_source="event")
    model = ScriptedModel(answer, profile=profile)
    plugin = compaction(900, strategies=[summarise(keep=1)])
    async with app_of(model, plugin, outputs={"n": schema}) as app:
        await ask(app, LONG)
        run = await app.thread("main", thread_id="t").send(LONG, options={"output": "n"})
        assert (await run.result()).output == {"n": 5}
    # Nothing had to be asked again.
    assert list(map(is_summary, model.requests)) == [False, True, False]


async def test_layers_further_inside_see_the_call_for_a_summary():
    seen = []

    class Inner:
        @hookimpl
        async def wrap_model_call(self, step, call_model):
            seen.append((is_summary(step.request), step.request.model.name))
            async for part in call_model(step.request):
                yield part

    small = ScriptedModel(["They talked."], provider="small")
    model = ScriptedModel(["Ok.", "Ok."])
    plugin = compaction(900, strategies=[summarise(keep=1, model=small)])
    async with app_of(model, plugin, Inner()) as app:
        for text in (LONG, LONG):
            await ask(app, text)
    assert [each for each, _ in seen] == [False, True, False]
    assert len(small.requests) == 1
    assert len(model.requests) == 2


@pytest.mark.parametrize(
    ("written", "code"),
    [
        (Fail(ModelError("no", provider="scripted", code="no_luck")), "no_luck"),
        (" ", "empty_summary"),
        (LONG * 2, "long_summary"),
    ],
)
async def test_a_summary_that_is_none_does_not_end_the_run(written, code):
    def answer(request: ModelRequest) -> Any:
        return written if is_summary(request) else "Ok."

    plugin = compaction(900, strategies=[summarise(keep=1), window()])
    async with app_of(ScriptedModel(answer), plugin) as app:
        await ask(app, LONG)
        result, told = await ask(app, LONG)
    assert result.status == "completed"
    assert [event["failed"] for event in told] == [{"summarise": code}]
    assert [event["strategy"] for event in told] == [["window"]]


async def test_a_summary_that_is_itself_too_long_is_made_in_pieces():
    asked = []

    def answer(request: ModelRequest) -> Any:
        if not is_summary(request):
            return "Ok."
        asked.append(len(request.messages[0].text))
        return OVERFLOW if asked[-1] > 5_000 else f"S{len(asked)}."

    model = ScriptedModel(answer)
    plugin = compaction(6_000, target=1_000, strategies=[summarise(keep=1)])
    async with app_of(model, plugin) as app:
        for _ in range(12):
            result, told = await ask(app, LONG)
            assert result.status == "completed"
            if told:
                break
    assert len([length for length in asked if length > 5_000]) >= 1
    assert len([length for length in asked if length <= 5_000]) >= 2
    assert told[0]["strategy"] == ["summarise"]
    assert told[0]["after"] <= 1_000


async def test_what_other_plugins_put_into_the_history_is_taken_as_it_is():
    class Adds:
        @hookimpl
        def prepare_model_step(self, step):
            first, *rest = step.request.messages
            note = attrs.evolve(first, parts=(*first.parts, DataPart("note", "x")))
            return StepPatch(messages=[note, *rest])

    model = ScriptedModel(lambda request: "Ok.")
    async with app_of(model, Adds(), compaction(900, strategies=[window()])) as app:
        for number in range(4):
            result, _ = await ask(app, f"{number} {LONG}")
            assert result.status == "completed"
    assert texts(model.requests[-1]) == [f"3 {LONG}"]
