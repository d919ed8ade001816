"""The size of messages and of what goes with them: :class:`Sizer`."""

from __future__ import annotations

import json
from typing import Final
from weakref import WeakKeyDictionary

import attrs

from pai import FilePart, Message, ModelRequest, OutputPart, ReasoningPart, TextPart, ToolCallPart
from pai.protocol import ToolSpec
from pai_compaction._clearing import Clearing
from pai_compaction._tokenizer import Count

__all__ = ("Size", "Sizer")

_encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode

# Tokens that providers put around what is said.
_PER_MESSAGE: Final = 4
_PER_CALL: Final = 10

# What a file costs depends on its pixels, pages or seconds: guesses.
_PICTURE: Final = 1_000
_OTHER_FILE: Final = 3_000


@attrs.frozen
class Size:
    """
    The size of a message, in tokens.

    Args:
        full: As it is.
        cleared: With a placeholder for each output that is longer than that.
        calls: How many of its calls have an output.
        is_open: A call of it has not ended.
    """

    full: int
    cleared: int
    calls: int
    is_open: bool


class Sizer:
    """
    Measures, each message once.

    Args:
        count: Counts the tokens of a text.
        clearing: Which outputs can be cleared.
    """

    __slots__ = ("_count", "_known", "_placeholder", "_tools", "clearing")

    def __init__(self, count: Count, clearing: Clearing) -> None:
        self._count: Final = count
        self.clearing: Final = clearing
        self._placeholder: int | None = None
        self._known: WeakKeyDictionary[Message, Size] = WeakKeyDictionary()
        self._tools: tuple[object, int] = (None, 0)

    def of(self, message: Message) -> Size:
        """The size of *message*; one object is measured once."""
        size = self._known.get(message)
        if size is None:
            size = self._known[message] = self._measured(message)
        return size

    def text(self, text: str) -> int:
        """The size of a text."""
        return self._count(text)

    def output(self, output: object) -> int:
        """The size of a call's output; files in it are sent as files."""
        items = output if isinstance(output, list) else [output]
        if not any(_is_file(item) for item in items):
            return self._json(output)
        return sum([self._item(item) for item in items])

    def around(self, request: ModelRequest) -> int:
        """The size of what a request has besides its messages."""
        size = sum([self._count(each.content) + _PER_MESSAGE for each in request.instructions])
        if self._tools[0] is not request.tools:
            # The tuple is the same one as long as the same tools are offered.
            self._tools = request.tools, sum([self._spec(spec) for spec in request.tools])
        size += self._tools[1]
        size += sum([self._json(dict(tool.options)) + _PER_CALL for tool in request.provider_tools])
        return size + (0 if request.output is None else self._json(request.output))

    def _spec(self, spec: ToolSpec) -> int:
        return self._count(spec.description) + self._json(spec.input_schema) + _PER_CALL

    def _measured(self, message: Message) -> Size:
        full, saved, calls, is_open = _PER_MESSAGE, 0, 0, False
        for part in message.parts:
            if isinstance(part, (TextPart, ReasoningPart)):
                full += self._count(part.text)
            elif isinstance(part, FilePart):
                full += self._file(part.media_type, part.data)
            elif isinstance(part, OutputPart) and not part.in_text:
                full += self._json(part.value)
            elif isinstance(part, ToolCallPart):
                full += _PER_CALL + self._json(part.input)
                is_open = is_open or part.outcome is None
                if part.error is not None:
                    full += self._count(part.error)
                if part.outcome not in {"completed", "skipped"}:
                    continue
                output = self.output(part.output)
                full += output
                if self.clearing.takes(part):
                    calls += 1
                    saved += max(0, output - self._cleared())
        return Size(full, full - saved, calls, is_open)

    def _cleared(self) -> int:
        if self._placeholder is None:
            self._placeholder = self._count(self.clearing.placeholder)
        return self._placeholder

    def _item(self, item: object) -> int:
        if isinstance(item, dict) and _is_file(item):
            return self._file(item.get("mediaType"), item.get("data"))
        return self._json(item)

    def _file(self, kind: object, data: object) -> int:
        if isinstance(kind, str) and kind.startswith("text/") and isinstance(data, str):
            # Base64 has four characters for three bytes, and text about 3.5 bytes a token.
            return len(data) * 3 // 14 + 1
        is_picture = isinstance(kind, str) and kind.startswith("image/")
        return _PICTURE if is_picture else _OTHER_FILE

    def _json(self, value: object) -> int:
        return self._count(value if isinstance(value, str) else _encode(value))


def _is_file(item: object) -> bool:
    return isinstance(item, dict) and item.get("type") == "file"
