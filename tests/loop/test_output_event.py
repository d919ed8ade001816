"""Structured output of drivers that give it as a value of its own (O-11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    ModelProfile,
    ModelSelection,
    OutputPart,
    RunOptions,
    RunPatch,
    StepContext,
    StepFinish,
    StructuredOutputError,
    TextPart,
    Usage,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
)
from pai.protocol import StepFinished
from pai.testing import (
    Finish,
    Hang,
    Output,
    ScriptedModel,
    Situation,
    check_model_driver,
)

from .test_output import ADD, Report, add

pytestmark = pytest.mark.anyio


GOOD: Any = {"title": "T", "score": None, "tags": ["x"]}
REPORT = Report("T", None, ["x"])
LIKE_JSON = '{"title": "prose"}'
EVENT = ModelProfile(output_source="event")


def by_event(*turns: Any, **profile: Any) -> ScriptedModel:
    return ScriptedModel(turns, 3, profile=ModelProfile(output_source="event", **profile))


def agent(model: Any, **fields: Any) -> Any:
    return define_agent(name="a", model=model, outputs={"report": Report}, **fields)


@pytest.mark.parametrize("prose", [(), ("Here it is.",), (LIKE_JSON,)])
async def test_the_value_is_the_output(prose: tuple[str, ...]) -> None:
    """In the result, in the message and in the log; the text of the step stays prose."""
    model = by_event([*prose, Output(GOOD)])
    async with create_pai(agents={"a": agent(model)}) as app:
        thread = app.thread("a")
        run = await thread.send("go", options={"output": "report"})
        result = await run.result()
        events = [event async for event in run.events()]
        message = (await thread.state()).messages[-1]
    assert result.output == REPORT
    part = OutputPart(GOOD, "report", in_text=False)
    assert message.parts == (*map(TextPart, prose), part)
    assert [event.output for event in events if isinstance(event, StepFinished)] == [part]
    assert model.requests[0].output is not None


@pytest.mark.parametrize(
    ("type_", "value", "output"),
    [
        (list[int], {"value": [1, 2]}, [1, 2]),
        (int | None, {"value": None}, None),
        (Report, {"title": "T", "score": None, "tags": None}, Report("T")),
        ({"type": "object", "properties": {"n": {"type": "integer"}}}, {"n": None}, {}),
    ],
)
async def test_it_is_read_as_a_text_is(type_: Any, value: Any, output: Any) -> None:
    """Nulls of the strict form are undone, and what is no object stands under a key."""
    result = await run_once(agent(by_event(Output(value))), "go", output=type_)
    result.raise_for_status()
    assert result.output == output


BAD: list[Any] = [
    ("said nothing", "structured_output_missing", ""),
    ('{"title": "T"}', "structured_output_missing", ""),
    (Output({"title": 5}), "structured_output_invalid", '{"title":5}'),
    (Output(["x"]), "structured_output_invalid", '["x"]'),
    (Output(None), "structured_output_invalid", "null"),
    (Output({"title": float("nan")}), "structured_output_invalid", ""),
    (Output({"title": object()}), "structured_output_invalid", ""),  # type: ignore[dict-item]
    (["x", Output({"title": 5}), Finish("stop")], "structured_output_invalid", '{"title":5}'),
]


@pytest.mark.parametrize("bad", [turn for turn, *_ in BAD])
async def test_one_more_call_repairs(bad: Any) -> None:
    """A text is no output here, whatever it looks like; the model is shown the value it gave."""
    model = by_event(bad, Output(GOOD))
    result = await run_once(agent(model), "go", output=Report)
    assert result.output == REPORT
    first, second = model.requests
    said = [each.text for each in second.messages[len(first.messages) :]]
    assert said[-1].startswith("Your answer does not fit the schema of the output:\n")
    if bad == Output({"title": 5}):
        assert said[:-1] == ['{"title":5}']
        assert "title: expected string" in said[-1]
        assert result.usage == Usage(2, 2, 4)


@pytest.mark.parametrize(("bad", "code", "raw"), BAD)
async def test_then_it_fails(bad: Any, code: str, raw: str) -> None:
    errors: list[Any] = []
    model = by_event("first", bad)
    result = await run_once(agent(model), "go", output=Report, on_runtime_error=errors.append)
    assert (result.status, result.output) == ("failed", None)
    (error,) = errors
    assert isinstance(error, StructuredOutputError)
    assert (error.code, error.raw_text) == (code, raw)


@pytest.mark.parametrize(
    ("reason", "code"),
    [("length", "structured_output_truncated"), ("content-filter", "structured_output_filtered")],
)
async def test_cut_off(reason: Any, code: str) -> None:
    """It is not asked again."""
    errors: list[Any] = []
    model = by_event([Output({"title": 5}), Finish(reason)])
    await run_once(agent(model), "go", output=Report, on_runtime_error=errors.append)
    assert [(error.code, error.raw_text) for error in errors] == [(code, '{"title":5}')]


@pytest.mark.parametrize("combined", [True, False])
async def test_beside_tools(combined: bool) -> None:
    turns = [ADD, Output(GOOD)] if combined else [ADD, "Three.", Output(GOOD)]
    model = by_event(*turns, combined_output=combined)
    result = await run_once(agent(model, tools={"add": add}), "go", output=Report)
    assert result.output == REPORT
    assert len(model.requests) == len(turns)


async def test_a_run_without_an_output_takes_none() -> None:
    result = await run_once(agent(by_event(["Hi.", Output(GOOD)])), "go")
    assert (result.status, result.text, result.output) == ("completed", "Hi.", None)


async def test_from_a_driver_that_writes_it_as_text_it_is_not_looked_at() -> None:
    text = '{"title": "written"}'
    result = await run_once(agent(ScriptedModel([[text, Output(GOOD)]])), "go", output=Report)
    assert result.output == Report("written")


@pytest.mark.parametrize("turns", [[Output(GOOD)], ["no", Output(GOOD)]])
async def test_the_driver_that_was_asked_counts(turns: list[Any]) -> None:
    """A hook may send the request, and the one that repairs, elsewhere."""
    other = by_event(*turns)

    class Elsewhere:
        @hookimpl
        async def wrap_model_call(self, step: StepContext[Any], call_model) -> AsyncIterator[Any]:
            async for part in call_model(attrs.evolve(step.request, model=other)):
                yield part

    chosen = agent(ScriptedModel([]), lifecycle=Elsewhere())
    assert (await run_once(chosen, "go", output=Report)).output == REPORT


async def test_another_worker_makes_it_again(tmp_path: Path) -> None:
    """R-13: a step that was not committed is made again."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    reached = anyio.Event()

    def play(_: Any) -> Any:
        reached.set()
        return [LIKE_JSON, Hang()]

    with anyio.fail_after(20):
        first = ScriptedModel(play, profile=EVENT)
        async with create_pai(agents={"a": agent(first)}, store=url) as app:
            await app.thread("a", thread_id="t").send(
                "go", run_id="r", options={"output": "report"}
            )
            await reached.wait()
        async with create_pai(agents={"a": agent(by_event(Output(GOOD)))}, store=url) as app:
            run = await app.thread("a", thread_id="t").run("r")
            assert (await run.result()).output == REPORT


# ---------------------------------------------------------------------------- as it comes


@pytest.mark.parametrize("model", ["plain", "selection"])
@pytest.mark.parametrize(("type_", "values"), [((), [GOOD]), ((Report,), [REPORT])])
async def test_prose_is_not_shown_as_the_output(model: str, type_: Any, values: Any) -> None:
    """Only the checked value comes, also where the prose looks like one."""
    driver: Any = by_event([LIKE_JSON, Output({"title": 5})], [LIKE_JSON, Output(GOOD)])
    source = driver if model == "plain" else ModelSelection(driver)
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent(source)}) as app:
            run = await app.thread("a").send("go", options=RunOptions(output="report"))
            assert [value async for value in run.partial_output(*type_)] == values


async def test_an_output_that_a_hook_asked_for() -> None:
    class Chooses:
        @hookimpl
        def prepare_run(self):
            return RunPatch(output=Report)

    chosen = agent(by_event([LIKE_JSON, Output(GOOD)]), lifecycle=Chooses())
    with anyio.fail_after(20):
        async with create_pai(agents={"a": chosen}) as app:
            run = await app.thread("a").send("go")
            assert [value async for value in run.partial_output()] == [GOOD]


# ---------------------------------------------------------------------------- the driver kit


async def test_the_kit_knows_who_may_give_an_output() -> None:
    async def check(output: Any, profile: ModelProfile) -> None:
        await check_model_driver(
            lambda _: ScriptedModel(lambda _: ["Hi.", output], profile=profile),
            situations=[Situation.TEXT],
        )

    await check(Output(GOOD), EVENT)
    with pytest.raises(AssertionError, match="where the profile says 'event'"):
        await check(Output(GOOD), ModelProfile())
    with pytest.raises(AssertionError, match="the output of a finish is JSON"):
        await check(Output(float("inf")), EVENT)


def test_a_finish_without_an_output_is_as_ever() -> None:
    assert StepFinish("stop") == StepFinish("stop", None)
    assert StepFinish("stop") != StepFinish("stop", output=None)
