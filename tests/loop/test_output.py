"""Structured output (O-11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import annotated_types
import anyio
import attrs
import pytest

from pai import (
    InvalidInput,
    ModelProfile,
    ModelRequest,
    OutputPart,
    Respond,
    Retry,
    RunFailed,
    RunOptions,
    RunPatch,
    StepContext,
    StepPatch,
    StreamPart,
    StructuredOutputError,
    TextPart,
    Usage,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    tool,
)
from pai.protocol import event_from_json, event_to_json, fold
from pai.testing import Call, Fail, Finish, Hang, ScriptedModel

from ..definition.refusals import refused_agent

pytestmark = pytest.mark.anyio


@attrs.frozen
class Report:
    """A report."""

    title: str
    score: int | None = None
    tags: list[str] = attrs.field(factory=list)


@tool
def add(ctx, a: int, b: int) -> int:
    """Add."""
    return a + b


ADD = Call("add", {"a": 1, "b": 2})
GOOD = '{"title": "T", "score": null, "tags": ["x"]}'
BOTH = ModelProfile(combined_output=True)
REPORT = Report("T", None, ["x"])
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
}


def agent(model: ScriptedModel, **fields: Any) -> Any:
    return define_agent(name="a", model=model, outputs={"report": Report}, **fields)


def told(model: ScriptedModel) -> list[tuple[int, bool]]:
    """Of each request: how many tools, and whether the output goes with it."""
    return [(len(asked.tools), asked.output is not None) for asked in model.requests]


# ---------------------------------------------------------------------------- what is asked for


@pytest.mark.parametrize("output", [Report, "report"])
async def test_a_class_or_a_name(output) -> None:
    """The instance is in the result, and what is told to the model is its schema."""
    model = ScriptedModel([GOOD])
    result = await run_once(agent(model), "go", output=output)
    result.raise_for_status()
    assert result.output == REPORT
    assert result.text == GOOD
    (asked,) = model.requests
    assert asked.output is not None
    assert asked.output["required"] == ["title"]


async def test_a_schema() -> None:
    model = ScriptedModel(['{"n": 5}'])
    result = await run_once(agent(model), "go", output=SCHEMA)
    assert result.output == {"n": 5}
    assert model.requests[0].output == SCHEMA


@pytest.mark.parametrize("options", [{"output": "report"}, RunOptions(output="report")])
async def test_by_an_option(options) -> None:
    result = await run_once(agent(ScriptedModel([GOOD])), "go", options=options)
    assert result.output == REPORT


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (str, '{"value": "a"}', "a"),
        (Report | int, '{"value": 5}', 5),
        (Literal["yes", "no"], '{"value": "no"}', "no"),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
)
async def test_types_that_are_no_objects(type_, text: str, value) -> None:
    """Providers give objects alone, so these stand in one."""
    model = ScriptedModel([text])
    result = await run_once(define_agent(name="a", model=model), "go", output=type_)
    assert result.output == value
    assert model.requests[0].output is not None
    assert model.requests[0].output["type"] == "object"


async def test_a_class_that_holds_itself() -> None:
    model = ScriptedModel(['{"of": [{"of": []}]}'])
    result = await run_once(define_agent(name="a", model=model), "go", output=Tree)
    assert result.output == Tree([Tree([])])


@attrs.frozen
class Tree:
    of: list[Tree]


async def test_hooks_choose() -> None:
    """A patch of the run wins over the options, one of the step over both."""

    class Chooses:
        def __init__(self, run: Any, step: Any) -> None:
            self.run, self.step = run, step

        @hookimpl
        def prepare_run(self):
            return self.run

        @hookimpl
        def prepare_model_step(self):
            return self.step

    @attrs.frozen
    class Other:
        n: int

    cases: list[tuple[Any, Any, Any]] = [
        (RunPatch(output=Other), None, {"n": 5}),
        (RunPatch(output=SCHEMA), None, {"n": 5}),
        (None, StepPatch(output=SCHEMA), {"n": 5}),
        (RunPatch(output=None), None, None),
        (RunPatch(output=SCHEMA), StepPatch(output=None), None),
        (RunPatch(output=SCHEMA), StepPatch(output="report"), REPORT),
    ]
    for run, step, value in cases:
        text = GOOD if value == REPORT else '{"n": 5}'
        model = ScriptedModel([text])
        chosen = agent(model, lifecycle=Chooses(run, step))
        result = await run_once(chosen, "go", options={"output": "report"})
        assert result.status == "completed"
        assert result.output == value
        assert (model.requests[0].output is None) == (value is None)


# ---------------------------------------------------------------------------- beside tools


async def test_beside_tools_where_the_driver_takes_both() -> None:
    """One request has tools and output; the last answer is read, without a further call."""
    model = ScriptedModel([ADD, GOOD], profile=BOTH)
    result = await run_once(agent(model, tools={"add": add}), "go", output=Report)
    assert result.output == REPORT
    assert told(model) == [(1, True), (1, True)]


async def test_other_drivers_never_see_it_there() -> None:
    """The output is asked for in a call of its own, when the tools are done."""
    kinds: list[str] = []

    class Looks:
        @hookimpl
        def prepare_model_step(self, step):
            kinds.append(step.kind)

    model = ScriptedModel([ADD, "Three.", GOOD])
    chosen = agent(model, tools={"add": add}, lifecycle=Looks())
    result = await run_once(chosen, "go", output=Report)
    assert result.output == REPORT
    assert told(model) == [(1, False), (1, False), (0, True)]
    assert kinds == ["model", "model", "output"]
    assert result.stop_reason == "stop"
    assert result.usage == Usage(3, 3, 6)
    # What the tools' loop has said stays, and the model sees it.
    assert [each.text for each in model.requests[2].messages][-2] == "Three."


async def test_sent_to_another_driver_on_the_way() -> None:
    """A hook that sends a request elsewhere can't bring the output beside tools there."""
    other = ScriptedModel(["Three.", GOOD])

    class Elsewhere:
        @hookimpl
        async def wrap_model_call(self, step: StepContext[Any], call_model) -> AsyncIterator[StreamPart]:  # fmt: skip
            async for part in call_model(attrs.evolve(step.request, model=other)):
                yield part

    model = ScriptedModel([], profile=BOTH)
    chosen = agent(model, tools={"add": add}, lifecycle=Elsewhere())
    result = await run_once(chosen, "go", output=Report)
    assert result.output == REPORT
    assert told(other) == [(1, False), (0, True)]


async def test_a_step_without_tools() -> None:
    """A patch that takes the tools away makes room for the output."""

    class NoTools:
        @hookimpl
        def prepare_model_step(self):
            return StepPatch(tools=[])

    model = ScriptedModel([GOOD])
    chosen = agent(model, tools={"add": add}, lifecycle=NoTools())
    result = await run_once(chosen, "go", output=Report)
    assert result.output == REPORT
    assert told(model) == [(0, True)]


@pytest.mark.parametrize("profile", [ModelProfile(), BOTH])
async def test_at_the_step_limit(profile: ModelProfile) -> None:
    """The output is made all the same, and the reason stays (O-2)."""
    model = ScriptedModel([ADD, GOOD], profile=profile)
    chosen = agent(model, tools={"add": add}, max_steps=1)
    result = await run_once(chosen, "go", output=Report)
    assert result.output == REPORT
    assert result.stop_reason == "max_steps"
    assert told(model)[-1] == (0, True)


async def test_an_answer_of_a_hook_has_none() -> None:
    class Answers:
        @hookimpl
        def prepare_model_step(self):
            return Respond("No.", outcome="blocked")

    result = await run_once(agent(ScriptedModel(), lifecycle=Answers()), "go", output=Report)
    assert (result.status, result.text, result.output) == ("blocked", "No.", None)


# ---------------------------------------------------------------------------- reading


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```\n",
        f"\n {GOOD} \n",
        '{"title": "T", "tags": ["x"]}',
    ],
)
async def test_what_fits(text: str) -> None:
    """Also with the fence that some models put around, and without optional keys."""
    result = await run_once(agent(ScriptedModel([text], chunk=3)), "go", output=Report)
    assert result.output == REPORT


async def test_nulls_of_the_strict_form_are_undone() -> None:
    """A null for an optional key that takes none is what the strict form forces."""
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": ["integer", "null"]}},
        "required": ["b"],
        "additionalProperties": False,
    }
    result = await run_once(agent(ScriptedModel(['{"a": null, "b": null}'])), "go", output=schema)
    assert result.output == {"b": None}


BAD = [
    "Sure!",
    "",
    "[1]",
    '{"title": 5}',
    '{"title": "a", "title": "b"}',
    '{"title": "a", "other": 1}',
    '{"title": NaN}',
]


@pytest.mark.parametrize("bad", BAD)
async def test_one_more_call_repairs(bad: str) -> None:
    """The model is told what was wrong, and the first answer is not kept."""
    model = ScriptedModel([bad, GOOD])
    result = await run_once(agent(model), "go", output=Report)
    assert result.output == REPORT
    assert result.text == GOOD
    assert result.usage == Usage(2, 2, 4)
    first, second = model.requests
    said = [(each.role, each.text) for each in second.messages[len(first.messages) :]]
    assert said[-1][0] == "user"
    assert said[-1][1].startswith("Your answer does not fit the schema of the output:\n")
    assert said[:-1] == ([("assistant", bad)] if bad else [])
    assert second.output == first.output


@pytest.mark.parametrize("bad", BAD)
async def test_then_it_fails(bad: str) -> None:
    """With a typed error that has the raw text; nobody else is told more than a code."""
    model = ScriptedModel(["first", bad])
    errors: list[Any] = []
    result = await run_once(agent(model), "go", output=Report, on_runtime_error=errors.append)
    assert result.status == "failed"
    assert result.output is None
    assert result.usage == Usage(2, 2, 4)
    (error,) = errors
    assert isinstance(error, StructuredOutputError)
    assert error.raw_text == bad
    assert error.code == f"structured_output_{'missing' if not bad else 'invalid'}"
    assert result.error is not None
    assert result.error["code"] == error.code
    assert "Sure" not in str(result.error)
    for kind in (StructuredOutputError, RunFailed):
        with pytest.raises(kind) as caught:
            result.raise_for_status()
        assert caught.value.code == error.code  # type: ignore[attr-defined]  # both have one
    with pytest.raises(StructuredOutputError) as again:
        result.raise_for_status()
    assert again.value.raw_text == bad


@pytest.mark.parametrize(
    ("reason", "code"), [("length", "truncated"), ("content-filter", "filtered")]
)
async def test_an_answer_that_was_stopped(reason: Any, code: str) -> None:
    """Asking again would end the same way."""
    model = ScriptedModel([[GOOD, Finish(reason)]])
    result = await run_once(agent(model), "go", output=Report)
    assert result.error is not None
    assert result.error["code"] == f"structured_output_{code}"
    assert len(model.requests) == 1


async def test_a_call_where_only_the_output_is_wanted() -> None:
    """A model that calls a tool it was not offered is told so, and then it fails."""
    model = ScriptedModel([ADD, "Three.", ADD, GOOD])
    chosen = agent(model, tools={"add": add})
    assert (await run_once(chosen, "go", output=Report)).output == REPORT
    model = ScriptedModel([ADD, "Three.", ADD, ADD])
    result = await run_once(agent(model, tools={"add": add}), "go", output=Report)
    assert result.error is not None
    assert result.error["code"] == "structured_output_missing"


async def test_constraints_hold() -> None:
    kind = Annotated[int, annotated_types.Ge(3)]
    model = ScriptedModel(['{"value": 2}', '{"value": 3}'])
    result = await run_once(define_agent(name="a", model=model), "go", output=kind)
    assert result.output == 3


@pytest.mark.parametrize("turns", [[ADD, "Three.", Fail()], ["x", Fail()]])
async def test_a_call_for_the_output_alone_is_not_retried(turns) -> None:
    """O-17: neither the closing one nor the one that repairs."""
    from pai import RateLimited

    model = ScriptedModel(
        [Fail(RateLimited("slow", provider="p", retry_after=0.0)) if isinstance(t, Fail) else t
         for t in turns]
    )  # fmt: skip
    chosen = agent(model, tools={"add": add} if ADD in turns else None, retry=Retry(3, 5.0))
    result = await run_once(chosen, "go", output=Report)
    assert result.error is not None
    assert result.error["code"] == "rate_limited"
    assert len(model.requests) == len(turns)


# ---------------------------------------------------------------------------- kept


@pytest.mark.parametrize("turns", [[GOOD], ["bad", GOOD], [ADD, "Three.", GOOD]])
async def test_it_stands_on_the_stored_message(turns, tmp_path: Path) -> None:
    """Also after a restart; and the events tell the same as the state (R-25)."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    chosen = agent(ScriptedModel(turns), tools={"add": add} if ADD in turns else None)
    part = OutputPart({"title": "T", "score": None, "tags": ["x"]}, "report")
    with anyio.fail_after(20):
        async with create_pai(agents={"a": chosen}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.send("go", run_id="r", options={"output": "report"})
            events = [event async for event in run.events()]
            assert fold(None, events) == await thread.state()
            assert [event_from_json(event_to_json(each)).type for each in events] == [
                each.type for each in events
            ]
        resets = [event.reason for event in events if event.type == "step-reset"]
        assert resets == (["output"] if "bad" in turns else [])
        again = agent(ScriptedModel(["More."]))
        async with create_pai(agents={"a": again}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            state = await thread.state()
            assert state.messages[-1].parts == (TextPart(GOOD), part)
            result = await (await thread.run("r")).result()
            assert result.output == REPORT
            assert result.message is not None
            assert result.message.parts[-1] == part
            # The next run reads it as it was written.
            await (await thread.send("more")).result()
    asked = again.model.requests[0]
    assert asked.messages[-2].parts == (TextPart(GOOD), part)


async def test_a_class_that_has_changed_since(tmp_path: Path) -> None:
    """What was checked stays what it is."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent(ScriptedModel([GOOD]))}, store=url) as app:
            run = await app.thread("a", thread_id="t").send(
                "go", run_id="r", options={"output": "report"}
            )
            await run.result()
        changed = define_agent(name="a", model="demo", outputs={"report": Tree})
        gone = define_agent(name="a", model="demo")
        for each in (changed, gone):
            async with create_pai(agents={"a": each}, store=url) as app:
                result = await (await app.thread("a", thread_id="t").run("r")).result()
                assert result.output == {"title": "T", "score": None, "tags": ["x"]}


@pytest.mark.parametrize(
    ("turns", "again"),
    [
        ([ADD, ["Three.", Finish("stop")], Hang()], [GOOD]),
        ([ADD, Hang()], ["Three.", GOOD]),
        ([ADD, "Three.", ["not yet", Finish("stop")], Hang()], ["not this", GOOD]),
    ],
)
async def test_another_worker_goes_on(turns, again, tmp_path: Path) -> None:
    """The closing call is made where a worker stopped before it, or in it (R-13)."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    reached = anyio.Event()

    def play(request: ModelRequest) -> Any:
        turn = turns[len(first.requests) - 1]
        if isinstance(turn, Hang):
            reached.set()
        return turn

    first = ScriptedModel(play)
    tools = {"add": add}
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent(first, tools=tools)}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            await thread.send("go", run_id="r", options={"output": "report"})
            await reached.wait()
        second = ScriptedModel(again)
        async with create_pai(agents={"a": agent(second, tools=tools)}, store=url) as app:
            thread = app.thread("a", thread_id="t")
            result = await (await thread.run("r")).result()
            events = [event async for event in (await thread.run("r")).events(after=0)]
            assert fold(None, events) == await thread.state()
    assert result.output == REPORT
    assert result.stop_reason == "stop"
    assert len(second.requests) == len(again)
    assert told(second)[-1] == (0, True)


# ---------------------------------------------------------------------------- as it is written


async def partials(chosen: Any, options: Any) -> tuple[list[Any], Any]:
    with anyio.fail_after(20):
        async with create_pai(agents={"a": chosen}) as app:
            run = await app.thread("a").send("go", options=options)
            return [value async for value in run.partial_output()], await run.result()


@attrs.frozen
class Item:
    name: str
    kind: Literal["cat", "dog"]


async def test_partial_objects() -> None:
    """Each has more; a text that is one of a few is never shown half; the last is checked."""
    text = '{"name": "Tom", "kind": "cat"}'
    chosen = define_agent(name="a", model=ScriptedModel([text], chunk=2), outputs={"item": Item})
    values, result = await partials(chosen, {"output": "item"})
    assert result.output == Item("Tom", "cat")
    assert values[-1] == {"name": "Tom", "kind": "cat"}
    names = [value.get("name", "") for value in values]
    assert names[0] == ""
    assert len(set(names)) > 2
    assert all(late.startswith(early) for early, late in pairwise(names))
    kinds = [value.get("kind") for value in values]
    assert set(kinds) == {None, "cat"}


async def test_partial_objects_without_nulls_and_wrapping() -> None:
    chosen = define_agent(
        name="a",
        model=ScriptedModel(['{"value": [1, 22, 3]}'], chunk=1),
        outputs={"all": list[int]},
    )
    values, _ = await partials(chosen, {"output": "all"})
    assert values == [[], [1], [1, 22], [1, 22, 3]]
    chosen = define_agent(name="a", model=ScriptedModel(['{"n": null, "m": 1}'], chunk=1))
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    values, result = await partials(chosen, {"output": schema})
    assert values == [{}, {"m": 1}]
    assert result.output == {"m": 1}


async def test_partial_objects_of_a_repaired_answer() -> None:
    chosen = agent(ScriptedModel(['{"title": 5, "tags": []}', GOOD], chunk=4))
    values, _ = await partials(chosen, {"output": "report"})
    assert {"title": 5} in values
    assert values[-1] == {"title": "T", "score": None, "tags": ["x"]}


async def test_partial_objects_of_an_answer_in_prose() -> None:
    chosen = agent(ScriptedModel(["Hello there."], chunk=4))
    assert (await partials(chosen, None))[0] == []


# ---------------------------------------------------------------------------- what is refused


def test_what_can_be_no_output_of_an_agent() -> None:
    """A-DEF-2: with all other faults."""
    faults = refused_agent(
        outputs={
            "bad name": Report,
            "none": object(),
            "text": "report",
            "list": {"type": "array"},
            "wrong": {"type": "object", "properties": 5},
        }
    )
    assert set(faults) == {
        "outputs.bad name",
        "outputs.none",
        "outputs.text",
        "outputs.list.type",
        "outputs.wrong.properties",
    }
    assert refused_agent(outputs=[Report]) == {"outputs": "expected a mapping by name, got list"}


async def test_what_can_be_no_option() -> None:
    chosen = agent(ScriptedModel())
    with pytest.raises(
        InvalidInput, match=r"options.output: the agent has no output 'x'; outputs: report"
    ):
        await run_once(chosen, "go", options={"output": "x"}, output=None)
    with pytest.raises(InvalidInput, match="expected the name of an output"):
        RunOptions(output=Report)  # type: ignore[arg-type]  # what is to be found
    with pytest.raises(InvalidInput, match=r"output\.properties"):
        RunOptions(output={"type": "object", "properties": 5})
    for patch in (RunPatch, StepPatch):
        with pytest.raises(InvalidInput, match="output"):
            patch(output={"type": "array"})


async def test_a_hook_that_names_an_unknown_one() -> None:
    class Wrong:
        @hookimpl
        def prepare_run(self):
            return RunPatch(output="x")

    result = await run_once(agent(ScriptedModel(), lifecycle=Wrong()), "go")
    assert result.error is not None
    assert result.error["code"] == "plugin_error"


def test_the_contract_tells_of_outputs() -> None:
    """A-MAN-2."""
    outputs = agent(ScriptedModel()).public_contract["outputs"]
    assert outputs["report"]["properties"].keys() == {"title", "score", "tags"}
