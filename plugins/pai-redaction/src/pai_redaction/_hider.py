"""Hides in texts and JSON, by one set of rules."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pai.schema import JsonObject, JsonValue
from pai_redaction._marks import Marks
from pai_redaction._rule import Rule
from pai_redaction._scanner import Scanner
from pai_redaction._text import TextInPieces, whole_text
from pai_redaction._unescape import unescaped

__all__ = ("Hider",)


class Hider:
    """
    Hides what *rules* find, as *marks* says.

    What has nothing to hide comes back as the same object.
    """

    __slots__ = ("_marks", "_scanner")

    def __init__(self, rules: Sequence[Rule], marks: Marks) -> None:
        self._scanner: Final = Scanner(rules)
        self._marks: Final = marks

    def pieces(self) -> TextInPieces:
        """A text that will come in pieces."""
        return TextInPieces(self._scanner, self._marks)

    def text(self, text: str) -> str:
        """A whole text."""
        return whole_text(self._scanner, self._marks, text)

    def maybe(self, text: str | None) -> str | None:
        """A text, if there is one."""
        return None if text is None else self.text(text)

    def raw(self, text: str) -> str:
        """Text that was meant to be JSON: what is hidden behind its escapes is found as well."""
        plain = unescaped(text)
        if plain != text and (hidden := self.text(plain)) != plain:
            return hidden
        return self.text(text)

    def value(self, value: JsonValue) -> JsonValue:
        """
        JSON: its strings, keys included, and its numbers.

        A number that is to be hidden becomes a string. Keys that become alike are told apart by a
        number behind them.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            text = json.dumps(value)
            hidden = self.text(text)
            return value if hidden == text else hidden
        if isinstance(value, list):
            items = [self.value(item) for item in value]
            changed = any(new is not old for new, old in zip(items, value, strict=True))
            return items if changed else value
        return self._mapping(value)

    def object(self, value: JsonObject | None) -> JsonObject | None:
        """A JSON object, if there is one."""
        return None if value is None else self._mapping(value)

    def kept(self, provider_data: JsonObject | None, *, changed: bool) -> JsonObject | None:
        """
        What a provider wants back with a part: nothing, if the part or this was changed.

        It may hold the part's text again, or a signature that fits the text no more.
        """
        if provider_data is None or changed:
            return None
        return provider_data if self._mapping(provider_data) is provider_data else None

    def _mapping(self, value: JsonObject) -> JsonObject:
        out: JsonObject = {}
        changed = False
        for key, item in value.items():
            new_key, new = self.text(key), self.value(item)
            changed = changed or new is not item or new_key != key
            if new_key != key:
                new_key = _free(new_key, out, value)
            out[new_key] = new
        return out if changed else value


def _free(key: str, *taken: JsonObject) -> str:
    """The key, with a number behind it if it is taken."""
    free, count = key, 1
    while any(free in each for each in taken):
        count += 1
        free = f"{key} ({count})"
    return free
