"""Capabilities: one object, one id, under any alias (A-CAP)."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any, Protocol, runtime_checkable

import attrs
import pytest

from pai import (
    AgentToolConfig,
    Capability,
    CapabilityBindingError,
    create_agent_runtime,
    create_pai,
    define_agent,
    define_capability,
    define_command,
    tool,
)

from .refusals import refused, refused_agent


class Database: ...


@attrs.frozen
class Bag:
    note: str = ""


DB = define_capability("db", Database)
CLOCK = define_capability("clock", int)


def using(**capabilities: Capability[Any]):
    @tool(capabilities=capabilities)
    def look(ctx) -> str:
        """Look."""
        return ""

    return look


def command(**capabilities: Capability[Any]):
    return define_command(
        name="rate",
        description="Rate.",
        input=Bag,
        output=Bag,
        execute=lambda ctx, given: given,
        capabilities=capabilities,
    )


def test_capabilities_of_tools_and_commands_are_folded_by_id():
    """A-CAP-1: aliases are local; a tool inside a config counts as if it stood there itself."""
    agent = define_agent(
        name="calc",
        model="demo",
        tools={"a": using(store=DB), "b": AgentToolConfig(using(now=CLOCK), enabled=False)},
        commands={"rate": command(database=DB)},
    )
    assert dict(agent.capabilities) == {"db": DB, "clock": CLOCK}
    assert agent.tools["a"].tool.capabilities == {"store": DB}


def test_two_objects_of_one_id_are_refused_by_identity():
    """A-CAP-1: every place is told."""
    twin = define_capability("db", Database)
    faults = refused_agent(
        CapabilityBindingError,
        tools={"a": using(store=DB), "b": AgentToolConfig(using(other=twin))},
        commands={"rate": command(again=twin)},
    )
    assert set(faults) == {"tools.b.capabilities.other", "commands.rate.capabilities.again"}
    assert all("'db'" in message for message in faults.values())


def test_a_clash_among_other_faults_is_an_ordinary_definition_error():
    """A-CAP-1, A-DEF-2."""
    twin = define_capability("db", Database)
    faults = refused_agent(version="", tools={"a": using(x=DB), "b": using(x=twin)})
    assert set(faults) == {"version", "tools.b.capabilities.x"}


@runtime_checkable
class Closes(Protocol):
    def close(self) -> None: ...


class Unchecked(Protocol):
    def close(self) -> None: ...


@pytest.mark.parametrize("kind", [Database, int, Sized, Closes])
def test_a_capability_is_a_class_or_a_protocol_that_can_be_checked(kind):
    """A-CAP-2: a binding is checked against it."""
    assert define_capability("db", kind).type is kind


@pytest.mark.parametrize("kind", [Unchecked, list[int], int | str, (int, str), "Database", None])
def test_what_no_binding_can_be_checked_against_is_refused(kind):
    """A-CAP-2."""
    assert set(refused(define_capability, id="no name", type=kind)) == {"id", "type"}


def test_an_alias_is_an_attribute():
    """A-CAP-1: it is read as ``ctx.capabilities.NAME``."""
    faults = refused(using, **{"not-one": DB})
    assert list(faults) == ["look.capabilities.not-one"]
    assert list(refused(using, db=Database)) == ["look.capabilities.db"]
    assert list(refused(command, db=Database)) == ["rate.capabilities.db"]


def test_the_runtime_lists_all_missing_surplus_and_wrong_bindings():
    """A-CAP-2."""
    agent = define_agent(
        name="calc", model="demo", tools={"a": using(db=DB, clock=CLOCK, other=OTHER)}
    )
    faults = refused(
        lambda **given: create_agent_runtime(agent=agent, **given),
        CapabilityBindingError,
        capabilities={"clock": "noon", "surplus": 1},
    )
    assert set(faults) == {
        "capabilities.db",
        "capabilities.other",
        "capabilities.clock",
        "capabilities.surplus",
    }
    assert create_agent_runtime(
        agent=agent, capabilities={"db": Database(), "clock": 1, "other": ""}
    )


def test_agents_of_one_runtime_share_the_very_objects():
    """A-CAP-1, A-CAP-2."""
    twin = define_capability("db", Database)
    agents = {
        name: define_agent(name=name, model="demo", tools={"a": using(db=capability)})
        for name, capability in (("one", DB), ("two", twin))
    }
    faults = refused(
        create_pai, CapabilityBindingError, agents=agents, capabilities={"db": Database()}
    )
    assert set(faults) == {"agents.two.capabilities.db"}


OTHER = define_capability("other", str)
