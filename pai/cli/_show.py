"""Showing a run on a terminal, or plainly in a pipe."""

from __future__ import annotations

import json
from typing import Final, TextIO

from pai.protocol import (
    CallError,
    CallOutput,
    Event,
    ReasoningDelta,
    ReasoningEnd,
    Source,
    StepReset,
    TextDelta,
    TextEnd,
    ToolCall,
    ToolProgress,
)
from pai.schema import JsonValue

__all__ = ("Screen",)

_WIDTH = 200
"""Characters shown of a tool's input or output."""


class Screen:
    """
    Writes events as they come; colours only where a person looks.

    Args:
        out: Where to.
    """

    def __init__(self, out: TextIO) -> None:
        self._out: Final = out
        self._colours: Final = out.isatty()
        self._unicode: Final = (out.encoding or "").lower().replace("-", "") == "utf8"
        self._fresh = True
        self._reasoning = False
        self._tools: dict[str, str] = {}

    def show(self, event: Event) -> None:
        """Show one event, if there is something to see."""
        if isinstance(event, TextDelta):
            self._write(event.text)
        elif isinstance(event, TextEnd):
            self._line()
        elif isinstance(event, ReasoningDelta):
            if not self._reasoning:
                self._reasoning = True
                self._write(self._dim("thinking: ", close=False))
            self._write(event.text)
        elif isinstance(event, ReasoningEnd):
            if self._reasoning and self._colours:
                self._out.write("\x1b[0m")
            self._reasoning = False
            self._line()
        elif isinstance(event, ToolCall):
            self._tools[event.call_id] = event.tool
            shown = event.raw if event.raw is not None else _arguments(event.input)
            self._note(self._mark("→", "->"), f"{event.tool}({_short(shown)})")
        elif isinstance(event, ToolProgress):
            self._note(self._mark("…", ".."), _short(_plain(event.value)))
        elif isinstance(event, CallOutput):
            self._note(self._mark("←", "<-"), _short(_plain(event.output)))
        elif isinstance(event, CallError):
            self._note(self._mark("✗", "!!"), _short(event.error))
        elif isinstance(event, Source):
            self._note("source", event.url or event.title or event.id)
        elif isinstance(event, StepReset):
            self._note("again", event.reason)
        self._out.flush()

    def end(self) -> None:
        """Leave the cursor at the start of a line."""
        self._line()
        self._out.flush()

    def _mark(self, fine: str, plain: str) -> str:
        return fine if self._unicode else plain

    def _note(self, mark: str, text: str) -> None:
        self._line()
        self._write(self._dim(f"{mark} {text}") + "\n")

    def _dim(self, text: str, *, close: bool = True) -> str:
        if not self._colours:
            return text
        return f"\x1b[2m{text}" + ("\x1b[0m" if close else "")

    def _line(self) -> None:
        if not self._fresh:
            self._write("\n")

    def _write(self, text: str) -> None:
        if not text:
            return
        try:
            self._out.write(text)
        except UnicodeEncodeError:
            encoding = self._out.encoding
            self._out.write(text.encode(encoding, "replace").decode(encoding))
        self._fresh = text.endswith("\n")


def _plain(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _arguments(value: JsonValue) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key}={_plain(item)}" for key, item in value.items())
    return _plain(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _WIDTH else line[: _WIDTH - 3] + "..."
