"""Manifest and contract: what an agent is, for those outside (A-MAN)."""

from __future__ import annotations

import json
from typing import Any

import attrs
import jsonschema_rs

from pai import (
    AgentToolConfig,
    MetadataSchemas,
    ProviderTool,
    define_agent,
    define_capability,
    define_command,
    tool,
)
from pai.schema import check_json


@attrs.frozen
class User:
    secret_identity: str


@attrs.frozen
class Page:
    url: str = "/"


@attrs.frozen
class Hidden:
    hidden_note: str = ""


@attrs.frozen
class Shown:
    rating: int = 0


@attrs.frozen
class Progress:
    percent: int


@tool(data=Progress, capabilities={"db": define_capability("db", dict)})
def add(ctx, a: int, b: int) -> int:
    """Add two integers."""
    return a + b


def command(name: str, **more: Any) -> Any:
    return define_command(
        name=name,
        description=f"To {name}.",
        input=Shown,
        output=Shown,
        execute=lambda ctx, given: given,
        **more,
    )


BAGS = MetadataSchemas(private=Hidden, public=Shown)
AGENT = define_agent(
    name="calc",
    version="1.2.3",
    model="demo",
    identity=User,
    client_data=Page,
    run_metadata=BAGS,
    thread_metadata=BAGS,
    message_metadata=BAGS,
    ui_data={"report-progress": Progress},
    runtime_context=lambda given: {"password": "planted"},
    tools={"add": add, "off": AgentToolConfig(add, enabled=False)},
    provider_tools={"web_search": ProviderTool("openai", "web_search", {"key": "planted"})},
    commands={"rate": command("rate", exposed=True), "purge": command("purge")},
)


def schemas_in(value: Any):
    if isinstance(value, dict):
        if {"type", "$ref", "anyOf", "properties"} & value.keys():
            yield value
        else:
            for item in value.values():
                yield from schemas_in(item)


def test_the_manifest_lists_tools_and_exposed_commands():
    """A-MAN-1, A-TOOL-3: by registration name; a disabled tool is listed too."""
    assert AGENT.manifest == {
        "name": "calc",
        "version": "1.2.3",
        "tools": {
            "add": {"description": "Add two integers."},
            "off": {"description": "Add two integers."},
        },
        "providerTools": {"web_search": {"provider": "openai"}},
        "commands": {"rate": {"description": "To rate."}},
    }


def test_the_manifest_is_plain_json_without_schema_or_secret():
    """A-MAN-1."""
    assert json.loads(json.dumps(AGENT.manifest)) == AGENT.manifest
    assert "planted" not in json.dumps(AGENT.manifest)
    assert list(schemas_in(AGENT.manifest)) == []


def test_the_contract_is_the_registered_form():
    """A-MAN-2: everything, as JSON Schema that is valid."""
    contract: Any = AGENT.contract
    assert check_json(contract) == ()
    assert (contract["name"], contract["version"]) == ("calc", "1.2.3")
    assert set(contract["tools"]) == {"add", "off"}
    assert set(contract["tools"]["add"]["input"]["properties"]) == {"a", "b"}
    assert contract["tools"]["add"]["output"] == {"type": "integer"}
    assert contract["tools"]["add"]["data"]["properties"]["percent"] == {"type": "integer"}
    assert {name: item["exposed"] for name, item in contract["commands"].items()} == {
        "rate": True,
        "purge": False,
    }
    assert set(contract["uiData"]) == {"report-progress"}
    for key in ("runMetadata", "threadMetadata", "messageMetadata"):
        assert set(contract[key]) == {"private", "public"}
    found = list(schemas_in(contract))
    assert len(found) == 19
    for schema in found:
        jsonschema_rs.meta.validate(
            {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}
        )


def test_the_public_contract_has_nothing_of_the_servers():
    """A-MAN-2, A-META-6: no server-only command, no private shape; data parts are in it."""
    public: Any = AGENT.public_contract
    assert set(public["commands"]) == {"rate"}
    assert set(public["uiData"]) == {"report-progress"}
    assert public["runMetadata"]["public"]["properties"]["rating"]["type"] == "integer"
    text = json.dumps(public)
    for word in ("hidden_note", "secret_identity", "purge"):
        assert word in json.dumps(AGENT.contract)
        assert word not in text


def test_an_agent_with_little_has_a_contract_too():
    """A-MAN-2."""
    agent = define_agent(name="calc", model="demo")
    assert agent.public_contract["tools"] == {}
    assert agent.contract["runMetadata"] is None
    assert agent.manifest["commands"] == {}


def test_what_a_caller_does_with_a_contract_stays_with_the_caller():
    """A-DEF-1: the schemas themselves cannot be reached through it."""
    agent = define_agent(name="calc", model="demo", tools={"add": add})
    contract: Any = agent.contract
    contract["tools"]["add"]["input"]["properties"].clear()
    assert add.input.json_schema["properties"]
