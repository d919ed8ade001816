"""Data parts: shown at once, and kept in the message where they were shown (A-UI)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    DataPart,
    InvalidInput,
    Respond,
    StepReset,
    TextDelta,
    TextEnd,
    TextStart,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, Cut, Data, Hang, ScriptedModel

from ..played import Played, play

MARK = "hunter2"


@attrs.frozen
class Progress:
    label: str
    percent: int = 0


class Hook:
    """Calls a function in one phase."""

    def __init__(self, phase: str, argument: str, function: Any) -> None:
        self.name = phase
        scope: dict[str, Any] = {"function": function}
        exec(f"def hook({argument}): return function({argument})", scope)
        setattr(self, phase, hookimpl(scope["hook"]))


def agent(*plugins: object, turns: Any = None, **tools: Any) -> Any:
    return define_agent(
        name="a",
        model=ScriptedModel(turns or ["done"]),
        tools=tools,
        ui_data={"progress": Progress, "note": str},
        lifecycle=compose_lifecycle(*plugins),
    )


def written(played: Played) -> list[list[Any]]:
    """The parts of each message of the assistant, short."""

    def short(part: Any) -> Any:
        if isinstance(part, DataPart):
            return part.value if part.id is None else (part.id, part.value)
        return part.text if part.type == "text" else part.type

    messages = [message for message in played.state.messages if message.role == "assistant"]
    return [[short(part) for part in message.parts] for message in messages]


def shown(played: Played) -> list[list[Any]]:
    """The same, folded from the events: what a watcher has (R-25)."""
    messages: list[list[Any]] = []
    order: list[Any] = []
    for event in played.events:
        if event.type == "step-started":
            order = []
            messages.append(order)
        elif event.type == "step-reset":
            order.clear()
        elif event.type == "text-delta":
            order.append(event.text)
        elif event.type == "tool-call":
            order.append("tool-call")
        elif event.type == "data" and not event.transient:
            entry = event.value if event.id is None else (event.id, event.value)
            known = [i for i, x in enumerate(order) if isinstance(x, tuple) and x[0] == event.id]
            if event.id is not None and known:
                order[known[0]] = entry
            else:
                order.append(entry)
    return messages


@pytest.mark.anyio
async def test_data_of_a_tool_is_shown_and_kept() -> None:
    """A-UI-1, A-UI-2"""

    @tool
    def work(ctx: Any) -> str:
        """Work."""
        ctx.write_data("progress", Progress("a", 1), id="p")
        ctx.write_data("note", "kept")
        ctx.write_data("note", "gone", transient=True)
        ctx.write_data("progress", {"label": "b", "percent": 2}, id="p")
        return "done"

    @tool
    async def other(ctx: Any) -> str:
        """Work."""
        ctx.write_data("note", "other")
        return "done"

    turns = [["text", Call("work"), Call("other")], "end"]
    played = await play(agent(turns=turns, work=work, other=other))
    first, second = written(played)
    assert first[:3] == ["text", "tool-call", "tool-call"]
    assert sorted(map(str, first[3:])) == sorted(
        map(str, [("p", {"label": "b", "percent": 2}), "kept", "other"])
    )
    assert second == ["end"]
    assert shown(played) == written(played)
    assert "gone" in str(played.events)
    assert "gone" not in str(played.state)
    assert [
        part.outcome for part in played.state.messages[1].parts if part.type == "tool-call"
    ] == ["completed"] * 2


@pytest.mark.anyio
async def test_data_of_a_tool_is_stored_with_its_result() -> None:
    """R-12: while a sibling is still at work."""
    import anyio

    release = anyio.Event()

    @tool
    async def work(ctx: Any) -> None:
        """Work."""
        ctx.write_data("note", "kept")

    @tool
    async def wait(ctx: Any) -> None:
        """Wait."""
        await release.wait()

    app = create_pai(
        agents={"a": agent(turns=[[Call("wait"), Call("work")], "end"], work=work, wait=wait)},
        plugins=(),
    )
    with anyio.fail_after(20):
        async with app:
            thread = app.thread("a")
            run = await thread.send("go")
            async for event in run.events():
                if event.type == "tool-output" and not release.is_set():
                    parts = (await thread.state()).messages[1].parts
                    assert [getattr(part, "outcome", None) for part in parts[:2]] == [
                        None,
                        "completed",
                    ]
                    assert parts[2] == DataPart("note", "kept")
                    release.set()


PHASES = [
    ("prepare_run", "run", [["data", "one"], ["two"]]),
    ("prepare_model_step", "step", [["data", "one"], ["data", "two"]]),
    ("step_finished", "step", [["one", "data"], ["two"]]),
    ("before_tool_call", "call", [["one", "data"], ["two"]]),
    ("after_tool_result", "result", [["one", "data"], ["two"]]),
    ("tool_settled", "result", [["one", "data"], ["two"]]),
]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("phase", "argument", "messages"), PHASES, ids=[case[0] for case in PHASES]
)
async def test_data_of_hooks_joins_the_message_of_the_step(
    phase: str, argument: str, messages: Any
) -> None:
    """A-UI-1: it stands where it was shown."""
    ended: list[bool] = []

    def write(context: Any) -> None:
        run = getattr(context, "run", context)
        if not (phase == "step_finished" and context.index):
            run.write_data("note", "data")
        else:
            ended.append(True)

    @tool
    def look(ctx: Any) -> str:
        """Look."""
        return "seen"

    plugin = Hook(phase, argument, write)
    played = await play(agent(plugin, turns=[["one", Call("look")], "two"], look=look))
    assert played.errors == []
    without_calls = [[part for part in parts if part != "tool-call"] for parts in written(played)]
    assert without_calls == messages
    assert shown(played) == written(played)
    assert played.types.count("step-started") == 2


@pytest.mark.anyio
async def test_data_in_the_middle_of_a_stream() -> None:
    class Notes:
        @hookimpl
        async def transform_step_stream(self, step, stream):
            async for part in stream:
                yield part
                if isinstance(part, TextEnd):
                    step.run.write_data("note", f"after {part.id}")

    played = await play(agent(Notes(), turns=[["one", "two"]]))
    assert written(played) == [["one", "after t1", "two", "after t2"]]
    assert shown(played) == written(played)


@pytest.mark.anyio
async def test_data_of_a_stream_and_of_code_share_ids() -> None:
    """A part with the same name and id replaces the earlier one."""
    from pai import Data as DataEvent

    class Notes:
        @hookimpl
        async def transform_step_stream(self, step, stream):
            yield DataEvent("note", "first", "n")
            step.run.write_data("note", "second", id="n")
            async for part in stream:
                yield part
            # After the finish nothing of the stream can come, but code can write.
            step.run.write_data("note", "third", id="n")

    played = await play(agent(Notes(), turns=["text"]))
    assert written(played) == [[("n", "third"), "text"]]
    assert shown(played) == written(played)


@pytest.mark.anyio
async def test_a_step_reset_takes_the_stream_and_leaves_what_code_wrote() -> None:
    """R-37"""
    from pai import Data as DataEvent

    class Retries:
        @hookimpl
        def prepare_model_step(self, step):
            step.run.write_data("note", "before")

        @hookimpl
        async def wrap_model_call(self, step, call_model):
            for part in (TextStart("x"), TextDelta("x", "lost"), DataEvent("note", "lost")):
                yield part
            step.run.write_data("note", "meanwhile", id="m")
            yield StepReset("again")
            async for part in call_model(step.request):
                yield part

    played = await play(agent(Retries(), turns=["text"]))
    assert written(played) == [["before", ("m", "meanwhile"), "text"]]
    assert shown(played) == written(played)


@pytest.mark.anyio
async def test_data_of_a_synthetic_answer_and_of_hooks_before_it() -> None:
    def respond(run: Any) -> Respond:
        run.write_data("note", "hook")
        return Respond([DataPart("progress", {"label": "x"}, "p")])

    played = await play(agent(Hook("prepare_run", "run", respond)))
    assert written(played) == [["hook", ("p", {"label": "x", "percent": 0})]]


@pytest.mark.anyio
@pytest.mark.parametrize(("name", "value"), [("stranger", 1), ("progress", {"percent": "x"})])
async def test_a_synthetic_answer_s_data_is_checked(name: str, value: object) -> None:
    """A-UI-2"""
    answer = Respond([DataPart(name, value)])  # type: ignore[arg-type]
    played = await play(agent(Hook("prepare_run", "run", lambda run: answer)))
    assert played.result.status == "failed"
    assert [type(error) for error in played.errors] == [InvalidInput]


@pytest.mark.anyio
async def test_data_of_a_model_fits_its_schema_or_is_native() -> None:
    turn = [Data("progress", {"label": "x"}), Data("native", {"any": 1}), "text"]
    played = await play(agent(turns=[turn]))
    assert written(played) == [[{"label": "x", "percent": 0}, {"any": 1}, "text"]]
    played = await play(agent(turns=[[Data("progress", {"label": 5})]]))
    assert played.result.status == "failed"


@pytest.mark.anyio
@pytest.mark.parametrize("door", ["tool", "hook"])
@pytest.mark.parametrize(
    ("name", "value"),
    [("stranger", 1), ("note", 5), ("progress", {"label": "x", "more": 1}), ("note", object())],
)
async def test_what_is_not_registered_or_does_not_fit_is_refused(
    door: str, name: str, value: object
) -> None:
    """A-UI-2: where it is written."""
    refused: list[BaseException] = []

    def write(context: Any) -> None:
        try:
            context.write_data(name, value)
        except InvalidInput as error:
            refused.append(error)

    @tool
    def work(ctx: Any) -> None:
        """Work."""
        write(ctx)

    if door == "tool":
        played = await play(agent(turns=[[Call("work")], "end"], work=work))
    else:
        played = await play(agent(Hook("prepare_run", "run", write)))
    assert len(refused) == 1
    assert played.of("data") == []


@pytest.mark.anyio
async def test_data_of_a_run_that_is_cut_short_is_kept() -> None:
    """R-14"""

    @tool
    async def work(ctx: Any) -> None:
        """Work."""
        import anyio

        ctx.write_data("note", "kept")
        await anyio.sleep_forever()

    async def cancel(run: Any) -> None:
        async for event in run.events():
            if event.type == "data":
                await run.cancel()

    played = await play(agent(turns=[[Call("work")]], work=work), during=cancel)
    assert written(played) == [["tool-call", "kept"]]
    for turn in ([Hang()], ["text", Cut()]):
        plugin = Hook(
            "prepare_model_step", "step", lambda step: step.run.write_data("note", "kept")
        )
        played = await play(agent(plugin, turns=[turn]), during=cancel)
        assert written(played)[0][0] == "kept"
        assert shown(played) == written(played)


@pytest.mark.anyio
async def test_data_of_a_run_that_fails_before_its_first_step_is_kept() -> None:
    def write(run: Any) -> None:
        run.write_data("note", "kept")
        raise ValueError

    played = await play(agent(Hook("prepare_run", "run", write)))
    assert written(played) == [["kept"]]
    assert played.types == [
        "run-queued", "run-started", "step-started", "data", "step-finished", "run-finished",
    ]  # fmt: skip
