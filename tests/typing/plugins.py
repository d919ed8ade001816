"""What type checkers know of plugins: checked by mypy and pyright, never run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, Protocol, TypeVar, assert_type

import attrs

from pai import (
    ContextInput,
    DenyCall,
    ModelDriver,
    ModelRequest,
    Respond,
    RunContext,
    RunPatch,
    StepContext,
    StepPatch,
    StreamPart,
    ToolCallContext,
    ToolResultContext,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.contexts import Records
from pai.lifecycle import Lifecycle
from pai.testing import PLUGIN_CHECKS, PluginCase, check_plugin

Ctx = TypeVar("Ctx")


class Quota(Generic[Ctx]):
    """A plugin for agents of any context, which the application says how to read."""

    name = "quota"

    def __init__(self, left: Callable[[Ctx], int]) -> None:
        self.left = left

    @hookimpl
    async def prepare_run(
        self, run: RunContext[Ctx], state: dict[str, object], records: Records
    ) -> RunPatch | Respond | None:
        assert_type(run.runtime_context, Ctx)
        left = self.left(run.runtime_context)
        await records.shared.put("left", left)
        if left == 0:
            return Respond("No.", outcome="blocked", reason="quota_exceeded")
        return RunPatch(max_steps=left)

    @hookimpl
    def prepare_model_step(self, step: StepContext[Ctx]) -> StepPatch | None:
        assert_type(step.runtime_context, Ctx)
        assert_type(step.run, RunContext[Ctx])
        return None

    @hookimpl
    async def wrap_model_call(
        self,
        step: StepContext[Ctx],
        call_model: Callable[[ModelRequest], AsyncIterator[StreamPart]],
    ) -> AsyncIterator[StreamPart]:
        async for part in call_model(step.request):
            assert_type(part, StreamPart)
            yield part

    @hookimpl
    def before_tool_call(self, call: ToolCallContext[Ctx]) -> DenyCall | None:
        assert_type(call.runtime_context, Ctx)
        return None

    @hookimpl
    def tool_settled(self, result: ToolResultContext[Ctx]) -> None:
        assert_type(result.run.runtime_context, Ctx)
        assert_type(result.error, str | None)


class HasPlan(Protocol):
    """What a plugin needs of a context, whatever else it has."""

    @property
    def plan(self) -> str: ...


HasPlanT = TypeVar("HasPlanT", bound=HasPlan)


class Plans(Generic[HasPlanT]):
    @hookimpl
    def prepare_run(self, run: RunContext[HasPlanT]) -> Respond | None:
        assert_type(run.runtime_context.plan, str)
        return Respond("Choose a plan.") if run.runtime_context.plan == "" else None


@attrs.frozen
class Account:
    plan: str
    left: int


def account(given: ContextInput) -> Account:
    return Account("free", 3)


def left_of(context: Account) -> int:
    return context.left


# The marker keeps a hook's own type, and the context's with it.
quota = Quota(left_of)
assert_type(quota, Quota[Account])


async def ask(run: RunContext[Account], state: dict[str, object], records: Records) -> None:
    assert_type(await quota.prepare_run(run, state, records), RunPatch | Respond | None)
    assert_type(Plans[Account]().prepare_run(run), Respond | None)


async def ask_other(run: RunContext[str], state: dict[str, object], records: Records) -> None:
    await quota.prepare_run(run, state, records)  # type: ignore[arg-type]  # of another context


def without_plan(run: RunContext[str]) -> None:
    Plans[str]()  # type: ignore[type-var]  # text has no plan


# Plugins of any kind go together, and an agent takes one or several.
both = compose_lifecycle(quota, Plans[Account]())
assert_type(both, Lifecycle)
define_agent(name="a", model="demo", runtime_context=account, lifecycle=both)
agent = define_agent(name="a", model="demo", runtime_context=account, lifecycle=quota)
create_pai(agents={"main": agent}, plugins=["redaction", {"at-most": {"calls": {}}}, quota])


# The kit takes a class, a function, and an agent of the plugin's own.


def make_agent(model: ModelDriver, lifecycle: Lifecycle) -> Any:
    return define_agent(name="a", model=model, runtime_context=account, lifecycle=lifecycle)


async def check() -> None:
    await check_plugin(Plans[Account], agent=make_agent)
    await check_plugin(lambda: Quota(left_of), agent=make_agent, quiet=lambda part: True)
    for one in PLUGIN_CHECKS:
        await one(PluginCase(make=Plans[Account], agent=make_agent))
