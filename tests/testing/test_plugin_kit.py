"""The kit for plugins: one broken plugin for each promise, caught by the check named for it."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import attrs
import pytest

from pai import (
    Respond,
    StepPatch,
    TextDelta,
    compose_lifecycle,
    define_agent,
    define_capability,
    hookimpl,
    tool,
)
from pai.testing import PLUGIN_CHECKS, PluginCase, check_plugin

from .broken_plugins import BROKEN, Instructs, Joins, Misspelt, OnlyKnown, Transform

pytestmark = pytest.mark.anyio

CHECKS = {check.__name__: check for check in PLUGIN_CHECKS}


@pytest.mark.parametrize(("make", "check", "promise"), BROKEN)
async def test_a_broken_plugin_is_caught(make, check, promise, monkeypatch):
    if "does not end" in promise:
        monkeypatch.setattr("pai.testing._plugin_case.PATIENCE", 0.5)
    with pytest.raises(AssertionError) as caught:
        await CHECKS[check](PluginCase(make=make))
    assert promise in str(caught.value)
    assert f"{check}: see plugins/testing" in str(caught.value)


def test_every_check_has_its_broken_plugin():
    assert {case.values[1] for case in BROKEN} == set(CHECKS)


# ------------------------------------------------------------------------ check_plugin


class Nothing:
    @hookimpl
    def prepare_run(self, run): ...


class Everything(Transform):
    """All hooks, and none has anything to say."""

    @hookimpl
    def accept_message(self, message): ...

    @hookimpl
    async def prepare_run(self, run, state, records):
        state["run"] = run
        await records.put("runs", [run.id, *(await records.get("runs", []))])

    @hookimpl
    def prepare_model_step(self, step): ...

    @hookimpl
    async def wrap_model_call(self, step, call_model):
        async for part in call_model(step.request):
            yield part

    @hookimpl
    def rewrite_tool_input(self, call): ...

    @hookimpl
    def before_tool_call(self, call): ...

    @hookimpl
    def after_tool_result(self, result): ...

    @hookimpl
    def transform_aside(self, item): ...

    @hookimpl
    def run_settled(self, run, state): ...


@pytest.mark.parametrize("make", [Nothing, Everything, lambda: compose_lifecycle(Nothing())])
async def test_a_plugin_that_keeps_its_promises_passes(make):
    await check_plugin(make)


async def test_a_module_is_a_plugin():
    module = ModuleType("plugin_of_test")

    @hookimpl
    def prepare_run(run): ...

    vars(module)["prepare_run"] = prepare_run
    await check_plugin(lambda: module)


async def test_all_that_is_broken_is_told_at_once():
    class Bad(Transform):
        @hookimpl
        def prepare_model_step(self, step):
            return StepPatch(instructions="Be kind.")

        @hookimpl
        def run_started(self, run):
            self.run = run

    with pytest.raises(AssertionError) as caught:
        await check_plugin(Bad)
    text = str(caught.value)
    assert text.startswith(f"2 of {len(PLUGIN_CHECKS)} promises are broken:\n  - ")
    assert "check_pipes" in text
    assert "check_keeps_nothing" in text
    assert isinstance(caught.value.__cause__, ExceptionGroup)
    # One is told as it is.
    with pytest.raises(AssertionError, match=r"^what a plugin further left"):
        await check_plugin(Instructs)


async def test_what_cannot_be_composed_is_not_tried():
    with pytest.raises(AssertionError, match="there is no such argument"):
        await check_plugin(Misspelt)


async def test_a_plugin_may_say_what_it_does():
    class Loud:
        """Replaces instructions, says everything louder, and remembers."""

        seen: list[str]

        def __init__(self):
            self.seen = []

        @hookimpl
        def prepare_model_step(self, step):
            self.seen.append(step.run.id)
            return StepPatch(instructions="Be loud.")

        @hookimpl
        async def transform_step_stream(self, stream):
            async for part in stream:
                if isinstance(part, TextDelta):
                    yield TextDelta(part.id, part.text.upper())
                else:
                    yield part

    wrongs: list[dict[str, Any]] = [
        {"replaces": ["instructions"], "remembers": True},
        {"replaces": ["instructions"], "quiet": False},
        {"quiet": False, "remembers": True},
    ]
    for wrong in wrongs:
        with pytest.raises(AssertionError):
            await check_plugin(Loud, **wrong)
    right: dict[str, Any] = {"replaces": ["instructions"], "remembers": True}
    await check_plugin(Loud, quiet=False, **right)
    await check_plugin(Loud, quiet=lambda part: not isinstance(part, TextDelta), **right)


async def test_a_plugin_may_hold_back_text():
    await check_plugin(Joins, rechunks=True)
    with pytest.raises(AssertionError, match="was Source"):
        await check_plugin(OnlyKnown, rechunks=True)


async def test_a_plugin_that_answers_itself_passes():
    class Blocks:
        @hookimpl
        def prepare_run(self, run):
            return Respond("No.", outcome="blocked", reason="closed")

    await check_plugin(Blocks, quiet=False)


async def test_a_plugin_may_need_an_agent_of_its_own():
    class Clock: ...

    clock = define_capability("clock", Clock)

    @attrs.frozen
    class Identity:
        user: str

    @tool
    def add(ctx, a: int, b: int) -> int:
        """Add."""
        return a + b

    seen = set()

    class Needs:
        requires = (clock,)

        @hookimpl
        def prepare_run(self, run):
            seen.add((run.identity.user, run.client_data, run.runtime_context))

    def agent(model, lifecycle):
        return define_agent(
            name="own",
            model=model,
            tools={"add": add},
            lifecycle=lifecycle,
            identity=Identity,
            client_data=int,
            runtime_context=lambda given: "context",
        )

    await check_plugin(
        Needs,
        agent=agent,
        identity=Identity("u"),
        client_data=7,
        capabilities={"clock": Clock()},
    )
    assert seen == {("u", 7, "context")}
