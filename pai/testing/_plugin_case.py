"""What the checks of a plugin are made of: runs of an agent with it, and who watches them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from pai.contexts import StepContext
from pai.hookspecs import hookimpl
from pai.lifecycle import Lifecycle, compose_lifecycle
from pai.ports import ModelDriver, ModelRequest
from pai.protocol import StepFinish, StepReset, StreamPart
from pai.testing._driver_kit import check_stream
from pai.testing._plugin_model import Answer, Answering, joined

if TYPE_CHECKING:
    from pai.definition import AgentDefinition
    from pai.runtime import RunHandle, RunResult, ThreadHandle

__all__ = ("MakeAgent", "Played", "PluginCase", "expect", "judge_run")

PATIENCE = 10.0
"""Seconds until a run counts as one that hangs."""


MakeAgent = Callable[[ModelDriver, Lifecycle], "AgentDefinition[Any]"]
"""Makes an agent from a model and a lifecycle."""


def expect(condition: object, check: str, promise: str) -> None:
    """Fail, naming the promise that is broken and the place where it is explained."""
    if not condition:
        raise AssertionError(f"{promise} ({check}: see plugins/testing in the documentation)")


class _Outside:
    """The outermost layer around the model: sees whether a cancellation comes out of the others."""

    name = "kit-outside"

    def __init__(self) -> None:
        self.ends: list[str] = []

    @hookimpl(tryfirst=True)
    def wrap_model_call(
        self,
        step: StepContext[Any],
        call_model: Callable[[ModelRequest], AsyncIterator[StreamPart]],
    ) -> AsyncIterator[StreamPart]:
        return _watched(call_model(step.request), self.ends, [])


class _Last:
    """The last transform: sees what is shown and stored."""

    name = "kit-last"

    def __init__(self) -> None:
        self.ends: list[str] = []
        self.shown: list[StreamPart] = []

    @hookimpl(trylast=True)
    def transform_step_stream(
        self, step: StepContext[Any], stream: AsyncIterator[StreamPart]
    ) -> AsyncIterator[StreamPart]:
        return _watched(stream, self.ends, self.shown)


async def _watched(
    stream: AsyncIterator[StreamPart], ends: list[str], parts: list[StreamPart]
) -> AsyncIterator[StreamPart]:
    from anyio import get_cancelled_exc_class

    try:
        async for part in stream:
            parts.append(part)
            yield part
        ends.append("ended")
    except get_cancelled_exc_class():
        ends.append("cancelled")
        raise
    except GeneratorExit:
        ends.append("closed")
        raise
    except Exception:
        ends.append("raised")
        raise


@attrs.frozen
class Played:
    """
    A run that has ended, and all that was seen of it.

    Attributes:
        result: Its result.
        model: What was asked, and what it said.
        shown: What came out of the last transform, over all steps.
        ends: How the streams of all layers ended.
        errors: What the runtime was told.
    """

    result: RunResult
    model: Answering
    shown: list[StreamPart]
    ends: list[str]
    errors: list[BaseException]


During = Callable[["RunHandle", Answering], Coroutine[Any, Any, None]]
Send = Callable[["ThreadHandle"], Coroutine[Any, Any, "RunHandle"]]


@attrs.frozen(kw_only=True)
class PluginCase:
    """
    A plugin on trial; see :func:`check_plugin` for what each field is.

    Args:
        make: Makes the plugin.
        quiet: What it leaves alone.
        rechunks: Whether it holds text back for a while.
        replaces: What it replaces whole.
        remembers: Whether it keeps something between runs on purpose.
        agent: Makes the agent.
        identity: Who the runs are for.
        client_data: What the client sends along.
        capabilities: Bindings by id.
    """

    make: Callable[[], object]
    quiet: bool | Callable[[StreamPart], bool] = True
    rechunks: bool = False
    replaces: Collection[str] = ()
    remembers: bool = False
    agent: MakeAgent | None = None
    identity: object = None
    client_data: object = None
    capabilities: Mapping[str, object] | None = None

    def untouched(self, parts: Sequence[StreamPart]) -> list[StreamPart]:
        """Those parts that the plugin says it leaves alone, as far as they must stay the same."""
        if self.quiet is False:
            return []
        kept = [part for part in parts if self.quiet is True or self.quiet(part)]
        return joined(kept) if self.rechunks else kept

    async def play(
        self,
        answer: Answer,
        *plugins: object,
        check: str,
        during: During | None = None,
        content: str = "go",
        judge: bool = True,
    ) -> Played:
        """
        Play a run of an agent with these plugins; it must end, and no plugin may be blamed.

        Args:
            answer: What the model says.
            plugins: Left to right.
            check: Who asks.
            during: Runs beside it, until it ends.
            content: What the user says.
            judge: Whether to say at once what is wrong with it; else :func:`judge_run` does later.
        """

        async def send(thread: ThreadHandle) -> RunHandle:
            return await thread.send(content, client_data=self.client_data)

        (played,) = await self.play_all(answer, *plugins, check=check, during=during, sends=[send])
        if judge:
            judge_run(played, check)
        return played

    async def play_all(
        self,
        answer: Answer,
        *plugins: object,
        check: str,
        sends: Sequence[Send],
        during: During | None = None,
    ) -> list[Played]:
        """As :meth:`play`, several runs on one thread: *sends* begin them, one after the other."""
        from anyio import create_task_group, move_on_after

        from pai.runtime import create_pai

        played: list[Played] = []
        errors: list[BaseException] = []
        model = Answering(answer)
        outside, last = _Outside(), _Last()
        lifecycle = compose_lifecycle(outside, *plugins, last)
        app = create_pai(
            agents={"kit": (self.agent or _agent)(model, lifecycle)},
            plugins=(),
            capabilities=self.capabilities,
            on_runtime_error=errors.append,
        )
        try:
            async with app:
                thread = app.thread("kit", identity=self.identity)
                for send in sends:
                    with move_on_after(PATIENCE) as scope:
                        run = await send(thread)
                        async with create_task_group() as beside:
                            if during is not None:
                                beside.start_soon(during, run, model)
                            result = await run.result()
                            beside.cancel_scope.cancel()
                    if scope.cancelled_caught:
                        model.released.set()
                        expect(False, check, f"a run does not end within {PATIENCE:g} s")
                    ends = [*outside.ends, *last.ends]
                    played.append(Played(result, model, list(last.shown), ends, errors))
                    for seen in (outside.ends, last.ends, last.shown):
                        seen.clear()
        except ExceptionGroup as group:
            # A scope that was left open for others to close breaks even the tasks around it.
            _blame([*errors, *group.exceptions], model, check)
            raise
        return played


def judge_run(played: Played, check: str) -> None:
    """Say what is wrong with a run, whatever it was to show."""
    _well_formed(played.shown, check)
    _blame(played.errors, played.model, check)
    told = "the model's stream is closed when the run has ended"
    expect(played.model.open == 0, check, told)


def _well_formed(shown: Sequence[StreamPart], check: str) -> None:
    """Each step that was finished is a stream as a driver would have made it."""
    step: list[StreamPart] = []
    for part in shown:
        if isinstance(part, StepReset):
            step = []
            continue
        step.append(part)
        if isinstance(part, StepFinish):
            try:
                check_stream(step)
            except AssertionError as error:
                expect(False, check, f"what is shown is well formed, but {error}")
            step = []


def _blame(errors: Sequence[BaseException], model: Answering, check: str) -> None:
    """Runs fail for what the model raised, or for a limit; else a plugin is at fault."""
    from pai.errors import ModelError, ModelTimeout

    for error in errors:
        if isinstance(error, ModelTimeout):
            continue
        if not isinstance(error, ModelError):
            cause = "" if error.__cause__ is None else f": {error.__cause__!r}"
            promise = f"no hook raises: {error}{cause}"
        elif not model.raised:
            promise = f"what is shown is well formed, but {error}"
        else:
            continue
        try:
            expect(False, check, promise)
        except AssertionError as failure:
            raise failure from error


def _agent(model: Answering, lifecycle: Lifecycle) -> AgentDefinition[Any]:
    from pai.definition import ToolContext, define_agent, tool

    @tool(inline=True)
    def add(ctx: ToolContext[object], a: int, b: int) -> int:
        """Add two integers."""
        return a + b

    return define_agent(
        name="kit",
        model=model,
        instructions="Be brief.",
        tools={"add": add},
        lifecycle=lifecycle,
    )
