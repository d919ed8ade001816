"""JSON that is still being written: its value so far."""

from __future__ import annotations

import json
import re
from typing import Final

from ._json import JsonObject, JsonValue
from ._references import follow

__all__ = ("PartialJson",)

_CHARACTERS = r'(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*'
_SPACE = re.compile(r"[ \t\n\r]*")
_TOKEN = re.compile(
    rf'(?P<string>"{_CHARACTERS}")'
    r"|(?P<mark>[{}\[\],:])"
    r"|(?P<word>true|false|null)"
    # A number may grow until something else follows.
    r"|(?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?=[ \t\n\r,\]}])"
)
_OPEN_STRING = re.compile(rf'"{_CHARACTERS}')
_UNFINISHED = re.compile(
    rf'"{_CHARACTERS}(?:\\(?:u[0-9a-fA-F]{{0,3}})?)?'
    r"|-?[0-9]*[0-9.eE+-]*"
    r"|t(?:ru?)?|f(?:a(?:ls?)?)?|n(?:ul?)?"
)
# The first half of a character that is written as two escapes.
_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\Z")
_FENCE = re.compile(r"\s*```[^\n]*\n")
_FENCE_TO_COME = re.compile(r"\s*(?:`{0,2}|```[^\n]*)")

_CLOSERS: Final = {"{": "}", "[": "]"}
_MOST_NESTING: Final = 100
_MOST_DIGITS: Final = 1000
"""Python refuses to read integers of many thousands."""
_VALUE: Final = frozenset({"root", "value", "first item"})


class _Container:
    """An object or a list that is not closed yet."""

    __slots__ = ("closer", "key")

    def __init__(self, mark: str) -> None:
        self.closer = _CLOSERS[mark]
        self.key: str | int = "" if mark == "{" else 0


class PartialJson:
    """
    Takes the text of a JSON object or list in pieces, and says what there is of it.

    Each value is a prefix of those that follow: a text grows at its end, a list by items, an object
    by keys; numbers, ``true``, ``false`` and ``null`` come whole. What was read is not read again,
    so that many small pieces cost little.

    A fence of Markdown before the JSON is passed over, and so is all that comes after its end.

    Args:
        schema: Where it is given, a text that is one of a few, or has a format, comes whole, too.

    Attributes:
        done: The value is whole.
        broken: It is no object and no list; nothing more is taken.
    """

    __slots__ = (
        "_at", "_cut", "_expects", "_open", "_schema", "_start", "_text", "broken", "done",
    )  # fmt: skip

    def __init__(self, schema: JsonObject | None = None) -> None:
        self._schema = schema
        self._text = ""
        self._start = -1
        self._at = 0
        self._cut = 0
        self._open: list[_Container] = []
        self._expects = "root"
        self.done = False
        self.broken = False

    def feed(self, text: str) -> None:
        """Take a piece."""
        if self.done or self.broken:
            return
        self._text += text
        if self._start < 0:
            if _FENCE_TO_COME.fullmatch(self._text):
                return
            fence = _FENCE.match(self._text)
            self._start = self._at = self._cut = fence.end() if fence else 0
        self._read()

    def _read(self) -> None:
        text = self._text
        while not self.done and not self.broken:
            at = self._skipped(self._at)
            if at == len(text):
                return
            token = _TOKEN.match(text, at)
            if token is None:
                self.broken = _UNFINISHED.fullmatch(text, at) is None
                return
            self._at = token.end()
            kind, what = token.lastgroup, token.group()
            if kind == "number" and len(what) > _MOST_DIGITS:
                self.broken = True
            elif kind == "mark":
                self._mark(what)
            elif kind == "string" and self._expects in ("first key", "key"):
                self._open[-1].key = json.loads(what)
                self._expects = "colon"
            elif self._expects in ("value", "first item"):
                self._whole()
            else:
                self.broken = True

    def _skipped(self, at: int) -> int:
        space = _SPACE.match(self._text, at)
        return at if space is None else space.end()

    def _mark(self, mark: str) -> None:
        expects, inside = self._expects, self._open[-1] if self._open else None
        if mark in _CLOSERS and expects in _VALUE and len(self._open) < _MOST_NESTING:
            self._open.append(_Container(mark))
            self._expects = "first key" if mark == "{" else "first item"
            self._cut = self._at
        elif inside is None:
            self.broken = True
        elif mark == inside.closer and expects in ("comma", "first key", "first item"):
            self._open.pop()
            self._whole()
        elif mark == "," and expects == "comma":
            if isinstance(inside.key, int):
                inside.key += 1
            self._expects = "key" if inside.closer == "}" else "value"
        elif mark == ":" and expects == "colon":
            self._expects = "value"
        else:
            self.broken = True

    def _whole(self) -> None:
        self._cut = self._at
        self._expects = "comma"
        self.done = not self._open

    def value(self) -> JsonValue:
        """The value so far, a fresh one each time; ``None`` if nothing has begun."""
        if self._cut <= max(self._start, 0):
            return None
        text = self._text[self._start : self._cut]
        if not self.done and self._expects in ("value", "first item"):
            at = self._skipped(self._at)
            begun = _OPEN_STRING.match(self._text, at)
            if begun is not None and begun.end() > at + 1 and self._may_grow():
                text = self._text[self._start : at] + _HALF.sub("", begun.group()) + '"'
        closers = [container.closer for container in reversed(self._open)]
        value: JsonValue = json.loads(text + "".join(closers))
        return value

    def _may_grow(self) -> bool:
        """Whether a text that is not whole fits where the next value stands."""
        if self._schema is None:
            return True
        return _grows(self._schema, self._schema, [container.key for container in self._open])


def _grows(root: JsonObject, schema: JsonValue, path: list[str | int], level: int = 0) -> bool:
    target = follow(root, schema)
    if not isinstance(target, dict) or level > _MOST_NESTING:
        return True
    for name in ("anyOf", "oneOf"):
        branches = target.get(name)
        if isinstance(branches, list):
            # A branch that says nothing of a text here lets it grow; one that wants it whole decides.
            return all(_grows(root, branch, path, level + 1) for branch in branches)
    if not path:
        return target.keys().isdisjoint(("const", "enum", "format", "pattern"))
    key, *rest = path
    if isinstance(key, int):
        first, inside = target.get("prefixItems"), target.get("items")
        if isinstance(first, list) and key < len(first):
            inside = first[key]
    else:
        known, inside = target.get("properties"), target.get("additionalProperties")
        if isinstance(known, dict) and key in known:
            inside = known[key]
    return _grows(root, inside, rest, level + 1)
