"""Metadata that hooks write: piped, checked whole, committed, and private where it is private."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import (
    InvalidInput,
    LeaseLost,
    MetadataPatch,
    MetadataSchemas,
    PluginError,
    RunPatch,
    StepPatch,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    tool,
)
from pai.testing import Call, ScriptedModel

from ..played import Played, play

MARK = "only-for-the-server"


@attrs.frozen
class Private:
    secret: str = ""
    count: int = 0


@attrs.frozen
class Public:
    label: str = ""
    stars: int = 0


SCHEMAS = MetadataSchemas(private=Private, public=Public)


@tool
def look(ctx: Any) -> str:
    """Look."""
    return "seen"


def agent(*plugins: object, turns: Any = None, schemas: Any = SCHEMAS) -> Any:
    return define_agent(
        name="a",
        model=ScriptedModel(turns or [[Call("look")], "done"]),
        tools={"look": look},
        lifecycle=compose_lifecycle(*plugins),
        run_metadata=schemas,
        thread_metadata=schemas,
        message_metadata=schemas,
    )


def patch(**public: Any) -> MetadataPatch:
    return MetadataPatch(private={"secret": MARK}, public=public)


class At:
    """Does something in one phase."""

    def __init__(self, phase: str, function: Any) -> None:
        self.name = phase

        async def hook(self: Any, context: Any) -> Any:
            return await function(context)

        argument = {"prepare_run": "run", "run_started": "run", "run_settled": "run"}.get(
            phase, "result" if "tool" in phase and "call" not in phase else "step"
        )
        scope: dict[str, Any] = {"function": function}
        exec(f"async def hook({argument}): return await function({argument})", scope)
        setattr(self, phase, hookimpl(scope["hook"]))


def run_of(context: Any) -> Any:
    return getattr(context, "run", context)


def bags(played: Played) -> tuple[Any, Any, list[Any]]:
    state = played.state
    return (
        state.runs[0].metadata,
        state.thread.metadata,
        [message.metadata for message in state.messages if message.role == "assistant"],
    )


@pytest.mark.anyio
async def test_patches_of_a_run_and_of_a_step_are_committed() -> None:
    """A-META-5: sparse and shallow; a run's message patch holds for each of its messages."""

    async def prepare(run: Any) -> RunPatch:
        return RunPatch(
            run_metadata=patch(label="run"),
            thread_metadata=patch(label="thread"),
            message_metadata=patch(label="message"),
        )

    async def step(step: Any) -> StepPatch:
        return StepPatch(
            run_metadata=MetadataPatch(public={"stars": step.index + 1}),
            message_metadata=MetadataPatch(public={"stars": step.index + 1}),
        )

    played = await play(agent(At("prepare_run", prepare), At("prepare_model_step", step)))
    run, thread, messages = bags(played)
    assert run == {"label": "run", "stars": 2}
    assert thread == {"label": "thread", "stars": 0}
    assert messages == [{"label": "message", "stars": 1}, {"label": "message", "stars": 2}]
    assert played.of("thread-updated")[0].metadata == thread
    assert played.of("run-finished")[0].metadata == run
    # What watchers are told of each message last is what is stored.
    last = {event.message_id: event.metadata for event in played.of("message-metadata")}
    stored = [m for m in played.state.messages if m.role == "assistant"]
    assert last == {message.id: message.metadata for message in stored}


@pytest.mark.anyio
async def test_hooks_further_right_see_what_those_further_left_wrote() -> None:
    seen: list[Any] = []

    async def left(run: Any) -> RunPatch:
        return RunPatch(run_metadata=patch(label="left"), thread_metadata=patch(stars=1))

    async def right(run: Any) -> None:
        seen.append((dict(run.metadata.public), run.metadata.private["secret"]))
        seen.append(dict(run.thread.metadata.public))

    await play(agent(At("prepare_run", left), At("prepare_run", right)))
    assert seen == [({"label": "left", "stars": 0}, MARK), {"label": "", "stars": 1}]


PHASES = ["prepare_run", "prepare_model_step", "step_finished", "tool_settled", "run_started"]


@pytest.mark.anyio
@pytest.mark.parametrize("phase", PHASES)
async def test_update_metadata_is_a_door_in_every_hook(phase: str) -> None:
    """A-META-5, A-META-7"""
    done: list[bool] = []

    async def write(context: Any) -> None:
        if done:
            return
        done.append(True)
        await run_of(context).update_metadata(
            run=patch(label="r"), thread=patch(label="t"), message=patch(label="m")
        )
        assert run_of(context).metadata.private == {"secret": MARK, "count": 0}

    played = await play(agent(At(phase, write)))
    assert played.errors == []
    run, thread, messages = bags(played)
    assert (run["label"], thread["label"]) == ("r", "t")
    # It goes to the message of the present step, committed or not.
    assert [message["label"] for message in messages] == ["m", ""]
    assert MARK not in played.seen


@pytest.mark.anyio
async def test_private_bags_are_in_no_client_shape() -> None:
    """A-META-6, R-40"""

    async def everywhere(context: Any) -> Any:
        await run_of(context).update_metadata(run=patch(), thread=patch(), message=patch())
        # One that is refused must not tell what was in it either.
        with pytest.raises(InvalidInput) as caught:
            await run_of(context).update_metadata(
                run=MetadataPatch(private={"secret": MARK, "count": "x"})
            )
        assert MARK not in str(caught.value)

    # The last step is finished with the run: nothing can be written then.
    plugins = [At(phase, everywhere) for phase in PHASES if phase != "step_finished"]
    errors: list[BaseException] = []
    async with create_pai(
        agents={"a": agent(*plugins)}, plugins=(), on_runtime_error=errors.append
    ) as app:
        thread = app.thread("a")
        run = await thread.send("go")
        events = [event async for event in run.events()]
        shapes = [events, await run.result(), await thread.state(), await app.threads("a")]
    assert errors == []
    assert MARK not in repr(shapes)


@pytest.mark.anyio
@pytest.mark.parametrize("where", ["run", "thread", "message"])
async def test_a_refused_patch_changes_nothing(where: str) -> None:
    """A-META-5: both or neither, of all three."""
    good = {"run": patch(label="x"), "thread": patch(label="x"), "message": patch(label="x")}

    async def write(run: Any) -> None:
        bad = MetadataPatch(private={"secret": MARK}, public={"stars": "many"})
        with pytest.raises(InvalidInput, match=f"{where}_metadata.public.stars"):
            await run.update_metadata(**good | {where: bad})
        assert dict(run.metadata.public) == {"label": "", "stars": 0}

    played = await play(agent(At("prepare_run", write)))
    assert played.errors == []
    initial = {"label": "", "stars": 0}
    assert bags(played) == (initial, initial, [initial, initial])
    assert played.of("thread-updated") == []


@pytest.mark.anyio
@pytest.mark.parametrize("kind", ["run", "step"])
async def test_a_patch_that_does_not_fit_fails_the_run_and_is_the_plugin_s_fault(kind: str) -> None:
    bad = MetadataPatch(public={"stars": "many"})

    async def answer(_: object) -> Any:
        if kind == "run":
            return RunPatch(run_metadata=bad, thread_metadata=patch(label="x"))
        return StepPatch(run_metadata=bad, thread_metadata=patch(label="x"))

    phase = "prepare_run" if kind == "run" else "prepare_model_step"
    played = await play(agent(At(phase, answer)))
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert (told.plugin, told.phase) == (phase, phase)
    assert bags(played)[:2] == ({"label": "", "stars": 0},) * 2


@pytest.mark.anyio
async def test_what_was_written_before_a_failure_is_kept() -> None:
    async def write(run: Any) -> RunPatch:
        return RunPatch(run_metadata=patch(label="kept"))

    async def fail(run: Any) -> None:
        raise ValueError

    played = await play(agent(At("prepare_run", write), At("prepare_run", fail)))
    assert played.result.status == "failed"
    assert bags(played)[0]["label"] == "kept"
    assert played.of("run-finished")[0].metadata["label"] == "kept"


@pytest.mark.anyio
async def test_metadata_that_nobody_declared_is_refused() -> None:
    async def write(run: Any) -> None:
        with pytest.raises(InvalidInput, match="declares no schemas"):
            await run.update_metadata(run=MetadataPatch(public={"a": 1}))

    played = await play(agent(At("prepare_run", write), schemas=None))
    assert played.errors == []


@pytest.mark.anyio
async def test_nothing_can_be_written_once_the_run_has_ended() -> None:
    async def write(run: Any) -> None:
        await run.update_metadata(run=patch(label="late"))

    played = await play(agent(At("run_settled", write)))
    assert played.result.status == "completed"
    (told,) = played.errors
    assert isinstance(told, PluginError)
    assert isinstance(told.__cause__, LeaseLost)
    assert bags(played)[0]["label"] == ""


@pytest.mark.anyio
async def test_the_initial_bag_of_a_message_is_told_to_watchers() -> None:
    """A-META-3, R-25"""

    @attrs.frozen
    class Stamped:
        stamp: str = "new"

    schemas = MetadataSchemas(private=Private, public=Stamped)
    played = await play(agent(turns=["hi"], schemas=schemas))
    (event,) = played.of("message-metadata")
    assert event.metadata == {"stamp": "new"} == played.state.messages[1].metadata
    assert played.types.index("message-metadata") == played.types.index("step-started") + 1


@pytest.mark.anyio
async def test_lifecycle_messages_show_both_bags() -> None:
    """A-META-7"""
    seen: list[Any] = []

    async def write(run: Any) -> RunPatch:
        return RunPatch(message_metadata=patch(label="m"))

    async def look_back(step: Any) -> None:
        if step.index:
            message = step.run.messages[-1]
            seen.append((message.metadata.private["secret"], message.metadata.public["label"]))

    await play(agent(At("prepare_run", write), At("prepare_model_step", look_back)))
    assert seen == [(MARK, "m")]
