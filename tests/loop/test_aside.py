"""What is written beside the step's stream: progress, events, and who may change all of it."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    DenyCall,
    InvalidInput,
    PluginError,
    ReplaceValue,
    ToolError,
    compose_lifecycle,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..played import play

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


# ------------------------------------------------------------------------ progress, events


@pytest.mark.anyio
async def test_progress_is_checked_and_shown() -> None:
    """A-TOOL-6"""
    refused: list[BaseException] = []

    @tool(data=Progress)
    def work(ctx: Any) -> None:
        """Work."""
        ctx.progress(Progress("a", 1))
        try:
            ctx.progress({"percent": 1})
        except InvalidInput as error:
            refused.append(error)

    @tool
    def free(ctx: Any) -> None:
        """Work."""
        ctx.progress([1, "x"])
        try:
            ctx.progress(object())
        except InvalidInput as error:
            refused.append(error)

    turns = [[Call("work", {}, "w")], [Call("free", {}, "f")], "end"]
    played = await play(agent(turns=turns, work=work, free=free))
    events = [(event.call_id, event.value) for event in played.of("tool-progress")]
    assert events == [("w", {"label": "a", "percent": 1}), ("f", [1, "x"])]
    assert len(refused) == 2


@pytest.mark.anyio
async def test_a_plugin_s_event() -> None:
    def emit(run: Any) -> None:
        run.emit("cache", {"hit": True})
        with pytest.raises(InvalidInput):
            run.emit("cache", object())

    played = await play(agent(Hook("prepare_run", "run", emit)))
    assert [(event.name, event.value) for event in played.of("plugin")] == [
        ("cache", {"hit": True})
    ]


# ------------------------------------------------------------------------ transform_aside


class Masks:
    def __init__(self) -> None:
        self.items: list[Any] = []

    @hookimpl
    def transform_aside(self, item, run):
        self.items.append((item.kind, item.name, item.value))
        text = str(item.value)
        if MARK not in text:
            return None
        if item.kind == "data" and item.name == "progress":
            return ReplaceValue({"label": "****"})
        return ReplaceValue(text.replace(MARK, "****"))


@pytest.mark.anyio
async def test_what_is_written_aside_is_transformed_before_it_is_written() -> None:
    """A-LIFE-1, A-LIFE-6"""

    @tool
    def work(ctx: Any) -> None:
        """Work."""
        ctx.write_data("note", f"data {MARK}")
        ctx.write_data("progress", Progress(MARK))
        ctx.progress(f"progress {MARK}")
        raise ToolError(f"error {MARK}")

    masks = Masks()
    definition = agent(masks, turns=[[Call("work")], "end"], work=work)
    played = await play(definition)
    assert [item[:2] for item in masks.items] == [
        ("data", "note"), ("data", "progress"), ("progress", "work"), ("error", "work"),
    ]  # fmt: skip
    assert MARK not in played.seen
    (call, note, progress) = played.state.messages[1].parts
    assert call.error == "error ****"
    assert (note.value, progress.value) == ("data ****", {"label": "****", "percent": 0})
    assert played.of("tool-progress")[0].value == "progress ****"
    assert MARK not in str(definition.model.requests[1].messages)


@pytest.mark.anyio
async def test_a_denial_s_text_is_transformed_too() -> None:
    @tool
    def work(ctx: Any) -> None:
        """Work."""

    deny = Hook("before_tool_call", "call", lambda call: DenyCall(f"because {MARK}"))
    played = await play(agent(Masks(), deny, turns=[[Call("work")], "end"], work=work))
    assert MARK not in played.seen
    assert played.of("tool-error")[0].error == "because ****"


@pytest.mark.anyio
async def test_asides_are_piped() -> None:
    """R-31"""

    def adding(mark: str) -> Any:
        return Hook("transform_aside", "item", lambda item: ReplaceValue(item.value + mark))

    def write(run: Any) -> None:
        run.write_data("note", ".")

    played = await play(agent(adding("a"), adding("b"), Hook("prepare_run", "run", write)))
    assert played.of("data")[0].value == ".ab"


UNFIT: Any = object()


def failing(item: Any) -> Any:
    raise ValueError(MARK)


@pytest.mark.anyio
@pytest.mark.parametrize("hides", [True, False])
@pytest.mark.parametrize("kind", ["data", "progress", "error"])
@pytest.mark.parametrize(
    "answer",
    [failing, lambda item: ReplaceValue(UNFIT), lambda item: 5],
    ids=["raises", "no json", "wrong"],
)
async def test_an_aside_that_fails_is_not_written_and_the_run_fails(
    kind: str, answer: Any, hides: bool
) -> None:
    """R-33: also where the tool hides the error."""

    @tool
    def work(ctx: Any) -> str:
        """Work."""
        try:
            if kind == "data":
                ctx.write_data("note", MARK)
            elif kind == "progress":
                ctx.progress(MARK)
        except PluginError:
            if hides:
                return "hidden"
            raise
        raise ToolError(MARK)

    plugin = Hook("transform_aside", "item", answer)
    played = await play(agent(plugin, turns=[[Call("work")], "never"], work=work))
    assert played.result.status == "failed"
    assert (played.result.error or {})["code"] == "plugin_error"
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert told.phase == "transform_aside"
    assert played.of("data") == played.of("tool-progress") == []
    assert MARK not in played.seen


@pytest.mark.anyio
async def test_an_aside_that_fails_in_a_hook_is_blamed_not_the_hook() -> None:
    def write(run: Any) -> None:
        run.write_data("note", "x")

    played = await play(
        agent(Hook("transform_aside", "item", failing), Hook("prepare_run", "run", write))
    )
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert told.phase == "transform_aside"


@pytest.mark.anyio
async def test_asides_of_threads_run_on_the_event_loop() -> None:
    import threading

    seen: list[int] = []

    @tool
    def work(ctx: Any) -> None:
        """Work."""
        assert threading.get_ident() != loop
        ctx.write_data("note", "x")
        ctx.progress(1)

    loop = threading.get_ident()

    def note(item: Any) -> None:
        seen.append(threading.get_ident())

    await play(
        agent(Hook("transform_aside", "item", note), turns=[[Call("work")], "end"], work=work)
    )
    assert seen == [loop, loop]
