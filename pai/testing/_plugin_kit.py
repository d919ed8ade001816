"""The kit that holds a plugin to what others rely on: :func:`check_plugin`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from types import ModuleType
from typing import TYPE_CHECKING, Any

import attrs

from pai.contexts import ReplaceInput, Respond, StepContext, StepPatch, ToolCallContext, ToolOutput
from pai.errors import IncompleteStream, PaiError, RateLimited
from pai.hookspecs import hookimpl
from pai.lifecycle import compose_lifecycle
from pai.loop import limits
from pai.ports import ModelRequest
from pai.protocol import (
    File,
    Message,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StepFinish,
    StepReset,
    StreamPart,
    SystemMessage,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ToolCallPart,
    ToolInputStart,
    new_id,
)
from pai.testing._plugin_case import MakeAgent, Played, PluginCase, expect, judge_run
from pai.testing._plugin_memory import held_by
from pai.testing._plugin_model import (
    HOLD,
    Answer,
    Answering,
    Item,
    calls_add,
    finish,
    says,
    text,
    text_of,
)

if TYPE_CHECKING:
    from pai.runtime import RunHandle

__all__ = ("PLUGIN_CHECKS", "PluginCase", "check_plugin")

Check = Callable[[PluginCase], Awaitable[None]]
CallModel = Callable[[ModelRequest], AsyncIterator[StreamPart]]

_SHORT, _LONG = 0.05, 60.0
"""Seconds: a limit that is meant to be over, and one that is not."""
_SAID = "Said without a model."


async def check_plugin(
    make: Callable[[], object],
    *,
    quiet: bool | Callable[[StreamPart], bool] = True,
    rechunks: bool = False,
    replaces: Collection[str] = (),
    remembers: bool = False,
    agent: MakeAgent | None = None,
    identity: object = None,
    client_data: object = None,
    capabilities: Mapping[str, object] | None = None,
) -> None:
    """
    Hold a plugin to what applications and its neighbours rely on; run it on asyncio and on trio.

    Each of :data:`PLUGIN_CHECKS` plays runs with models and neighbours of its own, in memory. The
    user says "go"; the models write short texts and call ``add(a=2, b=3)``.

    Args:
        make: Makes a fresh plugin, such as one that has nothing to say in these runs.
        quiet: What the plugin leaves alone in these runs: all parts of the stream, none, or those
            for which a function says so.
        rechunks: It may hold text back for a while: deltas are compared by what they make
            together, not one by one.
        replaces: What it replaces whole, so that a left neighbour's change to it may be lost:
            ``"instructions"``, ``"messages"``, ``"provider_options"``, ``"input"`` and
            ``"output"`` of calls.
        remembers: It keeps something of a run on purpose, within bounds of its own.
        agent: Makes the agent from a model and a lifecycle, where the plugin needs a context,
            metadata or the like; a tool ``add(a: int, b: int)`` is called if it has one.
        identity: Who the runs are for.
        client_data: What the client sends along.
        capabilities: Bindings by id.

    Raises:
        AssertionError: What is broken: which promise, found by which check. Where there are
            several, they are listed, and are an ``ExceptionGroup`` as the cause.
    """
    case = PluginCase(
        make=make,
        quiet=quiet,
        rechunks=rechunks,
        replaces=replaces,
        remembers=remembers,
        agent=agent,
        identity=identity,
        client_data=client_data,
        capabilities=capabilities,
    )
    # What can't be composed can't be tried.
    await check_composes(case)
    failed: list[AssertionError] = []
    for check in PLUGIN_CHECKS[1:]:
        try:
            await check(case)
        except AssertionError as error:
            failed.append(error)
    if len(failed) == 1:
        raise failed[0]
    if failed:
        head = f"{len(failed)} of {len(PLUGIN_CHECKS)} promises are broken"
        lines = "\n".join(f"  - {error}" for error in failed)
        raise AssertionError(f"{head}:\n{lines}") from ExceptionGroup(head, failed)


def _conversation(request: ModelRequest) -> list[Item]:
    """What the model says: a call, then what came of it."""
    last = request.messages[-1].parts if request.messages else ()
    if any(isinstance(part, ToolCallPart) for part in last):
        return [*text("It is 5."), finish()]
    return [
        ReasoningStart("r"), ReasoningDelta("r", "I have "), ReasoningDelta("r", "to add."),
        ReasoningEnd("r"), *text("I add."), *calls_add(new_id(), 2, 3), finish("tool-calls"),
    ]  # fmt: skip


def _parts(request: ModelRequest) -> list[Item]:
    """An answer with all that is no call."""
    return [
        *text("One, "), *text("two.", "u"), Source("s", url="https://example.org"),
        File("text/plain", url="https://example.org/f"),
        attrs.evolve(finish("length"), output={"kit": 1}),
    ]  # fmt: skip


def _nothing(request: ModelRequest) -> list[Item]:
    return [finish()]


class _Limits:
    """Limits around the model's stream and around what is shown."""

    def __init__(self, between: float = _LONG, shown: float = _LONG) -> None:
        self._between = between
        self._shown = shown

    @hookimpl
    def wrap_model_call(
        self, step: StepContext[Any], call_model: CallModel
    ) -> AsyncIterator[StreamPart]:
        stream = call_model(step.request)
        return limits(stream, first=_LONG, between=self._between, total=_LONG)

    @hookimpl
    def transform_step_stream(
        self, step: StepContext[Any], stream: AsyncIterator[StreamPart]
    ) -> AsyncIterator[StreamPart]:
        return limits(stream, between=self._shown, total=_LONG)


class _Left:
    """A neighbour that changes all that can be changed."""

    @hookimpl
    def prepare_model_step(self, step: StepContext[Any]) -> StepPatch:
        added = Message("kit-message", "user", (TextPart("kit"),), "kit", datetime.now(UTC))
        return StepPatch(
            instructions=(*step.request.instructions, SystemMessage("kit-instruction")),
            messages=(added, *step.request.messages),
        )

    @hookimpl
    async def wrap_model_call(
        self, step: StepContext[Any], call_model: CallModel
    ) -> AsyncIterator[StreamPart]:
        options = {**step.request.provider_options, "kit-option": {"on": True}}
        async for part in call_model(attrs.evolve(step.request, provider_options=options)):
            yield part

    @hookimpl
    def rewrite_tool_input(self, call: ToolCallContext[Any]) -> ReplaceInput | None:
        return ReplaceInput({"a": 20, "b": 3}) if call.tool == "add" else None

    @hookimpl
    def after_tool_result(self, result: ToolCallContext[Any]) -> ToolOutput | None:
        return ToolOutput(1023) if result.tool == "add" else None


class _Answers:
    """A neighbour that answers in the model's place."""

    @hookimpl
    def prepare_run(self, run: object) -> Respond:
        return Respond(_SAID)


# ---------------------------------------------------------------------------- the checks


async def check_composes(case: PluginCase) -> None:
    """It composes, each time anew."""
    name = "check_composes"
    try:
        first, second = case.make(), case.make()
        compose_lifecycle(first)
        if not isinstance(first, ModuleType):
            compose_lifecycle(first, second)
    except PaiError as error:
        expect(False, name, f"the plugin composes, and make() gives a fresh one: {error}")
    await case.play(_conversation, case.make(), check=name)


async def check_operations(case: PluginCase) -> None:
    """Runs without a message of the user end as others do (R-30)."""
    name = "check_operations"

    async def triggered(thread: Any) -> RunHandle:
        run: RunHandle = await thread.trigger(client_data=case.client_data)
        return run

    async def sent(thread: Any) -> RunHandle:
        run: RunHandle = await thread.send("go", client_data=case.client_data)
        return run

    runs = await case.play_all(
        _conversation, case.make(), check=name, sends=[triggered, sent, triggered]
    )
    for played in runs:
        judge_run(played, name)
        if case.quiet is True:
            told = f"a run ends as it would without the plugin, not as {played.result.status}"
            expect(played.result.status == "completed", name, told)


async def check_unchanged(case: PluginCase) -> None:
    """Streams are passed unchanged where there is nothing to say."""
    name = "check_unchanged"
    for answer in (_conversation, _parts, _nothing):
        played = await case.play(answer, case.make(), check=name)
        _same(case, played.model.said, played.shown, name)
    played = await case.play(_nothing, case.make(), _Answers(), check=name)
    said: list[StreamPart] = [
        TextStart("t0"),
        TextDelta("t0", _SAID),
        TextEnd("t0"),
        StepFinish("stop"),
    ]
    _same(case, said, played.shown, name)


def _same(
    case: PluginCase, said: Sequence[StreamPart], shown: Sequence[StreamPart], name: str
) -> None:
    before, after = case.untouched(said), case.untouched(shown)
    if before == after:
        return
    at = next(
        (at for at, pair in enumerate(zip(before, after, strict=False)) if pair[0] != pair[1]),
        min(len(before), len(after)),
    )
    expect(
        False,
        name,
        "streams are passed unchanged where there is nothing to say, but part"
        f" {at} was {_at(before, at)} and became {_at(after, at)}",
    )


def _at(parts: Sequence[StreamPart], at: int) -> str:
    return repr(parts[at]) if at < len(parts) else "none"


async def check_pipes(case: PluginCase) -> None:
    """What neighbours further left changed is kept (R-31)."""
    name = "check_pipes"

    def keeps(field: str, condition: object) -> None:
        if field not in case.replaces:
            expect(condition, name, f"what a plugin further left did to the {field} is kept (R-31)")

    played = await case.play(_conversation, _Left(), case.make(), check=name)
    for request in played.model.requests:
        told = [message.content for message in request.instructions]
        keeps("instructions", "kit-instruction" in told)
        keeps("messages", any(message.id == "kit-message" for message in request.messages))
        keeps("provider_options", "kit-option" in request.provider_options)
        for message in request.messages:
            for part in message.parts:
                if isinstance(part, ToolCallPart) and part.outcome == "completed":
                    keeps("input", part.input == {"a": 20, "b": 3})
                    keeps("output", part.output == 1023)


async def check_stacks(case: PluginCase) -> None:
    """Two of them work in one lifecycle, with limits between (R-28, R-35)."""
    name = "check_stacks"
    if isinstance(case.make(), ModuleType):
        return  # there is only one of it

    async def play(answer: Answer, *around: float) -> Played:
        inner, shown = around or (_LONG, _LONG)
        return await case.play(
            answer, _Limits(), case.make(), _Limits(), case.make(), _Limits(inner, shown),
            check=name,
        )  # fmt: skip

    for answer in (_conversation, _parts):
        played = await play(answer)
        _same(case, played.model.said, played.shown, name)
    # A limit inside is over: an error comes through. One outside is over: a cancellation does.
    for around in ((_SHORT, _LONG), (_LONG, _SHORT)):
        played = await play(says(*text("Wait", open_=True), HOLD), *around)
        _fails_as(played, "model_timeout", name)


async def check_step_reset(case: PluginCase) -> None:
    """A ``StepReset`` is passed on, and nothing from before it comes after it (R-37)."""
    name = "check_step_reset"
    lost: tuple[list[StreamPart], ...] = (
        text("VOID", open_=True),
        [ReasoningStart("r"), ReasoningDelta("r", "VOID")],
        [*text("VOID"), ToolInputStart("lost", "add")],
    )
    kept = [*text("kept"), finish()]
    for parts in lost:
        played = await case.play(
            says(*parts, StepReset("kit"), *kept), case.make(), check=name, judge=False
        )
        if not played.model.said:
            judge_run(played, name)
            continue  # it answered in the model's place
        at = [index for index, part in enumerate(played.shown) if isinstance(part, StepReset)]
        expect(at, name, "a StepReset is passed on (R-37)")
        after = played.shown[at[-1] + 1 :]
        told = "what was held back is dropped at a StepReset, and does not come after it (R-37)"
        expect(not set("VOID") & set(text_of(after)), name, told)
        judge_run(played, name)
        _same(case, kept, after, name)


async def check_model_errors(case: PluginCase) -> None:
    """Errors of the model come through as what they are, where they come through."""
    name = "check_model_errors"
    for before in ([], text("Some", open_=True)):
        error = RateLimited("slow down", provider="kit", status=429)
        played = await case.play(says(*before, error), case.make(), check=name)
        _fails_as(played, "rate_limited", name)


def _fails_as(played: Played, code: str, name: str) -> None:
    error = played.result.error
    if error is not None:
        told = f"an error of the model keeps its code: {code}, not {error['code']}"
        expect(error["code"] == code, name, told)


async def check_cancel(case: PluginCase) -> None:
    """A cancellation passes through, and the next run is as any other (R-35)."""
    name = "check_cancel"
    plugin = case.make()

    async def cancel(run: RunHandle, model: Answering) -> None:
        await model.holding.wait()
        await run.cancel("kit")

    for before in ([], text("Some", open_=True)):
        played = await case.play(says(*before, HOLD), plugin, check=name, during=cancel)
        if played.model.holding.is_set():
            status = played.result.status
            expect(
                status == "cancelled", name, f"a cancelled run is cancelled, not {status} (R-35)"
            )
            told = f"a cancellation passes through, but a stream was {played.ends} (R-35)"
            expect(set(played.ends) == {"cancelled"}, name, told)
        played = await case.play(_conversation, plugin, check=name)
        _same(case, played.model.said, played.shown, name)


async def check_keeps_nothing(case: PluginCase) -> None:
    """Nothing of a run is kept when it is over, and nothing of it is seen in the next (R-34)."""
    name = "check_keeps_nothing"
    plugin = case.make()
    counts: list[int] = []
    for number in range(4):
        marks = [f"kit-asked-{number}", f"kit-said-{number}"]
        # Every other run is cut off in the middle of its text.
        end = [TextEnd("t"), finish()] if number % 2 else [IncompleteStream("cut", provider="kit")]
        answer = says(*text(marks[1], open_=True), *end)
        played = await case.play(answer, plugin, check=name, content=marks[0])
        if number:
            earlier = f"-{number - 1}"
            seen = text_of(played.shown) + "".join(
                message.text for request in played.model.requests for message in request.messages
            )
            told = "nothing of a run is seen in the next one (R-34)"
            expect(f"kit-said{earlier}" not in seen, name, told)
            expect(f"kit-asked{earlier}" not in seen, name, told)
        del played
        if case.remembers:
            continue
        held = held_by(plugin)
        counts.append(held.count)
        if held.contexts:
            kinds = ", ".join(sorted(held.contexts))
            expect(False, name, f"nothing of a run is kept: the plugin still holds a {kinds}"
                   " (R-34); use state, records or remembers=True")  # fmt: skip
        kept = [mark for mark in marks if any(mark in found for found in held.texts)]
        expect(not kept, name, f"nothing of a run is kept: the plugin still holds the text {kept}"
               " of one (R-34); use state, records or remembers=True")  # fmt: skip
    if counts:
        # Runs that ended alike are compared; what the first one warmed up is no matter.
        told = f"nothing of a run is kept: the plugin holds more after each, {counts} (R-34)"
        expect(counts[3] <= counts[1], name, told)


PLUGIN_CHECKS: tuple[Check, ...] = (
    check_composes,
    check_operations,
    check_unchanged,
    check_pipes,
    check_stacks,
    check_step_reset,
    check_model_errors,
    check_cancel,
    check_keeps_nothing,
)
"""One a promise, for a test suite that wants to name each."""
