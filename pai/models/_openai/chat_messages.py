"""A message as the chat completions API wants it: often several of its messages."""

from __future__ import annotations

import base64
import binascii

from pai.models._openai.encode import data_url, dump, joined
from pai.models._openai.endpoint import PROVIDER
from pai.models._openai.outputs import arguments_of, outcome_of
from pai.protocol import (
    FilePart,
    Message,
    OutputPart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCallPart,
)
from pai.schema import JsonObject, JsonValue

__all__ = ("encode_message", "encode_system")

_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
_TEXT = ("text/", "application/json", "application/xml", "application/yaml")


def encode_system(message: SystemMessage) -> bytes:
    return dump(
        {
            "role": "system",
            "content": message.content,
            **message.provider_options.get(PROVIDER, {}),
        }
    )


def encode_message(message: Message, *, reasoning: bool) -> bytes:
    """
    The wire's messages, joined by commas; empty for a message with nothing to say.

    Args:
        message: A user's or an assistant's message.
        reasoning: Give compatible servers their reasoning back beside the calls it led to.
    """
    if message.role == "user":
        content = [item for part in message.parts if (item := _content(part)) is not None]
        if not content:
            return b""
        if len(content) == 1 and content[0]["type"] == "text":
            return dump({"role": "user", "content": content[0]["text"]})
        return dump({"role": "user", "content": content})
    return _Assistant(message, reasoning=reasoning).encode()


def _content(part: object) -> JsonObject | None:
    if isinstance(part, TextPart):
        return {"type": "text", "text": part.text} if part.text else None
    return _file(part) if isinstance(part, FilePart) else None


def _file(part: FilePart) -> JsonObject:
    kind, data = part.media_type, part.data
    if kind.startswith("image/"):
        url = part.url if data is None else data_url(kind, data)
        return {"type": "image_url", "image_url": {"url": url}}
    if data is None:
        # This API takes no address of anything but an image.
        return {"type": "text", "text": f"{part.filename or 'File'} ({kind}): {part.url}"}
    if kind in _AUDIO:
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO[kind]}}
    if kind.startswith(_TEXT):
        text = _decoded(data)
        if text is not None:
            name = f"{part.filename}:\n" if part.filename else ""
            return {"type": "text", "text": name + text}
    name = part.filename or "file"
    return {"type": "file", "file": {"filename": name, "file_data": data_url(kind, data)}}


def _decoded(data: str) -> str | None:
    try:
        return base64.b64decode(data).decode()
    except (binascii.Error, ValueError):
        return None


class _Assistant:
    """Gathers text and calls; text after a call begins a new message, after the call's result."""

    def __init__(self, message: Message, *, reasoning: bool) -> None:
        self._message = message
        self._reasoning = reasoning
        self._out: list[bytes] = []
        self._text: list[str] = []
        self._calls: list[ToolCallPart] = []
        self._thought: dict[str, str] = {}

    def encode(self) -> bytes:
        for part in self._message.parts:
            if isinstance(part, TextPart):
                if self._calls and part.text:
                    self._flush()
                self._text.append(part.text)
            elif isinstance(part, ToolCallPart):
                # What the provider ran itself has no form here.
                if not part.provider_executed:
                    self._calls.append(part)
            elif isinstance(part, ReasoningPart) and self._reasoning:
                self._think(part)
            elif isinstance(part, OutputPart) and not part.in_text:
                # It is the last part, behind all calls.
                self._flush()
                self._text.append(dump(part.value).decode())
        self._flush()
        return joined(self._out)

    def _think(self, part: ReasoningPart) -> None:
        ours = (part.provider_data or {}).get(PROVIDER)
        field = ours.get("field") if isinstance(ours, dict) else None
        if isinstance(field, str):
            self._thought[field] = self._thought.get(field, "") + part.text

    def _flush(self) -> None:
        text, calls = "".join(self._text), self._calls
        self._text, self._calls = [], []
        if not text and not calls:
            return
        wire: JsonObject = {"role": "assistant", "content": text or None}
        if calls:
            wire |= self._thought
            self._thought = {}
            wire["tool_calls"] = [
                {
                    "id": call.call_id,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": arguments_of(call)},
                }
                for call in calls
            ]
        self._out.append(dump(wire))
        files: list[JsonValue] = []
        for call in calls:
            told, found = outcome_of(call)
            if found:
                told = told or "The files follow."
                files.append({"type": "text", "text": f"Files from {call.tool} ({call.call_id}):"})
                files.extend(_file(file) for file in found)
            wire = {"role": "tool", "tool_call_id": call.call_id, "content": told}
            self._out.append(dump(wire))
        if files:
            # A tool's message takes text alone, and results must follow their calls at once.
            self._out.append(dump({"role": "user", "content": files}))
