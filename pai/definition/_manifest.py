"""Manifest and contract: what an agent is, as JSON (A-MAN)."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from pai.definition._commands import CommandDefinition
from pai.definition._metadata import MetadataSchemas
from pai.definition._tools import ToolDefinition
from pai.protocol import ProviderTool
from pai.schema import JsonObject, Schema, ValueSchema, compile_schema

__all__ = ("contract", "manifest", "public_contract")


def manifest(
    name: str,
    version: str,
    tools: Mapping[str, ToolDefinition[Any]],
    provider_tools: Mapping[str, ProviderTool],
    commands: Mapping[str, CommandDefinition[Any]],
) -> JsonObject:
    """Name, version, every tool, and the commands clients may call: no schema, no handle (A-MAN-1)."""
    return {
        "name": name,
        "version": version,
        "tools": {key: {"description": item.description} for key, item in tools.items()},
        "providerTools": {key: {"provider": item.provider} for key, item in provider_tools.items()},
        "commands": {
            key: {"description": item.description} for key, item in commands.items() if item.exposed
        },
    }


def _shape(schema: ValueSchema | Schema[object] | None) -> JsonObject | None:
    # A copy: what callers do with a contract is their business, the schema's own is not.
    return None if schema is None else deepcopy(schema.json_schema)


def _bags(schemas: MetadataSchemas[Any, Any] | None) -> JsonObject | None:
    if schemas is None:
        return None
    return {
        "private": _shape(compile_schema(schemas.private)),
        "public": _shape(compile_schema(schemas.public)),
    }


def contract(
    name: str,
    version: str,
    *,
    identity: Schema[object] | None,
    client_data: Schema[object] | None,
    tools: Mapping[str, ToolDefinition[Any]],
    provider_tools: Mapping[str, ProviderTool],
    commands: Mapping[str, CommandDefinition[Any]],
    ui_data: Mapping[str, Schema[object]],
    outputs: Mapping[str, ValueSchema],
    run_metadata: MetadataSchemas[Any, Any] | None,
    thread_metadata: MetadataSchemas[Any, Any] | None,
    message_metadata: MetadataSchemas[Any, Any] | None,
) -> JsonObject:
    """The registered form, with all shapes as JSON Schema (A-MAN-2)."""
    return {
        "name": name,
        "version": version,
        "identity": _shape(identity),
        "clientData": _shape(client_data),
        "tools": {
            key: {
                "description": item.description,
                "input": _shape(item.input),
                "output": _shape(item.output),
                "data": _shape(item.data),
            }
            for key, item in tools.items()
        },
        "providerTools": {
            key: {"provider": item.provider, "options": deepcopy(item.options)}
            for key, item in provider_tools.items()
        },
        "commands": {
            key: {
                "description": item.description,
                "input": _shape(item.input),
                "output": _shape(item.output),
                "exposed": item.exposed,
            }
            for key, item in commands.items()
        },
        "uiData": {key: _shape(item) for key, item in ui_data.items()},
        "outputs": {key: _shape(item) for key, item in outputs.items()},
        "runMetadata": _bags(run_metadata),
        "threadMetadata": _bags(thread_metadata),
        "messageMetadata": _bags(message_metadata),
    }


def public_contract(whole: JsonObject) -> JsonObject:
    """The contract without server-only commands, identity and private metadata (A-MAN-2)."""
    out = {key: item for key, item in whole.items() if key != "identity"}
    commands = whole["commands"]
    if isinstance(commands, dict):
        out["commands"] = {
            key: {field: value for field, value in item.items() if field != "exposed"}
            for key, item in commands.items()
            if isinstance(item, dict) and item["exposed"]
        }
    for key in ("runMetadata", "threadMetadata", "messageMetadata"):
        bags = whole[key]
        out[key] = {"public": bags["public"]} if isinstance(bags, dict) else None
    return out
