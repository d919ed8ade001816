"""Defining an agent: its fields, its names, all faults at once (A-DEF)."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections import UserDict
from typing import Any, Literal

import attrs
import pytest

from pai import (
    AgentToolConfig,
    DefinitionError,
    MetadataSchemas,
    ModelSelection,
    ModelSettings,
    ProviderTool,
    SystemMessage,
    ToolContext,
    UnknownOptionError,
    define_agent,
    define_command,
    hookimpl,
    tool,
)

from .refusals import refused_agent


@attrs.frozen
class User:
    user_id: str
    workspace_id: str = "w1"


@attrs.frozen
class Page:
    url: str


@attrs.frozen
class Bag:
    note: str = ""


@attrs.frozen
class Ctx:
    user: str


def build(given) -> Ctx:
    return Ctx(given.identity.user_id)


@tool
def add(ctx: ToolContext[object], a: int, b: int) -> int:
    """Add two integers."""
    return a + b


rate = define_command(
    name="rate",
    description="Rate an answer.",
    input=Bag,
    output=Bag,
    execute=lambda ctx, given: given,
)


class Quiet:
    @hookimpl
    def prepare_run(self, run):
        return None


def test_all_fields_are_taken():
    """A-DEF-2: every field that does something already, as its page writes it."""
    bags = MetadataSchemas(private=Bag, public=Bag)
    agent = define_agent(
        name="calc",
        model=ModelSelection(
            "openai:gpt-5.2", model_settings=ModelSettings(temperature=0.2), provider_options={}
        ),
        instructions=[SystemMessage("Be brief.", provider_options={"openai": {"x": 1}})],
        version="1.4.0",
        identity=User,
        client_data=Page,
        run_metadata=bags,
        thread_metadata=MetadataSchemas(private=Bag, public=Bag),
        message_metadata=MetadataSchemas(private=Bag, public=Bag),
        ui_data={"report-progress": Page},
        runtime_context=build,
        tools={"add": add, "sum": AgentToolConfig(add, enabled=False)},
        provider_tools={"web_search": ProviderTool("openai", "web_search", {"filters": None})},
        commands={"rate": rate},
        lifecycle=Quiet(),
        max_steps=3,
    )
    assert (agent.name, agent.version, agent.max_steps) == ("calc", "1.4.0", 3)
    assert list(agent.tools) == ["add", "sum"]
    assert agent.run_metadata is bags


def test_what_is_left_out_has_a_default():
    """A-DEF-1, A-DEF-2."""
    agent = define_agent(name="calc", model="demo")
    assert (agent.version, agent.max_steps, agent.instructions) == ("0.0.0", 10, "")
    assert dict(agent.capabilities) == {}


def test_a_definition_is_frozen():
    """A-DEF-1."""
    agent: Any = define_agent(name="calc", model="demo", tools={"add": add})
    for field in ("name", "version", "tools", "max_steps"):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(agent, field, None)
    for mapping in ("tools", "commands", "capabilities", "ui_data", "provider_tools"):
        with pytest.raises(TypeError):
            getattr(agent, mapping)["new"] = None


def test_what_the_caller_changes_later_changes_nothing():
    """A-DEF-1."""
    tools = {"add": add}
    agent = define_agent(name="calc", model="demo", tools=tools)
    del tools["add"]
    assert list(agent.tools) == ["add"]


def test_mappings_of_any_kind_are_taken():
    """A-DEF-2."""
    agent = define_agent(name="calc", model="demo", tools=UserDict({"add": add}))
    assert list(agent.tools) == ["add"]


PURE = """
import socket, sys, threading

def refuse(*args, **more):
    raise AssertionError("a definition opened something")

# In this process alone: nothing else runs in it.
socket.socket.__init__ = socket.socket.connect = refuse
sys.addaudithook(lambda event, args: refuse() if event in ("sqlite3.connect", "socket.bind",
    "subprocess.Popen") or event == "open" and "w" in str(args[1]) else None)

from pai import define_agent, hookimpl, tool

class Plugin:
    @hookimpl
    def prepare_run(self, run): ...

@tool
def add(ctx, a: int, b: int) -> int:
    "Add."
    return a + b

agent = define_agent(name="calc", model="openai:gpt-5.2", tools={"add": add}, lifecycle=Plugin())
agent.manifest, agent.contract, agent.public_contract
assert threading.enumerate() == [threading.main_thread()], threading.enumerate()
names = "anyio openai sqlalchemy starlette pydantic stevedore jsonschema_rs hypothesis alembic"
print([name for name in names.split() if name in sys.modules])
"""


def test_defining_opens_and_starts_nothing():
    """A-DEF-1: no file for writing, socket, database, process or thread; nothing heavy is loaded."""
    made = subprocess.run(
        [sys.executable, "-B", "-c", PURE], capture_output=True, text=True, timeout=60, check=False
    )
    assert (made.stdout, made.stderr) == ("[]\n", "")


# -------------------------------------------------------------------------------- names


@pytest.mark.parametrize("name", ["calc", "A", "a.b-c_d", "x" * 64])
def test_names_of_agents(name):
    """A-DEF-2."""
    assert define_agent(name=name, model="demo").name == name


@pytest.mark.parametrize("name", ["", "1calc", "not a name", "-a", "x" * 65, "ä", "a\n", 7, None])
def test_a_bad_name_is_refused_and_shown(name):
    """A-DEF-2: the error names the agent, the field and what was wrong."""
    with pytest.raises(DefinitionError) as caught:
        define_agent(name=name, model="demo")
    assert [fault.path for fault in caught.value.faults] == ["name"]
    assert str(caught.value).startswith(f"agent {name!r}: name: bad name {name!r}")


@pytest.mark.parametrize("name", ["", "a b", "a.b", "x" * 65, "ä", 7])
def test_a_tool_is_registered_under_a_name_that_providers_take(name):
    """A-DEF-2."""
    assert "bad tool name" in refused_agent(tools={name: add})[f"tools.{name}"]


def test_names_of_commands_and_data_parts():
    """A-DEF-2."""
    faults = refused_agent(commands={"a b": rate}, ui_data={"1": Bag})
    assert set(faults) == {"commands.a b", "ui_data.1"}


def test_two_tools_of_one_name():
    """A-DEF-2: a tool of ours and one of the provider's are told apart by their names alone."""
    hosted = {"add": ProviderTool("openai", "add")}
    faults = refused_agent(tools={"add": add}, provider_tools=hosted)
    assert faults == {"provider_tools.add": "a tool has this name already"}


# -------------------------------------------------------------------------------- all at once


def test_twelve_faults_are_one_error_with_twelve_paths():
    """A-DEF-2."""
    other = MetadataSchemas(private=Bag, public=Bag)
    bound = define_command(
        name="rate",
        description="Rate.",
        input=Bag,
        output=Bag,
        execute=lambda ctx, given: given,
        run_metadata=other,
    )
    faults = refused_agent(
        name="not a name",
        version="",
        model="gpt",
        instructions=[SystemMessage("a"), "b"],
        max_steps=0,
        identity=dataclasses.make_dataclass("Old", []),
        run_metadata=MetadataSchemas(private=Page, public=Bag),
        ui_data={"chart": set[int]},
        runtime_context=lambda: None,
        tools={"add": add, "no tool": add, "raw": len},
        commands={"rate": bound},
        thread_titles="yes",
        midleware=[],
    )
    assert set(faults) == {
        "name",
        "version",
        "model",
        "instructions[1]",
        "max_steps",
        "identity",
        "run_metadata.private.url",
        "ui_data.chart",
        "runtime_context",
        "tools.no tool",
        "tools.raw",
        "commands.rate.run_metadata",
        "thread_titles",
        "midleware",
    }


@pytest.mark.parametrize("steps", [0, -1, 1.5, "3", True, None])
def test_max_steps_is_a_whole_number_of_at_least_one(steps):
    """A-DEF-2."""
    assert set(refused_agent(max_steps=steps)) == {"max_steps"}


@pytest.mark.parametrize("field", ["tools", "provider_tools", "commands", "ui_data"])
def test_what_is_registered_by_name_is_a_mapping(field):
    """A-DEF-2."""
    assert "mapping" in refused_agent(**{field: [add]})[field]
    assert set(refused_agent(**{field: {"x": object()}})) == {f"{field}.x"}
    assert set(refused_agent(**{field: {"x": None}})) == {f"{field}.x"}


@pytest.mark.parametrize(
    ("builder", "words"),
    [
        (lambda: None, "one argument"),
        (lambda a, b: None, "one argument"),
        (lambda *, given: None, "one argument"),
        ("text", "expected a function"),
    ],
)
def test_functions_of_an_agent_take_one_argument(builder, words):
    """A-CTX-1, A-MODEL-1, A-INSTR-1."""
    assert words in refused_agent(runtime_context=builder)["runtime_context"]
    if callable(builder):
        assert words in refused_agent(model=builder)["model"]
        assert words in refused_agent(instructions=builder)["instructions"]
        for field in ("enabled", "map_context", "on_output"):
            config = AgentToolConfig(add, **{"map_context": lambda given: 1, field: builder})
            faults = refused_agent(tools={"add": config})
            assert words in faults[f"tools.add.{field}"]


def test_functions_may_be_methods_partials_and_take_more_with_defaults():
    """A-CTX-1."""

    class Builder:
        def build(self, given):
            return None

        def __call__(self, given, more=1):
            return None

    builders: list[Any] = [Builder().build, Builder(), lambda *given: None, Ctx]
    for builder in builders:
        assert define_agent(name="calc", model="demo", runtime_context=builder)


# -------------------------------------------------------------------------------- strangers


def test_a_zero_is_not_nothing():
    """A-DEF-2."""
    assert set(refused_agent(max_parallel_tools=0)) == {"max_parallel_tools"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("subagents", None),
        ("thread_titles", False),
        ("reasoning_summary", False),
    ],
)
def test_to_ask_for_what_is_done_anyway_is_fine(field, value):
    """A-DEF-2."""
    assert define_agent(name="calc", model="demo", **{field: value})


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("instuctions", "no field"),
        ("middleware", "lifecycle plugin"),  # A-DEF-6
        ("input_processors", "prepare_model_step"),  # A-DEF-6
        ("output_processors", "transform_step_stream"),  # A-DEF-6
        ("telemetry", "create_pai"),  # A-DEF-5
    ],
)
def test_an_unknown_field_is_refused_by_its_name(field, words):
    """A-DEF-2, A-DEF-5, A-DEF-6."""
    faults = refused_agent(UnknownOptionError, **{field: None})
    assert words in faults[field]
    with pytest.raises(TypeError, match="agent 'calc'"):
        define_agent(name="calc", model="demo", **{field: 1})  # type: ignore[call-overload]


# -------------------------------------------------------------------------------- schemas


class NotOurs:
    """As schemas of other libraries look."""

    @classmethod
    def model_json_schema(cls):
        return {"type": "object"}


@pytest.mark.parametrize(
    "schema", [Bag, Literal["a", "b"], dict[str, str], Bag | int, list[int], str]
)
def test_attrs_classes_and_plain_types_are_schemas(schema):
    """A-DEF-3."""
    agent = define_agent(
        name="calc", model="demo", identity=schema, client_data=schema, ui_data={"x": schema}
    )
    assert agent.identity is not None
    assert agent.identity.type == schema


@pytest.mark.parametrize(
    "schema", [NotOurs, dataclasses.make_dataclass("Old", ["a"]), {"type": "object"}, set[int]]
)
def test_no_other_schema_library_is_taken(schema):
    """A-DEF-3."""
    faults = refused_agent(identity=schema, client_data=schema, ui_data={"x": schema})
    assert set(faults) == {"identity", "client_data", "ui_data.x"}
