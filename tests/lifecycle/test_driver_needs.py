"""Capabilities that drivers require (O-4)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pai import (
    CapabilityBindingError,
    ModelProfile,
    ModelSelection,
    create_pai,
    define_agent,
    define_capability,
    run_once,
    tool,
)
from pai.testing import ScriptedModel

from ..distributions import Site, only_site

SANDBOX = define_capability("sandbox", str)


def harness(turns=("done",)) -> ScriptedModel:
    return ScriptedModel(turns, profile=ModelProfile(requires=("sandbox",)))


@pytest.mark.parametrize("model", [harness(), ModelSelection(harness())])
def test_a_missing_one_is_told_when_the_runtime_is_built(model):
    agent = define_agent(name="a", model=model)
    with pytest.raises(CapabilityBindingError) as caught:
        create_pai(agents={"x": agent})
    (fault,) = caught.value.faults
    assert fault.path == "capabilities.sandbox"
    assert fault.message == "has no binding, and the model of agents.x requires it"


@pytest.mark.anyio
async def test_the_driver_gets_what_is_bound():
    model = harness()
    result = await run_once(
        define_agent(name="a", model=model), "go", capabilities={"sandbox": "box"}
    )
    assert result.text == "done"
    assert model.requests[0].capabilities == {"sandbox": "box"}


def test_one_that_a_tool_needs_too_is_checked_and_told_once():
    @tool(capabilities={"box": SANDBOX})
    def look(ctx) -> str:
        """Look."""
        return ""

    agent = define_agent(name="a", model=harness(), tools={"look": look})
    with pytest.raises(CapabilityBindingError) as caught:
        create_pai(agents={"x": agent})
    assert [fault.path for fault in caught.value.faults] == ["capabilities.sandbox"]
    with pytest.raises(CapabilityBindingError, match="expected a str, got a int"):
        create_pai(agents={"x": agent}, capabilities={"sandbox": 5})


def test_nobody_needs_it():
    agent = define_agent(name="a", model=ScriptedModel())
    with pytest.raises(CapabilityBindingError, match="no agent and no plugin needs it"):
        create_pai(agents={"x": agent}, capabilities={"sandbox": "box"})


def made(name: str) -> ScriptedModel:
    return harness()


@pytest.fixture
def site(tmp_path, monkeypatch) -> Iterator[Site]:
    with only_site(tmp_path / "site", monkeypatch) as found:
        yield found


def test_a_driver_by_its_name(site):
    """Of a distribution that is installed; a name that leads nowhere is told by the run."""
    site.add("pai-harness", f"[pai.models]\nx = {__name__}:made\n")
    agent = define_agent(name="a", model="x:1")
    with pytest.raises(CapabilityBindingError, match="sandbox"):
        create_pai(agents={"x": agent})
    create_pai(agents={"x": define_agent(name="a", model="nowhere:1")})
