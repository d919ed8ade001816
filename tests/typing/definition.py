"""What type checkers know of a definition: checked by mypy, never run."""

from __future__ import annotations

from typing import Any, Literal, assert_type

import attrs

from pai import (
    AgentBehaviorInput,
    AgentDefinition,
    AgentToolConfig,
    CommandContext,
    ContextInput,
    MetadataSchemas,
    ModelSelection,
    ToolContext,
    ToolDefinition,
    define_agent,
    define_capability,
    define_command,
    define_tool,
    tool,
)


@attrs.frozen
class Ctx:
    user: str


class Narrow(Ctx): ...


class Other: ...


@attrs.frozen
class Query:
    words: list[str]


@attrs.frozen
class Private:
    job_id: str | None = None


@attrs.frozen
class Public:
    rating: Literal["up", "down"] | None = None


def build(given: ContextInput) -> Ctx:
    return Ctx(given.thread_id)


async def build_later(given: ContextInput) -> Ctx:
    return Ctx(given.thread_id)


# Tools are generic in the context they take.


@tool
def plain(ctx: ToolContext[object], a: int) -> int:
    return a


@tool(idempotent=True)
async def contextual(ctx: ToolContext[Ctx], a: int) -> str:
    assert_type(ctx.context, Ctx)
    return ctx.context.user


@tool
def narrow(ctx: ToolContext[Narrow]) -> str:
    return ctx.context.user


@tool
def foreign(ctx: ToolContext[Other]) -> str:
    return ""


assert_type(plain, ToolDefinition[object])
assert_type(contextual, ToolDefinition[Ctx])


def search(ctx: ToolContext[Ctx], given: Query) -> list[str]:
    return given.words


async def search_later(ctx: ToolContext[Ctx], given: Query) -> list[str]:
    return given.words


def count(ctx: ToolContext[Ctx], given: Query) -> int | str:
    return len(given.words)


assert_type(
    define_tool(name="a", description="A.", input=Query, output=list[str], execute=search),
    ToolDefinition[Ctx],
)
assert_type(
    define_tool(name="a", description="A.", input=Query, output=list[str], execute=search_later),
    ToolDefinition[Ctx],
)
assert_type(
    define_tool(name="a", description="A.", input=Query, output=int | str, execute=count),
    ToolDefinition[Ctx],
)
define_tool(
    name="a",
    description="A.",
    input=Private,
    output=list[str],
    execute=search,  # type: ignore[arg-type]  # takes another input
)


# An agent's context is what its builder gives; without one it is None.

assert_type(define_agent(name="a", model="demo"), AgentDefinition[None])
assert_type(define_agent(name="a", model="demo", tools={"a": plain}), AgentDefinition[None])
assert_type(define_agent(name="a", model="demo", runtime_context=build), AgentDefinition[Ctx])
assert_type(define_agent(name="a", model="demo", runtime_context=build_later), AgentDefinition[Ctx])
assert_type(
    define_agent(name="a", model="demo", runtime_context=lambda given: Ctx("u")),
    AgentDefinition[Ctx],
)


async def choose(given: AgentBehaviorInput[Ctx]) -> ModelSelection:
    assert_type(given.runtime_context, Ctx)
    return ModelSelection("demo")


def instruct(given: AgentBehaviorInput[Ctx]) -> str:
    return given.runtime_context.user


def is_enabled(given: AgentBehaviorInput[Ctx]) -> bool:
    return given.runtime_context.user == "u"


async def to_other(given: AgentBehaviorInput[Ctx]) -> Other:
    return Other()


RUN_METADATA = MetadataSchemas(private=Private, public=Public)
assert_type(RUN_METADATA, MetadataSchemas[Private, Public])


async def rate(ctx: CommandContext[Ctx], given: Public) -> bool:
    assert_type(ctx.context, Ctx)
    return True


agent = define_agent(
    name="a",
    model=choose,
    instructions=instruct,
    runtime_context=build_later,
    run_metadata=RUN_METADATA,
    tools={
        "plain": plain,
        "contextual": contextual,
        "configured": AgentToolConfig(plain, enabled=is_enabled),
        "mapped": AgentToolConfig(foreign, map_context=to_other),
    },
    commands={
        "rate": define_command(
            name="rate", description="R.", input=Public, output=bool, execute=rate
        )
    },
)
assert_type(agent, AgentDefinition[Ctx])
assert_type(agent.name, str)

# A tool of another context does not fit, without map_context.
define_agent(name="a", model="demo", runtime_context=build, tools={"a": foreign})  # type: ignore[arg-type]
define_agent(name="a", model="demo", tools={"a": contextual})  # type: ignore[dict-item]

# A field that nobody knows, or that comes later, is seen before the program runs.
define_agent(name="a", model="demo", instuctions="")  # type: ignore[call-overload]
define_agent(name="a", model="demo", max_parallel_tools=2)


# Capabilities carry the type of their binding.


class Database: ...


DB = define_capability("db", Database)
assert_type(DB.type, type[Database])

# Any says that nothing is known, and is taken everywhere.
untyped: ToolDefinition[Any] = plain
define_agent(name="a", model="demo", tools={"a": untyped})
