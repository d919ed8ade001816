"""What a model is told of a call that has ended."""

from __future__ import annotations

from pai.models._openai.encode import dump
from pai.protocol import FilePart, ToolCallPart
from pai.schema import JsonObject, JsonValue

__all__ = ("arguments_of", "outcome_of")


def arguments_of(part: ToolCallPart) -> str:
    """The input as JSON text of an object; servers refuse a history with anything else."""
    if isinstance(part.input, dict):
        return dump(part.input).decode()
    return "{}" if part.input is None else dump({"input": part.input}).decode()


def outcome_of(part: ToolCallPart) -> tuple[str, list[FilePart]]:
    """The text that tells how the call ended, and the files of its output."""
    if part.outcome is None:
        # History is repaired before it comes here; a request without a result would be refused.
        return "Error: the call was interrupted", []
    if part.outcome not in {"completed", "skipped"}:
        return f"Error: {part.error or f'the call was {part.outcome}'}", []
    return _output(part.output)


def _output(output: JsonValue) -> tuple[str, list[FilePart]]:
    if isinstance(output, str):
        return output, []
    items = output if isinstance(output, list) else [output]
    files = [file for item in items if (file := _file(item)) is not None]
    if not files:
        return dump(output).decode(), []
    rest = [_text(item) for item in items if _file(item) is None]
    return "\n".join(rest), files


def _text(item: JsonValue) -> str:
    if isinstance(item, dict) and item.get("type") == "text" and isinstance(item.get("text"), str):
        return str(item["text"])
    return item if isinstance(item, str) else dump(item).decode()


def _file(item: JsonValue) -> FilePart | None:
    """``{"type": "file", "mediaType": ..., "data" or "url": ...}`` as a part."""
    if not isinstance(item, dict) or item.get("type") != "file":
        return None
    kind, url, data, name = (_word(item, key) for key in ("mediaType", "url", "data", "filename"))
    if kind is None or (url is None) == (data is None):
        return None
    return FilePart(kind, url, data, name)


def _word(item: JsonObject, key: str) -> str | None:
    value = item.get(key)
    return value if isinstance(value, str) else None
