"""Tools where they are declared (A-TOOL)."""

from __future__ import annotations

import functools
from typing import Any, Literal, Protocol, runtime_checkable

import attrs
import pytest

from pai import (
    AgentToolConfig,
    DefinitionError,
    ProviderTool,
    Suspend,
    ToolContext,
    define_agent,
    define_capability,
    define_tool,
    tool,
)

from .refusals import refused, refused_agent


@attrs.frozen
class Query:
    """
    What to look for.

    Attributes:
        words: The words, in order.
        limit: How many to give back.
    """

    words: list[str]
    limit: int = 10


@attrs.frozen
class Found:
    urls: list[str]


@attrs.frozen
class Progress:
    percent: int


def search(ctx: ToolContext[object], query: Query) -> Found:
    return Found([])


def made(**more: Any) -> Any:
    return define_tool(
        **{
            "name": "search",
            "description": "Search.",
            "input": Query,
            "output": Found,
            "execute": search,
            **more,
        }
    )


DB = define_capability("db", dict)


def test_the_schema_comes_from_the_signature_and_the_text_from_the_docstring():
    """A-TOOL-6."""

    @tool
    def add(ctx, a: int, b: int = 2, *, kind: Literal["x", "y"] = "x") -> int:
        """
        Add two integers.

        Always exact.

        Args:
            a: The first.
            b: The second.
        """
        return a + b

    spec = add.spec("plus")
    assert (add.name, spec.name) == ("add", "plus")
    assert spec.description == "Add two integers.\n\nAlways exact."
    properties: Any = spec.input_schema["properties"]
    assert list(properties) == ["a", "b", "kind"]
    assert properties["a"] == {"type": "integer", "description": "The first."}
    assert properties["b"]["default"] == 2
    assert spec.input_schema["required"] == ["a"]
    assert add.output is not None
    assert add.output.json_schema == {"type": "integer"}


def test_the_schema_comes_from_classes_and_the_text_from_their_docstrings():
    """A-TOOL-6: a section of the class's docstring describes its fields."""
    spec = made(data=Progress).spec("search")
    assert spec.input_schema["description"] == "What to look for."
    properties: Any = spec.input_schema["properties"]
    assert properties["words"]["description"] == "The words, in order."
    assert properties["limit"]["description"] == "How many to give back."
    assert spec.strict_schema is not None


@pytest.mark.parametrize("way", ["bare", "called", "with options", "direct", "direct with options"])
def test_ways_to_write_the_decorator(way):
    """A-TOOL-1: options count wherever they are given."""

    def look(ctx, a: int) -> str:
        """Look."""
        return ""

    options: dict[str, Any] = {"name": "peek", "idempotent": True, "capabilities": {"db": DB}}
    made: Any = {
        "bare": lambda: tool(look),
        "called": lambda: tool()(look),
        "with options": lambda: tool(**options)(look),
        "direct": lambda: tool(fn=look),
        "direct with options": lambda: tool(look, **options),
    }[way]()
    with_options = "options" in way
    assert made.name == ("peek" if with_options else "look")
    assert made.idempotent is with_options
    assert dict(made.capabilities) == ({"db": DB} if with_options else {})


def test_every_option_that_does_something_is_kept():
    """A-TOOL-1, A-TOOL-4, A-TOOL-6."""
    options: dict[str, Any] = {
        "idempotent": True,
        "capabilities": {"store": DB},
        "context": int,
        "data": Progress,
        "inline": True,
    }

    def nothing(ctx) -> None: ...

    look = tool(nothing, name="peek", description="Peek.", **options)

    for item in (look, made(**options)):
        assert item.idempotent
        assert item.inline
        assert item.context is int
        assert item.data is not None
        assert item.data.type is Progress
        assert item.capabilities == {"store": DB}
    assert (look.name, look.description) == ("peek", "Peek.")


def documented(ctx, a: int) -> int:
    """Do it."""
    return a


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("needs_approval", 1),
        ("needs_approval", lambda given: True),
        ("suspend", object()),
        ("expires_after", 0),
        ("expires_after", True),
    ],
)
def test_what_a_call_waits_for_is_checked(option, value):
    """A-TOOL-6, A-DEF-2."""
    assert list(refused(made, **{option: value})) == [f"search.{option}"]


def test_a_tool_may_leave_its_output_to_a_client():
    """A-TOOL-1."""
    item = made(execute=None, needs_approval=True, expires_after=60)
    assert (item.execute, item.needs_approval, item.expires_after) == (None, True, 60)


def test_the_types_of_a_suspension_are_checked():
    """A-TOOL-6."""
    assert list(refused(Suspend, payload=complex, answer=set)) == ["payload", "answer"]


def test_all_faults_of_a_tool_are_one_error():
    """A-TOOL-6, A-DEF-2."""
    faults = refused(
        made,
        name="no name",
        description=" ",
        input=set[int],
        output=bytes,
        execute=lambda ctx: None,
        capabilities={"db": dict},
        data=complex,
        context="Ctx",
        timeout=0,
    )
    assert set(faults) == {
        "no name.name",
        "no name.description",
        "no name.input",
        "no name.output",
        "no name.execute",
        "no name.capabilities.db",
        "no name.data",
        "no name.context",
        "no name.timeout",
    }
    with pytest.raises(DefinitionError, match="tool 'no name': 9 faults"):
        made(
            name="no name", description=" ", input=set[int], output=bytes, execute=lambda ctx: 1,
            capabilities={"db": dict}, data=complex, context="Ctx", timeout=0,
        )  # fmt: skip


@pytest.mark.parametrize("tp", [int, list[str], None, Found | None])
def test_the_input_is_an_object(tp):
    """A-TOOL-6: providers take nothing else."""
    assert list(refused(made, input=tp)) == ["search.input"]


def test_the_output_is_any_type_and_has_to_be_said():
    """A-TOOL-6."""
    for tp in (int, list[str], Found | None, type(None), object, Literal["a"]):
        assert made(output=tp).output is not None
    assert "object for any JSON" in refused(made, output=None)["search.output"]


def test_what_is_wrong_with_a_function():
    """A-TOOL-6: each parameter by its name."""

    def look(ctx, a, b: set[int], *more: int, **most: int) -> bytes:
        """Look."""
        return b""

    assert set(refused(tool, fn=look)) == {
        f"look.{name}" for name in ("a", "b", "more", "most", "return")
    }

    def bare() -> int:
        return 1

    assert "context" in refused(tool, fn=bare)["bare"]


def test_a_function_needs_words():
    """A-TOOL-6: a model cannot guess what it is for."""

    def look(ctx) -> int:
        return 1

    assert list(refused(tool, fn=look)) == ["look.description"]
    assert tool(look, description="Look.").description == "Look."
    assert list(refused(tool, fn=look, description="")) == ["look.description"]


def test_a_lambda_needs_a_name():
    """A-DEF-2."""
    faults = refused(tool, fn=lambda ctx: 1, description="One.")
    assert "name=" in faults["<lambda>.name"]
    assert tool(lambda ctx: 1, name="one", description="One.").name == "one"


def test_what_yields_is_no_tool():
    """A-TOOL-6: one call has one output."""

    def rows(ctx):
        """Give rows."""
        yield 1

    async def lines(ctx):
        """Give lines."""
        yield 1

    assert "yields" in refused(tool, fn=rows)["rows"]
    assert "yields" in refused(tool, fn=lines)["lines"]


@pytest.mark.parametrize("thing", [7, "text", {"a": 1}])
def test_only_functions_are_made_tools(thing):
    """A-TOOL-1."""
    assert refused(tool, fn=thing)


def test_coroutines_are_known_through_partials_and_objects():
    """A-TOOL-1: what is async runs on the event loop, what is not in a thread."""

    async def look(ctx, more: int = 1) -> int:
        """Look."""
        return 1

    class Looker:
        async def __call__(self, ctx) -> int:
            """Look."""
            return 1

    assert tool(look).is_async
    assert tool(functools.partial(look, more=2), name="look").is_async
    assert tool(Looker()).is_async
    assert not tool(documented).is_async
    assert list(refused(tool, fn=look, inline=True)) == ["look.inline"]


# -------------------------------------------------------------------------------- in an agent


class Base:
    def __init__(self, given: object = None) -> None: ...


class Special(Base): ...


@runtime_checkable
class HasName(Protocol):
    """What a class has cannot be asked of a class without an instance."""

    name: str


def returning(cls: Any) -> Any:
    def build(given):
        return cls()

    build.__annotations__["return"] = cls
    return build


def wanting(cls: type | None) -> Any:
    return made(context=cls)


@pytest.mark.parametrize("build", [returning(Base), Base, None])
def test_a_tool_of_another_context_needs_map_context(build):
    """A-TOOL-4: said at definition where types are known."""
    faults = refused_agent(runtime_context=build, tools={"search": wanting(Special)})
    assert "Special" in faults["tools.search.map_context"]
    mapped = AgentToolConfig(wanting(Special), map_context=lambda given: Special())
    assert define_agent(name="calc", model="demo", runtime_context=build, tools={"search": mapped})


@pytest.mark.parametrize(
    ("build", "wanted"),
    [
        (returning(Special), Base),
        (returning(Base), Base),
        (returning(Base), None),
        (None, None),
        (lambda given: Base(), Special),
        (returning("Nowhere"), Special),
        (returning("list[int]"), Special),
        (returning(Any), Special),
        (returning(object), Special),
        (returning(Base), HasName),
    ],
)
def test_a_tool_of_the_agents_context_needs_none(build, wanted):
    """A-TOOL-4: what is not known by then is found out at the first step."""
    assert define_agent(
        name="calc", model="demo", runtime_context=build, tools={"search": wanting(wanted)}
    )


def test_a_config_is_checked_field_by_field():
    """A-TOOL-2."""
    fields: Any = {"enabled": "yes", "map_context": 1, "on_output": []}
    wrong = AgentToolConfig(made(), **fields)
    assert set(refused_agent(tools={"search": wrong})) == {
        f"tools.search.{field}" for field in ("enabled", "map_context", "on_output")
    }
    wrong = AgentToolConfig(made(), enabled=None)  # type: ignore[arg-type]
    assert list(refused_agent(tools={"search": wrong})) == ["tools.search.enabled"]
    wrong = AgentToolConfig(search)  # type: ignore[arg-type]
    assert "decorate" in refused_agent(tools={"search": wrong})["tools.search.tool"]
    assert "decorate" in refused_agent(tools={"search": search})["tools.search"]


def test_tools_keep_their_order_and_take_the_name_of_their_key():
    """A-TOOL-2, A-DEF-2: one tool may stand there twice."""
    agent = define_agent(
        name="calc", model="demo", tools={"b": made(), "a": AgentToolConfig(made(), enabled=False)}
    )
    assert [spec.name for spec in agent.specs] == ["b", "a"]
    assert agent.tools["a"].enabled is False
    assert agent.tools["b"].enabled is True


# -------------------------------------------------------------------------------- provider tools


def test_provider_tools_are_kept_word_for_word():
    """A-TOOL-7: a separate map, in the contract too."""
    hosted = ProviderTool("openai", "web_search", {"filters": {"allowed_domains": ["a.org"]}})
    agent = define_agent(name="calc", model="demo", provider_tools={"web_search": hosted})
    assert agent.provider_tools["web_search"] is hosted
    assert agent.specs == ()
    assert agent.contract["providerTools"] == {
        "web_search": {
            "provider": "openai",
            "options": {"filters": {"allowed_domains": ["a.org"]}},
        }
    }


def test_what_is_wrong_with_provider_tools():
    """A-TOOL-7."""
    faults = refused_agent(
        provider_tools={
            "raw": {"type": "web_search"},
            "": ProviderTool("openai", "x"),
            "empty": ProviderTool("", ""),
            "odd": ProviderTool("openai", "x", {"a": {1}}),  # type: ignore[dict-item]
        }
    )
    assert set(faults) == {
        "provider_tools.raw",
        "provider_tools.",
        "provider_tools.empty.provider",
        "provider_tools.empty.name",
        "provider_tools.odd.options.a",
    }
