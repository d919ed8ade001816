"""A message as the Responses API wants it: a list of items."""

from __future__ import annotations

from pai.models._openai.encode import data_url, dump, joined
from pai.models._openai.endpoint import PROVIDER
from pai.models._openai.hosted import describe
from pai.models._openai.outputs import arguments_of, outcome_of
from pai.protocol import (
    FilePart,
    Message,
    MessagePart,
    OutputPart,
    ReasoningPart,
    SystemMessage,
    TextPart,
    ToolCallPart,
)
from pai.schema import JsonObject, JsonValue

__all__ = ("encode_message", "encode_system")


def encode_system(message: SystemMessage) -> bytes:
    return dump(
        {
            "role": "system",
            "content": message.content,
            **message.provider_options.get(PROVIDER, {}),
        }
    )


def encode_message(message: Message, *, origin: str) -> bytes:
    """
    The wire's items, joined by commas; empty for a message with nothing to say.

    Args:
        message: A user's or an assistant's message.
        origin: The host asked; what another one wants back is not for this one.
    """
    if message.role == "user":
        content = [item for part in message.parts if (item := _content(part)) is not None]
        if not content:
            return b""
        if len(content) == 1 and content[0]["type"] == "input_text":
            return dump({"role": "user", "content": content[0]["text"]})
        return dump({"role": "user", "content": content})
    return _Assistant(message, origin).encode()


def _content(part: MessagePart) -> JsonObject | None:
    if isinstance(part, TextPart):
        return {"type": "input_text", "text": part.text} if part.text else None
    return _file(part) if isinstance(part, FilePart) else None


def _file(part: FilePart) -> JsonObject:
    kind, data = part.media_type, part.data
    if kind.startswith("image/"):
        url = part.url if data is None else data_url(kind, data)
        return {"type": "input_image", "image_url": url}
    named: JsonObject = {"filename": part.filename} if part.filename else {}
    if data is None:
        return {"type": "input_file", "file_url": part.url, **named}
    return {"type": "input_file", "filename": "file", **named, "file_data": data_url(kind, data)}


class _Assistant:
    """
    Gathers items; the outputs of calls follow all calls, but come before any later text.

    An item's id goes back only together with the reasoning that it came from: the service refuses
    an item that it knows to follow a reasoning which is not there.
    """

    def __init__(self, message: Message, origin: str) -> None:
        self._message = message
        self._origin = origin
        self._out: list[bytes] = []
        self._outputs: list[bytes] = []
        self._waiting: list[JsonObject] = []
        self._thoughts: set[str] = set()
        self._text: JsonObject | None = None
        self._text_id: str | None = None
        answered = [
            item.get("call_id")
            for part in message.parts
            if isinstance(item := self._ours(part).get("item"), dict)
            and str(item.get("type")).endswith("_output")
        ]
        self._answered = {each for each in answered if isinstance(each, str)}

    def encode(self) -> bytes:
        for part in self._message.parts:
            if isinstance(part, TextPart):
                self._say(part)
            elif isinstance(part, ToolCallPart):
                if part.provider_executed:
                    self._hosted(part)
                else:
                    self._call(part)
            elif isinstance(part, ReasoningPart):
                self._think(part)
            elif isinstance(part, OutputPart) and not part.in_text:
                self._say(TextPart(dump(part.value).decode()))
        self._end_text()
        return joined([*self._out, *self._outputs])

    def _ours(self, part: MessagePart) -> JsonObject:
        """What the part's provider wants back, if that was this one."""
        data = getattr(part, "provider_data", None)
        ours = data.get(PROVIDER) if isinstance(data, dict) else None
        return ours if isinstance(ours, dict) and ours.get("origin") == self._origin else {}

    def _add(self, item: JsonObject) -> None:
        # A reasoning with nothing behind it would be refused, so each waits for what follows it.
        self._out += [dump(thought) for thought in self._waiting]
        self._waiting = []
        self._out.append(dump(item))

    def _id(self, ours: JsonObject) -> JsonObject:
        after = ours.get("after")
        known = after is None or after in self._thoughts
        return {"id": ours["id"]} if known and isinstance(ours.get("id"), str) else {}

    def _say(self, part: TextPart) -> None:
        if not part.text:
            return
        ours = self._ours(part)
        if self._outputs:
            self._end_text()
            self._out += self._outputs
            self._outputs = []
        item_id = ours.get("id")
        content: JsonObject = (
            {"type": "refusal", "refusal": part.text}
            if ours.get("refusal")
            else {"type": "output_text", "text": part.text, "annotations": []}
        )
        if self._text is not None and item_id is not None and item_id == self._text_id:
            # One item of several contents.
            self._text["content"].append(content)  # type: ignore[union-attr]  # a list, see below
            return
        self._end_text()
        self._text_id = item_id if isinstance(item_id, str) else None
        phase: JsonObject = {"phase": ours["phase"]} if "phase" in ours else {}
        identity = self._id(ours)
        self._text = {"type": "message", "role": "assistant", **identity, **phase}
        if identity:
            self._text["status"] = "completed"
        self._text["content"] = [content]

    def _end_text(self) -> None:
        if self._text is not None:
            self._add(self._text)
            self._text = None

    def _think(self, part: ReasoningPart) -> None:
        ours = self._ours(part)
        item_id = ours.get("id")
        secret = ours.get("encrypted_content")
        if not isinstance(item_id, str):
            return
        self._end_text()
        item: JsonObject = {"type": "reasoning", "id": item_id, "summary": []}
        if ours.get("raw"):
            item["content"] = [{"type": "reasoning_text", "text": part.text}]
        elif part.text:
            item["summary"] = [{"type": "summary_text", "text": part.text}]
        if secret is not None:
            item["encrypted_content"] = secret
        elif not ours.get("raw") and not ours.get("stored"):
            # Neither did the service keep it, nor did it give it to us.
            return
        self._thoughts.add(item_id)
        self._waiting.append(item)

    def _call(self, part: ToolCallPart) -> None:
        self._end_text()
        ours = self._ours(part)
        custom = bool(ours.get("custom")) and isinstance(part.input, str)
        kind = "custom_tool_call" if custom else "function_call"
        given: JsonObject = {"input": part.input} if custom else {"arguments": arguments_of(part)}
        call: JsonObject = {"call_id": part.call_id, "name": part.tool, **given}
        self._add({"type": kind, **self._id(ours), **call})
        text, files = outcome_of(part)
        output: JsonValue = text
        if files:
            said: list[JsonValue] = [{"type": "input_text", "text": text}] if text else []
            output = [*said, *(_file(file) for file in files)]
        answer = {"type": f"{kind}_output", "call_id": part.call_id, "output": output}
        self._outputs.append(dump(answer))

    def _hosted(self, part: ToolCallPart) -> None:
        """What the provider ran itself goes back as it came, unless it still waits for an answer."""
        item = self._ours(part).get("item")
        if not isinstance(item, dict):
            return
        kind, call_id = str(item.get("type")), item.get("call_id")
        if kind == "mcp_approval_request":
            self._asked(part, item)
            return
        if call_id is not None and not kind.endswith("_output") and call_id not in self._answered:
            return
        if kind == "image_generation_call":
            picture = self._picture(item.get("id"))
            if picture is None:
                return
            item = {**item, "result": picture}
        self._end_text()
        self._add(item)

    def _asked(self, part: ToolCallPart, item: JsonObject) -> None:
        """A request for leave goes back with its answer, and not at all where nobody gave one."""
        if part.outcome in (None, "interrupted"):
            return
        approve, reason = part.outcome == "completed", part.error
        if approve and part.input != describe(item)[0]:
            # What was approved is not what the provider would run.
            approve = False
            reason = f"Approved with another input, call it with that: {arguments_of(part)}"
        self._end_text()
        self._add(item)
        told: JsonObject = {} if reason is None else {"reason": reason}
        answer: JsonObject = {
            "type": "mcp_approval_response",
            "approval_request_id": item.get("id"),
        }
        self._outputs.append(dump({**answer, "approve": approve, **told}))

    def _picture(self, item_id: JsonValue) -> str | None:
        """The content of the image that a call made: it is kept once, in its own part."""
        for part in self._message.parts:
            if isinstance(part, FilePart) and self._ours(part).get("call") == item_id:
                return part.data
        return None
