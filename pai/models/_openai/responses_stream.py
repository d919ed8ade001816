"""The events of a Responses stream, as parts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pai.errors import ModelError
from pai.models._openai.encode import loads
from pai.models._openai.endpoint import PROVIDER
from pai.models._openai.errors import incomplete, malformed, provider_error
from pai.models._openai.hosted import asks, describe, is_hosted, picture, tool_of
from pai.models._openai.sse import data_of
from pai.models._openai.writer import (
    CallIds,
    Joiner,
    Writer,
    parse_input,
    string,
    usage_of,
)
from pai.ports import ModelRequest
from pai.protocol import (
    FinishReason,
    Source,
    StepFinish,
    StreamPart,
    TextDelta,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    Usage,
)
from pai.schema import JsonObject, JsonValue

__all__ = ("ResponsesDecoder",)

Event = dict[str, Any]

_TEXT = "response.output_text.delta"


class _Item:
    """An output item under way."""

    __slots__ = ("call_id", "data", "done", "name", "part", "spoken", "started", "text")

    def __init__(self, data: Event) -> None:
        self.data = data
        self.name: str | None = None
        self.call_id = ""
        self.started = False
        self.text: list[str] = []
        self.spoken: set[object] = set()
        self.part: object = None
        self.done = False


class ResponsesDecoder:
    """
    Makes parts of frames; ``done`` says that the response has ended.

    Events are told apart by ``type`` alone, and unknown ones are passed over. A delta of the text
    that is open, which is nearly all of a stream, takes the short way in :meth:`feed`.
    """

    def __init__(self, request: ModelRequest, origin: str, *, stored: bool) -> None:
        self.done = False
        self._origin = origin
        self._stored = stored
        self._writer = Writer()
        self._join = Joiner()
        self._odd = False
        self._ids = CallIds(request.messages)
        self._tools = {tool.name: tool for tool in request.tools}
        self._items: dict[object, _Item] = {}
        self._last: _Item | None = None
        self._open: _Item | None = None
        self._open_index: object = None
        self._open_content: object = None
        self._after: str | None = None
        self._sources: set[object] = set()
        self._called = False
        self._refused = False
        self._end: FinishReason | None = None
        self._usage: Usage | None = None
        self._handlers: dict[str, Callable[[Event, list[StreamPart]], None]] = {
            _TEXT: self._text_delta,
            "response.refusal.delta": self._refusal_delta,
            "response.output_text.done": self._text_done,
            "response.refusal.done": self._refusal_done,
            "response.output_text.annotation.added": self._annotation,
            "response.output_item.added": self._added,
            "response.output_item.done": self._item_done,
            "response.reasoning_summary_text.delta": self._summary_delta,
            "response.reasoning_text.delta": self._reasoning_delta,
            "response.function_call_arguments.delta": self._arguments_delta,
            "response.function_call_arguments.done": self._arguments_done,
            "response.custom_tool_call_input.delta": self._arguments_delta,
            "response.completed": self._terminal,
            "response.incomplete": self._terminal,
            "response.failed": self._terminal,
            "response.cancelled": self._terminal,
            "error": self._error,
        }

    def feed(self, frames: list[str]) -> list[StreamPart]:
        """The parts in *frames*, which hold whole events."""
        out: list[StreamPart] = []
        for frame in frames:
            head, _, data = frame.partition("\ndata: ")
            if not data or "\n" in data or head[:6] != "event:" or "\n" in head:
                data = data_of(frame)
            if data[:1] != "{":
                if data.strip() not in {"", "[DONE]"}:
                    raise malformed("a frame holds no JSON object")
                continue
            event: Event = loads(data)
            if not self._odd and ("\\ud" in data or "\\uD" in data):
                self._odd = True
            kind = event.get("type")
            if (
                kind == _TEXT
                and not self._odd
                and self._writer.text
                and event.get("output_index") == self._open_index
                and event.get("content_index") == self._open_content
            ):
                if text := event["delta"]:
                    out.append(TextDelta(self._writer.text, text))
                continue
            handler = self._handlers.get(kind)  # type: ignore[arg-type]  # None finds nothing
            if handler is not None:
                handler(event, out)
            elif event.get("error") and (kind is None or kind.endswith("error")):
                raise provider_error(event["error"])
        return out

    # ------------------------------------------------------------------ items

    def _item(self, event: Event) -> _Item:
        """The item an event is about: by its index, else by its id, else the last one."""
        for key in (event.get("output_index"), event.get("item_id")):
            if key is not None and (item := self._items.get(key)) is not None:
                return item
        if self._last is not None and event.get("output_index") is None:
            return self._last
        return self._new(event, {"id": event.get("item_id")})

    def _new(self, event: Event, data: Event) -> _Item:
        item = _Item(data)
        self._last = item
        for key in (event.get("output_index"), data.get("id")):
            if key is not None:
                self._items[key] = item
        return item

    def _added(self, event: Event, out: list[StreamPart]) -> None:
        data = event["item"]
        item = self._new(event, data)
        kind = data.get("type")
        if kind in {"function_call", "custom_tool_call"}:
            self._start(item, out)
        elif is_hosted(kind):
            self._start_hosted(item, out)
        elif kind == "reasoning":
            self._end_text(out)

    def _item_done(self, event: Event, out: list[StreamPart]) -> None:
        data = event["item"]
        index = event.get("output_index")
        item = self._items.get(index) if index is not None else self._items.get(data.get("id"))
        if item is None:
            item = self._new(event, data)
        item.data = data
        self._finish_item(item, out)

    def _finish_item(self, item: _Item, out: list[StreamPart]) -> None:
        if item.done:
            return
        item.done = True
        kind = item.data.get("type")
        if kind == "message":
            self._finish_message(item, out)
        elif kind == "reasoning":
            self._finish_reasoning(item, out)
        elif kind in {"function_call", "custom_tool_call"}:
            self._finish_call(item, out)
        elif is_hosted(kind):
            self._finish_hosted(item, out)

    def _ours(self, **values: JsonValue) -> JsonObject:
        """What goes back to the provider with the part."""
        data: JsonObject = {"origin": self._origin}
        data |= {name: value for name, value in values.items() if value is not None}
        return {PROVIDER: data}

    # ------------------------------------------------------------------ text

    def _text_delta(self, event: Event, out: list[StreamPart]) -> None:
        self._say(self._item(event), event, event["delta"], out)

    def _refusal_delta(self, event: Event, out: list[StreamPart]) -> None:
        self._refused = True
        self._say(self._item(event), event, event["delta"], out, refusal=True)

    def _text_done(self, event: Event, out: list[StreamPart]) -> None:
        """Servers that send no deltas send the whole."""
        item = self._item(event)
        if event.get("content_index") not in item.spoken:
            self._say(item, event, event.get("text"), out)

    def _refusal_done(self, event: Event, out: list[StreamPart]) -> None:
        self._refused = True
        item = self._item(event)
        if event.get("content_index") not in item.spoken:
            self._say(item, event, event.get("refusal"), out, refusal=True)

    def _say(
        self,
        item: _Item,
        event: Event,
        text: str | None,
        out: list[StreamPart],
        *,
        refusal: bool = False,
    ) -> None:
        if not text:
            return
        content = event.get("content_index")
        item.spoken.add(content)
        part = (content, refusal)
        if self._open is not item or item.part != part:
            self._end_text(out)
            self._open, item.part = item, part
            self._open_index, self._open_content = event.get("output_index"), content
        if self._odd:
            text = self._join(f"text {id(item)} {content}", text)
        if text:
            self._writer.write(text, out)

    def _end_text(self, out: list[StreamPart]) -> None:
        item = self._open
        self._open = self._open_index = self._open_content = None
        if item is None or self._writer.text is None:
            return
        data = self._ours(
            id=item.data.get("id"),
            after=self._after,
            phase=item.data.get("phase"),
            refusal=True if isinstance(item.part, tuple) and item.part[1] else None,
        )
        self._writer.end_text(out, data)

    def _finish_message(self, item: _Item, out: list[StreamPart]) -> None:
        for index, content in enumerate(item.data.get("content") or ()):
            where = {"content_index": index}
            refusal = content.get("type") == "refusal"
            # Spoken under no index at all: a server that numbers nothing.
            if index not in item.spoken and None not in item.spoken:
                self._refused |= refusal
                text = content.get("refusal" if refusal else "text")
                self._say(item, where, text, out, refusal=refusal)
            for annotation in content.get("annotations") or ():
                self._source(annotation, out)
        if self._open is item:
            self._end_text(out)

    def _annotation(self, event: Event, out: list[StreamPart]) -> None:
        self._source(event["annotation"], out)

    def _source(self, annotation: Event, out: list[StreamPart]) -> None:
        """A source, once: it comes by an event and in the whole item."""
        url, name = string(annotation.get("url")), string(annotation.get("filename"))
        key = url or annotation.get("file_id")
        if key is None or key in self._sources:
            return
        self._sources.add(key)
        source_id = f"s{len(self._sources) - 1}"
        if url is not None:
            out.append(Source(source_id, url, string(annotation.get("title"))))
        else:
            data = self._ours(file_id=key)
            out.append(Source(source_id, title=name or key, filename=name, provider_data=data))

    # ------------------------------------------------------------------ reasoning

    def _summary_delta(self, event: Event, out: list[StreamPart]) -> None:
        self._think(self._item(event), event["delta"], event.get("summary_index"), out)

    def _reasoning_delta(self, event: Event, out: list[StreamPart]) -> None:
        self._think(self._item(event), event["delta"], ("raw", event.get("content_index")), out)

    def _think(self, item: _Item, text: str | None, part: object, out: list[StreamPart]) -> None:
        if self._odd and text:
            text = self._join(f"reasoning {id(item)}", text)
        if not text:
            return
        self._end_text(out)
        if item.started and item.part != part:
            text = f"\n\n{text}"
        item.part = part
        item.started = True
        self._writer.think(text, out)

    def _finish_reasoning(self, item: _Item, out: list[StreamPart]) -> None:
        data = item.data
        # Servers that send no deltas send the whole.
        for kind, raw in (("summary", False), ("content", True)):
            if not item.started:
                for index, part in enumerate(data.get(kind) or ()):
                    self._think(item, part.get("text"), ("raw", index) if raw else index, out)
        secret, item_id = data.get("encrypted_content"), string(data.get("id"))
        if not item.started:
            if secret is None and not self._stored:
                return
            # Nothing to show, but the provider wants it back.
            self._end_text(out)
            self._writer.think("", out)
        self._after = item_id
        ours = self._ours(
            id=item_id,
            encrypted_content=secret,
            raw=True if isinstance(item.part, tuple) else None,
            stored=True if self._stored else None,
        )
        self._writer.end_reasoning(out, ours)

    # ------------------------------------------------------------------ calls

    def _start(self, item: _Item, out: list[StreamPart]) -> None:
        name = string(item.data.get("name"))
        if item.name is not None or name is None:
            return
        item.name = name
        item.call_id = self._ids.take(
            string(item.data.get("call_id")) or string(item.data.get("id"))
        )
        self._end_text(out)
        self._writer.end_reasoning(out)
        out.append(ToolInputStart(item.call_id, name))
        if early := "".join(item.text):
            out.append(ToolInputDelta(item.call_id, early))

    def _arguments_delta(self, event: Event, out: list[StreamPart]) -> None:
        self._more_input(self._item(event), event["delta"], out)

    def _arguments_done(self, event: Event, out: list[StreamPart]) -> None:
        item = self._item(event)
        if not item.text and event.get("arguments"):
            self._more_input(item, event["arguments"], out)

    def _more_input(self, item: _Item, text: str, out: list[StreamPart]) -> None:
        if self._odd:
            text = self._join(f"call {id(item)}", text)
        if text:
            item.text.append(text)
            if item.name is not None:
                out.append(ToolInputDelta(item.call_id, text))

    def _finish_call(self, item: _Item, out: list[StreamPart]) -> None:
        data = item.data
        custom = data.get("type") == "custom_tool_call"
        self._start(item, out)
        if item.name is None:
            raise malformed("a tool call has no name")
        whole = data.get("input" if custom else "arguments")
        if not item.text and isinstance(whole, str):
            self._more_input(item, whole, out)
        text = "".join(item.text)
        value, raw = (text, None) if custom else parse_input(text, item.name, self._tools)
        ours = self._ours(id=data.get("id"), after=self._after, custom=True if custom else None)
        self._called = True
        out.append(ToolCall(item.call_id, item.name, value, raw, provider_data=ours))

    def _start_hosted(self, item: _Item, out: list[StreamPart]) -> None:
        if item.started:
            return
        item.started = True
        item.name = tool_of(item.data)
        item.call_id = self._ids.take(string(item.data.get("id")))
        self._end_text(out)
        self._writer.end_reasoning(out)
        out.append(ToolInputStart(item.call_id, item.name))

    def _finish_hosted(self, item: _Item, out: list[StreamPart]) -> None:
        """A call the provider ran: kept whole, an image's content in a part of its own."""
        self._start_hosted(item, out)
        file, kept = picture(item.data, self._ours(call=item.data.get("id")))
        given, output, error = describe(kept)
        approval = asks(kept)
        self._called = self._called or approval is not None
        out.append(
            ToolCall(
                item.call_id,
                item.name or "",
                given,
                provider_executed=True,
                output=output,
                error=error,
                provider_data=self._ours(item=kept),
                approval=approval,
            )
        )
        if file is not None:
            out.append(file)

    # ------------------------------------------------------------------ the end

    def _error(self, event: Event, out: list[StreamPart]) -> None:
        raise provider_error(event.get("error") or event)

    def _terminal(self, event: Event, out: list[StreamPart]) -> None:
        """The response's end; its status counts, since some servers name the event wrongly."""
        response = event["response"]
        status = response.get("status") or event["type"].rpartition(".")[2]
        if status == "failed":
            raise self._failed(response)
        if status == "cancelled":
            raise ModelError(
                "the provider cancelled the response", provider=PROVIDER, code="response_cancelled"
            )
        if not self._items:
            for index, data in enumerate(response.get("output") or ()):
                self._item_done({"output_index": index, "item": data}, out)
        for item in dict.fromkeys(self._items.values()):
            if item.data.get("type") is not None:
                self._finish_item(item, out)
        self._end_text(out)
        self._writer.end_reasoning(out)
        self._usage = usage_of(response.get("usage"), "input_tokens", "output_tokens")
        if status == "incomplete":
            details = response.get("incomplete_details") or {}
            why = details.get("reason")
            self._end = (
                "content-filter"
                if why == "content_filter"
                else "length"
                if why in {None, "max_output_tokens"}
                else "other"
            )
        elif self._called:
            self._end = "tool-calls"
        else:
            self._end = "content-filter" if self._refused else "stop"
        self.done = True

    def _failed(self, response: Event) -> ModelError:
        error = response.get("error")
        if error:
            return provider_error(error, head="the provider failed to answer")
        return ModelError(
            "the provider failed to answer and did not say why",
            provider=PROVIDER,
            code="response_failed",
        )

    def finish(self) -> list[StreamPart]:
        """
        What follows the last event.

        Raises:
            IncompleteStream: The response did not end.
        """
        if self._end is None:
            raise incomplete("it ended without a final event")
        return [StepFinish(self._end, self._usage)]

    def recover(self, generation: str) -> list[StreamPart]:
        """Servers that refuse their model's calls are not asked through this API."""
        return []
