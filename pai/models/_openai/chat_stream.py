"""The chunks of a chat completions stream, as parts."""

from __future__ import annotations

from pai.models._openai.encode import dump, loads
from pai.models._openai.endpoint import PROVIDER
from pai.models._openai.errors import incomplete, malformed, provider_error
from pai.models._openai.rejected import RejectedCall, written_calls
from pai.models._openai.sse import data_of
from pai.models._openai.writer import CallIds, Joiner, Writer, parse_input, string, usage_of
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
from pai.schema import JsonObject

__all__ = ("ChatDecoder",)

_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "max_tokens": "length",
    "tool_calls": "tool-calls",
    "function_call": "tool-calls",
    "content_filter": "content-filter",
    "error": "error",
}


class _Call:
    """A call under way: fragments of one index."""

    __slots__ = ("call_id", "name", "text", "wish")

    def __init__(self, wish: str | None) -> None:
        self.wish = wish
        self.call_id = ""
        self.name: str | None = None
        self.text: list[str] = []


class ChatDecoder:
    """
    Makes parts of frames; ``done`` says that the provider has nothing more to say.

    A delta with text alone, which is nearly all of a stream, takes the short way in :meth:`feed`.
    """

    __slots__ = (
        "_by_index",
        "_calls",
        "_field",
        "_ids",
        "_join",
        "_odd",
        "_reason",
        "_refused",
        "_rejected",
        "_sources",
        "_tools",
        "_usage",
        "_writer",
        "done",
    )

    def __init__(self, request: ModelRequest) -> None:
        self.done = False
        self._writer = Writer()
        self._join = Joiner()
        self._odd = False
        self._ids = CallIds(request.messages)
        self._tools = {tool.name: tool for tool in request.tools}
        self._calls: list[_Call] = []
        self._by_index: dict[object, _Call] = {}
        self._field: str | None = None
        self._reason: str | None = None
        self._refused = False
        self._rejected: RejectedCall | None = None
        self._sources: list[str] = []
        self._usage: Usage | None = None

    def feed(self, frames: list[str]) -> list[StreamPart]:
        """The parts in *frames*, which hold whole events."""
        out: list[StreamPart] = []
        writer = self._writer
        for frame in frames:
            data = frame[6:] if frame[:6] == "data: " and "\n" not in frame else data_of(frame)
            if data[:1] != "{":
                self._other(data.strip())
                continue
            chunk = loads(data)
            if not self._odd and ("\\ud" in data or "\\uD" in data):
                self._odd = True
            if chunk.get("error"):
                error = provider_error(chunk["error"])
                if not isinstance(error, RejectedCall):
                    raise error
                self._rejected, self.done = error, True
                break
            if usage := chunk.get("usage"):
                self._usage = usage_of(usage, "prompt_tokens", "completion_tokens")
            choices = chunk.get("choices")
            if not choices:
                if chunk.get("object") == "error":
                    raise provider_error(chunk)
                continue
            choice = choices[0]
            if choice.get("index"):
                continue
            delta = choice.get("delta")
            if delta:
                text = delta.get("content")
                if len(delta) == 1 and type(text) is str and not self._odd and writer.text:
                    if text:
                        out.append(TextDelta(writer.text, text))
                else:
                    self._delta(delta, out)
            if reason := choice.get("finish_reason"):
                self._reason = reason
        return out

    def _other(self, data: str) -> None:
        if data == "[DONE]":
            self.done = True
        elif data:
            raise malformed("a frame holds no JSON object")

    def _delta(self, delta: JsonObject, out: list[StreamPart]) -> None:
        for field in ("reasoning_content", "reasoning"):
            thought = delta.get(field)
            if thought and isinstance(thought, str):
                self._field = field
                self._think(thought, out)
                break
        content = delta.get("content")
        if content:
            self._content(content, out)
        for annotation in delta.get("annotations") or ():  # type: ignore[union-attr]  # see below
            self._source(annotation, out)  # type: ignore[arg-type]  # see below
        refusal = delta.get("refusal")
        if refusal and isinstance(refusal, str):
            self._refused = True
            self._write(refusal, out)
        for fragment in delta.get("tool_calls") or ():  # type: ignore[union-attr]  # wrong shapes raise
            self._fragment(fragment, out)  # type: ignore[arg-type]  # see above
        function = delta.get("function_call")
        if function:
            # The form of 2023, which had one call and no id.
            self._fragment({"index": "function_call", "function": function}, out)

    def _content(self, content: object, out: list[StreamPart]) -> None:
        if isinstance(content, str):
            self._write(content, out)
            return
        for item in content if isinstance(content, list) else ():
            text = item.get("text")
            if isinstance(text, str):
                self._write(text, out)
            elif item.get("type") == "thinking":
                inner = item.get("thinking")
                for piece in [inner] if isinstance(inner, str) else inner or ():
                    self._think(piece if isinstance(piece, str) else piece["text"], out)

    def _source(self, annotation: JsonObject, out: list[StreamPart]) -> None:
        cited = annotation.get("url_citation")
        url = string(cited.get("url")) if isinstance(cited, dict) else None
        if url is not None and url not in self._sources:
            self._sources.append(url)
            title = string(cited.get("title")) if isinstance(cited, dict) else None
            out.append(Source(f"s{len(self._sources) - 1}", url, title))

    def _write(self, text: str, out: list[StreamPart]) -> None:
        if self._odd:
            text = self._join("text", text)
        if text:
            self._end_reasoning(out)
            self._writer.write(text, out)

    def _think(self, text: str, out: list[StreamPart]) -> None:
        if self._odd:
            text = self._join("reasoning", text)
        if text:
            self._writer.think(text, out)

    def _end_reasoning(self, out: list[StreamPart]) -> None:
        field = self._field
        self._writer.end_reasoning(out, {PROVIDER: {"field": field}} if field else None)

    def _fragment(self, fragment: JsonObject, out: list[StreamPart]) -> None:
        function = fragment.get("function") or {}
        name = string(function.get("name"))  # type: ignore[union-attr]  # wrong shapes raise
        call = self._call(fragment.get("index"), string(fragment.get("id")), name)
        text = function.get("arguments")  # type: ignore[union-attr]  # see above
        if isinstance(text, dict):
            # Some servers send the object itself.
            text = dump(text).decode()
        if not isinstance(text, str):
            text = ""
        if self._odd:
            text = self._join(f"call {id(call)}", text)
        if call.name is None and name is not None:
            call.name = name
            call.call_id = self._ids.take(call.wish)
            self._end_reasoning(out)
            self._writer.end_text(out)
            out.append(ToolInputStart(call.call_id, name))
            if early := "".join(call.text):
                out.append(ToolInputDelta(call.call_id, early))
        if text:
            call.text.append(text)
            if call.name is not None:
                out.append(ToolInputDelta(call.call_id, text))

    def _call(self, index: object, wish: str | None, name: str | None) -> _Call:
        """The call a fragment belongs to: by its index, else by its id, else the last one."""
        call: _Call | None = None
        if index is not None:
            call = self._by_index.get(index)
        elif wish is not None:
            call = next((each for each in self._calls if each.wish == wish), None)
        if call is None and index is None and (wish is None or name is None) and self._calls:
            call = self._calls[-1]
        # Servers exist that give all calls the index 0: a new id with a name is a new call.
        if call is None or (
            call.name is not None and name is not None and wish not in {None, call.wish}
        ):
            call = _Call(wish)
            self._calls.append(call)
        elif call.wish is None:
            call.wish = wish
        if index is not None:
            self._by_index[index] = call
        return call

    def finish(self) -> list[StreamPart]:
        """
        What follows the last chunk.

        Raises:
            IncompleteStream: The provider gave no reason for the end.
        """
        if self._rejected is not None:
            if parts := self.recover(self._rejected.generation):
                return parts
            raise self._rejected
        if self._reason is None:
            raise incomplete("it ended without a finish reason")
        out: list[StreamPart] = []
        called = self._close(out)
        reason = _REASONS.get(self._reason, "other")
        if called and reason in {"stop", "other"}:
            reason = "tool-calls"
        elif reason == "tool-calls" and not called:
            reason = "stop"
        elif self._refused and reason == "stop":
            reason = "content-filter"
        out.append(StepFinish(reason, self._usage))
        return out

    def recover(self, generation: str) -> list[StreamPart]:
        """
        What follows where the server refused a call that its model wrote; empty: nothing can.

        Our own check of the call says what is wrong with it, and the model reads that.
        """
        calls = written_calls(generation, self._tools)
        if not calls:
            return []
        out: list[StreamPart] = []
        self._close(out)
        for name, text in calls:
            call_id = self._ids.take(None)
            value, raw = parse_input(text, name, self._tools)
            out += [ToolInputStart(call_id, name), ToolInputDelta(call_id, text)]
            out.append(ToolCall(call_id, name, value, raw))
        out.append(StepFinish("tool-calls", self._usage))
        return out

    def _close(self, out: list[StreamPart]) -> bool:
        """End what is open; whether there were calls."""
        self._end_reasoning(out)
        self._writer.end_text(out)
        called = False
        for call in self._calls:
            if call.name is None:
                if self._reason in {"length", "max_tokens"}:
                    continue
                raise malformed("a tool call has no name")
            called = True
            value, raw = parse_input("".join(call.text), call.name, self._tools)
            out.append(ToolCall(call.call_id, call.name, value, raw))
        return called
