"""Manifest and contract: what an agent is, as JSON (A-MAN)."""

from __future__ import annotations

from collections.abc import Mapping
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
        "tools": [{"name": key, "description": item.description} for key, item in tools.items()],
        "providerTools": [
            {"name": key, "provider": item.provider} for key, item in provider_tools.items()
        ],
        "commands": [
            {"name": key, "description": item.description}
            for key, item in commands.items()
            if item.exposed
        ],
    }


def _shape(schema: ValueSchema | Schema[object] | None) -> JsonObject | None:
    return None if schema is None else schema.json_schema


def _type(tp: object) -> JsonObject | None:
    return None if tp is None else compile_schema(tp).json_schema


def _bags(schemas: MetadataSchemas[Any, Any] | None) -> JsonObject | None:
    if schemas is None:
        return None
    return {"private": _type(schemas.private), "public": _type(schemas.public)}


def contract(
    name: str,
    version: str,
    *,
    identity: object,
    client_data: object,
    tools: Mapping[str, ToolDefinition[Any]],
    provider_tools: Mapping[str, ProviderTool],
    commands: Mapping[str, CommandDefinition[Any]],
    ui_data: Mapping[str, object],
    run_metadata: MetadataSchemas[Any, Any] | None,
    thread_metadata: MetadataSchemas[Any, Any] | None,
    message_metadata: MetadataSchemas[Any, Any] | None,
) -> JsonObject:
    """The registered form, with all shapes as JSON Schema (A-MAN-2)."""
    return {
        "name": name,
        "version": version,
        "identity": _type(identity),
        "clientData": _type(client_data),
        "tools": {
            key: {
                "description": item.description,
                "input": item.input.json_schema,
                "output": _shape(item.output),
                "data": _shape(item.data),
            }
            for key, item in tools.items()
        },
        "providerTools": {
            key: {"provider": item.provider, "options": item.options}
            for key, item in provider_tools.items()
        },
        "commands": {
            key: {
                "description": item.description,
                "input": item.input.json_schema,
                "output": _shape(item.output),
                "exposed": item.exposed,
            }
            for key, item in commands.items()
        },
        "uiData": {key: _type(item) for key, item in ui_data.items()},
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
