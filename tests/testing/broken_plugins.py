"""Plugins that are broken, each in one way, with the check that must find it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    ModelError,
    Respond,
    StepFinish,
    StepPatch,
    StepReset,
    TextDelta,
    TextEnd,
    ToolOutput,
    hookimpl,
)

BROKEN: list[Any] = []


def broken(check: str, promise: str, make: Callable[[], object] | None = None) -> Any:
    """A plugin that breaks a promise; the check must say so in these words."""

    def add(cls: type) -> type:
        BROKEN.append(pytest.param(make or cls, check, promise, id=f"{check}-{cls.__name__}"))
        return cls

    return add


class Transform:
    """Passes everything on."""

    @hookimpl
    async def transform_step_stream(self, stream):
        async for part in stream:
            yield part


# ------------------------------------------------------------------------ check_composes


@broken("check_composes", "there is no such argument")
class Misspelt:
    @hookimpl
    def prepare_run(self, runn): ...


class Single(Transform): ...


SINGLE = Single()
broken("check_composes", "make() gives a fresh one", lambda: SINGLE)(Single)


@broken("check_composes", "no hook raises: plugin 'Raising' raised KeyError")
class Raising:
    @hookimpl
    def run_settled(self, result):
        raise KeyError(result.status)


# ------------------------------------------------------------------------ check_operations


@broken("check_operations", "no hook raises: plugin 'Reader' raised AttributeError")
class Reader:
    @hookimpl
    def prepare_run(self, run):
        return Respond("Hello.") if run.input.text == "hello" else None


@broken("check_operations", "not as blocked")
class AsksForMessage:
    @hookimpl
    def prepare_run(self, run):
        return Respond("No message.", outcome="blocked") if run.input is None else None


# ------------------------------------------------------------------------ check_unchanged


@broken("check_unchanged", "became TextDelta")
class Joins:
    @hookimpl
    async def transform_step_stream(self, stream):
        held = None
        async for part in stream:
            if isinstance(part, TextDelta):
                held = TextDelta(part.id, held.text + part.text) if held else part
                continue
            if held:
                yield held
                held = None
            yield part


@broken("check_unchanged", "was Source")
class OnlyKnown:
    @hookimpl
    async def transform_step_stream(self, stream):
        async for part in stream:
            if part.type != "source":
                yield part


@broken("check_unchanged", "was StepFinish")
class OwnFinish:
    @hookimpl
    async def wrap_model_call(self, step, call_model):
        async for part in call_model(step.request):
            yield StepFinish("stop") if isinstance(part, StepFinish) else part


@broken("check_unchanged", "output={'kit': 1}) and became StepFinish")
class LosesOutput:
    @hookimpl
    async def wrap_model_call(self, step, call_model):
        async for part in call_model(step.request):
            yield StepFinish(part.reason, part.usage) if isinstance(part, StepFinish) else part


@broken("check_unchanged", "what is shown is well formed")
class NeverEnds:
    @hookimpl
    async def transform_step_stream(self, stream):
        async for part in stream:
            if not isinstance(part, TextEnd):
                yield part


# ------------------------------------------------------------------------ check_pipes


@broken("check_pipes", "did to the messages")
class FromHistory:
    @hookimpl
    def prepare_model_step(self, step):
        return StepPatch(messages=list(step.run.messages))


@broken("check_pipes", "did to the instructions")
class Instructs:
    @hookimpl
    def prepare_model_step(self, step):
        return StepPatch(instructions="Be kind.")


@broken("check_pipes", "did to the provider_options")
class Remakes:
    @hookimpl
    async def wrap_model_call(self, step, call_model):
        request = attrs.evolve(step.request, provider_options={"mine": {}})
        async for part in call_model(request):
            yield part


@broken("check_pipes", "did to the output")
class Caches:
    @hookimpl
    def after_tool_result(self, result):
        return ToolOutput(result.input["a"] + result.input["b"])


# ------------------------------------------------------------------------ check_stacks


@broken("check_stacks", "no hook raises")
class HoldsScope:
    @hookimpl
    async def transform_step_stream(self, stream):
        with anyio.fail_after(60):
            async for part in stream:
                yield part


class SharedBuffer(Transform):
    """Keeps in its class what each of them should keep for itself."""

    busy = False

    @hookimpl
    async def transform_step_stream(self, stream):
        if SharedBuffer.busy:
            raise RuntimeError
        SharedBuffer.busy = True
        try:
            async for part in stream:
                yield part
        finally:
            SharedBuffer.busy = False


broken("check_stacks", "no hook raises")(SharedBuffer)


# ------------------------------------------------------------------------ check_step_reset


@broken("check_step_reset", "a StepReset is passed on")
class SwallowsReset:
    @hookimpl
    async def transform_step_stream(self, stream):
        async for part in stream:
            if not isinstance(part, StepReset):
                yield part


@broken("check_step_reset", "does not come after it")
class HoldsOver:
    """Holds back the newest part, and does not look at what comes."""

    @hookimpl
    async def transform_step_stream(self, stream):
        held = None
        async for part in stream:
            if isinstance(part, TextDelta):
                if held is not None:
                    yield held
                held = part
            elif isinstance(part, StepReset):
                yield part
            else:
                if held is not None:
                    yield held
                held = None
                yield part


@broken("check_step_reset", "what is shown is well formed")
class ForgetsThatItReset:
    """Counts on a start for each end, over the reset."""

    @hookimpl
    async def transform_step_stream(self, stream):
        opened = set()
        async for part in stream:
            if part.type in {"text-start", "reasoning-start"}:
                if part.id in opened:
                    continue
                opened.add(part.id)
            elif part.type in {"text-end", "reasoning-end"}:
                opened.discard(part.id)
            yield part


# ------------------------------------------------------------------------ check_model_errors


@broken("check_model_errors", "no hook raises")
class Rewraps:
    @hookimpl
    async def wrap_model_call(self, step, call_model):
        try:
            async for part in call_model(step.request):
                yield part
        except ModelError as error:
            raise RuntimeError(str(error)) from error


@broken("check_model_errors", "rate_limited, not model_error")
class LosesCode:
    @hookimpl
    async def wrap_model_call(self, step, call_model):
        try:
            async for part in call_model(step.request):
                yield part
        except ModelError as error:
            raise ModelError(str(error), provider=error.provider) from error


# ------------------------------------------------------------------------ check_cancel


@broken("check_cancel", "a cancellation passes through")
class SwallowsCancel:
    @hookimpl
    async def transform_step_stream(self, stream):
        try:
            async for part in stream:
                yield part
        except BaseException:  # that is what is wrong with it
            yield StepFinish("stop")


@broken("check_cancel", "a run does not end within")
class Shields:
    @hookimpl
    async def transform_step_stream(self, stream):
        while True:
            with anyio.CancelScope(shield=True):
                part = await anext(stream, None)
            if part is None:
                return
            yield part


# ------------------------------------------------------------------------ check_keeps_nothing


@broken("check_keeps_nothing", "still holds a RunContext")
class KeepsRun:
    @hookimpl
    def run_started(self, run):
        self.run = run


@broken("check_keeps_nothing", "still holds the text ['kit-said-")
class KeepsText:
    @hookimpl
    def step_finished(self, outcome):
        self.last = outcome.message.text


@broken("check_keeps_nothing", "holds more after each")
class KeepsIds:
    def __init__(self):
        self.seen = {}

    @hookimpl
    def run_started(self, run):
        self.seen[run.id] = 1


RUNS: list[str] = []


@broken("check_keeps_nothing", "holds more after each")
class KeepsGlobally:
    @hookimpl
    def run_started(self, run):
        RUNS.append(run.id)


@broken("check_keeps_nothing", "nothing of a run is seen in the next one")
class KeepsBuffer:
    def __init__(self):
        self.held = []

    @hookimpl
    async def transform_step_stream(self, stream):
        async for part in stream:
            if isinstance(part, TextDelta):
                self.held.append(part)
                continue
            if isinstance(part, TextEnd):
                for held in self.held:
                    yield TextDelta(part.id, held.text)
                self.held.clear()
            yield part
