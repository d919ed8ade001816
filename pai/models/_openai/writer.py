"""What both decoders share: opening and closing parts, ids, and the input of calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pai.errors import InvalidInput
from pai.models._openai.encode import clean, dump, loads
from pai.protocol import (
    Message,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCallPart,
    ToolSpec,
    Usage,
    new_id,
)
from pai.schema import JsonObject, JsonValue, parse_json

__all__ = ("CallIds", "Joiner", "Writer", "number", "parse_input", "string", "usage_of")


class Joiner:
    """
    Joins surrogate pairs that a server cut in two, and drops lone halves.

    Servers written in JavaScript cut text by UTF-16 units, so half a character may end a delta.
    """

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[str, str] = {}

    def __call__(self, key: str, text: str) -> str:
        """The text of stream *key* that can go on now."""
        text = self._held.pop(key, "") + text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._held[key] = text[-1]
            text = text[:-1]
        return clean(text)


class Writer:
    """The text and the reasoning that are open, at most one of each."""

    __slots__ = ("_reasonings", "_texts", "reasoning", "text")

    def __init__(self) -> None:
        self.text: str | None = None
        self.reasoning: str | None = None
        self._texts = 0
        self._reasonings = 0

    def write(self, text: str, out: list[StreamPart]) -> None:
        """More text; it is opened if none is open, and reasoning ends there."""
        if self.text is None:
            self.end_reasoning(out)
            self.text = f"t{self._texts}"
            self._texts += 1
            out.append(TextStart(self.text))
        out.append(TextDelta(self.text, text))

    def think(self, text: str, out: list[StreamPart]) -> None:
        """More reasoning; it is opened if none is open, and text ends there."""
        if self.reasoning is None:
            self.end_text(out)
            self.reasoning = f"r{self._reasonings}"
            self._reasonings += 1
            out.append(ReasoningStart(self.reasoning))
        if text:
            out.append(ReasoningDelta(self.reasoning, text))

    def end_text(self, out: list[StreamPart], data: JsonObject | None = None) -> None:
        if self.text is not None:
            out.append(TextEnd(self.text, data))
            self.text = None

    def end_reasoning(self, out: list[StreamPart], data: JsonObject | None = None) -> None:
        if self.reasoning is not None:
            out.append(ReasoningEnd(self.reasoning, data))
            self.reasoning = None


class CallIds:
    """Ids of calls: the provider's own where they are new, else fresh ones."""

    __slots__ = ("_history", "_taken")

    def __init__(self, history: Sequence[Message]) -> None:
        self._history = history
        self._taken: set[str] | None = None

    def take(self, wish: str | None) -> str:
        """*wish*, if no other call of the stream or of the history has it."""
        if self._taken is None:
            # Some servers count from 1 in each answer. Only an answer with calls pays for the look.
            self._taken = {
                part.call_id
                for message in self._history
                for part in message.parts
                if isinstance(part, ToolCallPart)
            }
        call_id = wish if wish and wish not in self._taken else f"call_{new_id()}"
        self._taken.add(call_id)
        return call_id


def string(value: object) -> str | None:
    """*value*, if it is text with something in it."""
    return value if isinstance(value, str) and value else None


def number(value: object) -> int:
    """A count; whatever is none counts as 0."""
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def parse_input(
    text: str, tool: str, tools: Mapping[str, ToolSpec]
) -> tuple[JsonValue, str | None]:
    """
    The input of a call, and its text where it is no JSON.

    Nulls that only the strict form of the schema asked for are taken out again (O-11).
    """
    if not text.strip():
        return {}, None
    try:
        value = parse_json(_without_halves(text))
    except InvalidInput:
        return None, text
    spec = tools.get(tool)
    if spec is not None and spec.strict_schema is not None:
        from pai.schema import undo_nulls

        value = undo_nulls(spec.input_schema, value)
    return value, None


def _without_halves(text: str) -> str:
    """JSON text whose escapes name no lone surrogate."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    try:
        return dump(loads(text)).decode()
    except ValueError:
        return text


def usage_of(value: object, read: str, written: str) -> Usage | None:
    """
    What a provider counted.

    Args:
        value: Its object.
        read: The name of the field with the tokens of the prompt; ``<name>_details`` says more.
        written: The same for the answer.
    """
    if not isinstance(value, dict):
        return None
    prompt, answer = number(value.get(read)), number(value.get(written))
    cache, spent = value.get(f"{read}_details"), value.get(f"{written}_details")
    cache = cache if isinstance(cache, dict) else {}
    spent = spent if isinstance(spent, dict) else {}
    return Usage(
        input_tokens=prompt,
        output_tokens=answer,
        total_tokens=number(value.get("total_tokens")) or prompt + answer,
        reasoning_tokens=number(spent.get("reasoning_tokens")),
        cached_input_tokens=number(cache.get("cached_tokens")),
        cache_write_tokens=number(cache.get("cache_write_tokens")),
    )
