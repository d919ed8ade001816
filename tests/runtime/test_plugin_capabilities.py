"""What plugins need of a runtime, and what they bring (A-CAP)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pai import (
    Capability,
    CapabilityBindingError,
    create_pai,
    define_agent,
    define_capability,
    hookimpl,
    run_once,
    tool,
)
from pai.testing import Call, ScriptedModel


class Clock:
    def __init__(self, now: int = 12) -> None:
        self.now = now


class Index:
    """Something to search in."""


CLOCK = define_capability("clock", Clock)
INDEX = define_capability("index", Index)


@tool(capabilities={"clock": CLOCK})
def hour(ctx) -> int:
    """Tell the hour."""
    now: int = ctx.capabilities.clock.now
    return now


class Plugin:
    def __init__(self, name: str, *, requires: object = (), provides: object = None) -> None:
        self.name = name
        self.requires = requires
        self.provides = provides

    @hookimpl
    def run_started(self, run):
        """Do nothing."""


def agent(*turns: Any, lifecycle: object = None) -> Any:
    model = ScriptedModel([*turns])
    return define_agent(name="a", model=model, tools={"hour": hour}, lifecycle=lifecycle)


def faults(
    *plugins: object, lifecycle: object = None, given: Mapping[str, object] | None = None
) -> list[str]:
    with pytest.raises(CapabilityBindingError) as caught:
        create_pai(agents={"a": agent(lifecycle=lifecycle)}, plugins=plugins, capabilities=given)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.anyio
async def test_a_plugin_provides_what_a_tool_needs() -> None:
    """A-CAP-1, A-CAP-2: a provided one needs no binding."""
    plugin = Plugin("p", provides={CLOCK: Clock(7)})
    result = await run_once(agent(Call("hour", {}), "Seven."), "go", plugins=[plugin])
    assert result.status == "completed"
    assert result.message is not None
    assert "7" in str(result.message) or result.text == "Seven."
    # One of the agent's own plugins may as well.
    create_pai(agents={"a": agent(lifecycle=plugin)}, plugins=())


def test_what_a_plugin_requires_must_be_bound() -> None:
    """A-CAP-2: what is missing is listed, all of it."""
    asks = Plugin("asks", requires=(INDEX, CLOCK))
    assert faults(asks) == [
        "capabilities.clock: has no binding",
        "capabilities.index: has no binding",
    ]
    assert faults(lifecycle=asks) == faults(asks)
    brings = Plugin("brings", provides={INDEX: Index()})
    create_pai(agents={"a": agent()}, plugins=[asks, brings], capabilities={"clock": Clock()})


@pytest.mark.anyio
async def test_a_plugin_is_handed_what_is_bound() -> None:
    """A-CAP-1: in every hook of a run, and in the request for its driver."""
    clock = Clock()
    seen: list[object] = []

    class Asks(Plugin):
        @hookimpl
        def prepare_run(self, run):
            seen.append(run.capabilities[CLOCK.id])

        @hookimpl
        def prepare_model_step(self, step):
            seen.append(step.request.capabilities[CLOCK.id])

    plugin = Asks("asks", requires=(CLOCK,))
    given = {"clock": clock}
    await run_once(agent("Hello."), "go", plugins=[plugin], capabilities=given)
    assert seen == [clock, clock]


@pytest.mark.parametrize(
    ("plugins", "given", "text"),
    [
        (
            [Plugin("p", provides={CLOCK: Clock()})],
            {"clock": Clock()},
            "capabilities.clock: a plugin provides it: leave it out",
        ),
        (
            [Plugin("p", provides={CLOCK: Clock()}), Plugin("q", provides={CLOCK: Clock()})],
            {},
            "plugins.q.provides: another plugin provides 'clock' too: leave one out",
        ),
        (
            [Plugin("p", provides={CLOCK: 12})],
            {},
            "capabilities.clock: expected a Clock, got a int",
        ),
        (
            [Plugin("p", requires=(Capability("clock", Clock),))],
            {"clock": Clock()},
            "plugins.p.requires: another object declares the capability 'clock'",
        ),
        (
            [Plugin("p", requires=("clock",))],
            {"clock": Clock()},
            "plugins.p.requires: expected what define_capability() returned, got str",
        ),
        ([Plugin("p", requires=CLOCK)], {"clock": Clock()}, "expected a tuple of capabilities"),
        ([Plugin("p", provides=[CLOCK])], {"clock": Clock()}, "expected a dict from capabilities"),
        ([], {"clock": Clock(), "index": Index()}, "capabilities.index: no agent and no plugin"),
        ([], {"clock": 5}, "capabilities.clock: expected a Clock, got a int"),
    ],
)
def test_what_is_wrong_is_told(plugins: list[object], given: dict[str, object], text: str) -> None:
    """A-CAP-1, A-CAP-2"""
    (fault,) = faults(*plugins, given=given)
    assert text in fault


def test_what_nobody_needs_may_be_provided() -> None:
    plugin = Plugin("p", provides={INDEX: Index()})
    create_pai(agents={"a": agent()}, plugins=[plugin], capabilities={"clock": Clock()})
