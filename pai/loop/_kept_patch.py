"""What ``prepare_run`` decided, as it is kept for a takeover (A-DEF-8)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from pai.contexts import RunPatch
from pai.definition import MetadataPatch, RunOptions, run_options
from pai.errors import InvalidInput
from pai.protocol import Message, Metadata, SystemMessage, part_from_json, part_to_json
from pai.schema import JsonObject, check_json

__all__ = ("patch_from_json", "patch_to_json")

_AS_OPTIONS: Final = frozenset(
    {
        "model", "model_settings", "provider_options", "max_steps", "stop_when", "tool_choice",
        "prompt_cache",
    }
)  # fmt: skip
"""Fields that options of a run have, too: their JSON is the same."""


def patch_to_json(patch: RunPatch | None) -> JsonObject | None:
    """
    The patch as JSON; ``None`` if it holds an object that has no such form.

    Metadata of the run and the thread is committed already.
    """
    if patch is None:
        return {}
    options: dict[str, Any] = {}
    out: JsonObject = {}
    for name, value in patch.changes.items():
        if name in _AS_OPTIONS:
            options[name] = value
        elif name in _FORMS:
            out[name] = _FORMS[name][0](value)
        elif name not in ("run_metadata", "thread_metadata"):
            return None
    if options:
        try:
            out["options"] = RunOptions(**options).to_json()
        except InvalidInput:
            return None  # a driver, or a function
    return None if check_json(out) else out


def patch_from_json(value: JsonObject) -> RunPatch | None:
    """What :func:`patch_to_json` made; ``None`` if nothing was decided."""
    fields: dict[str, Any] = {
        name: _FORMS[name][1](item) for name, item in value.items() if name in _FORMS
    }
    if "options" in value:
        options = run_options(value["options"])
        for name in _AS_OPTIONS:
            given = getattr(options, name)
            if given is not None:
                fields[name] = given
    return RunPatch(**fields) if fields else None


def _instructions_to_json(value: Any) -> Any:
    if isinstance(value, str):
        return value
    items = (value,) if isinstance(value, SystemMessage) else value
    return [
        {"content": item.content, "providerOptions": dict(item.provider_options)} for item in items
    ]


def _instructions_from_json(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return [SystemMessage(item["content"], item["providerOptions"]) for item in value]


def _message_to_json(message: Message) -> JsonObject:
    return {
        "id": message.id,
        "role": message.role,
        "parts": [part_to_json(part) for part in message.parts],
        "runId": message.run_id,
        "createdAt": message.created_at.isoformat(),
        "private": dict(message.metadata.private),  # type: ignore[arg-type]  # checked JSON
        "public": message.metadata.shown(),
    }


def _message_from_json(value: Any) -> Message:
    return Message(
        value["id"],
        value["role"],
        tuple([part_from_json(part) for part in value["parts"]]),
        value["runId"],
        datetime.fromisoformat(value["createdAt"]),
        Metadata(value["private"], value["public"]),
    )


def _as_it_is(value: Any) -> Any:
    return value


_Both = tuple[Callable[[Any], Any], Callable[[Any], Any]]
_FORMS: Final[dict[str, _Both]] = {
    "instructions": (_instructions_to_json, _instructions_from_json),
    "messages": (
        lambda value: [_message_to_json(item) for item in value],
        lambda value: [_message_from_json(item) for item in value],
    ),
    "tools": (list, list),
    "provider_tools": (list, list),
    "output": (_as_it_is, _as_it_is),
    "message_metadata": (
        lambda value: {"private": value.private, "public": value.public},
        lambda value: MetadataPatch(value["private"], value["public"]),
    ),
}
"""The other fields: to JSON and back."""
