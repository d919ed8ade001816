"""A conversation as plain text, for a model that shall sum it up."""

from __future__ import annotations

import json
from collections.abc import Sequence

from pai import FilePart, Message, OutputPart, TextPart, ToolCallPart

__all__ = ("clipped", "transcript")

# Outputs of tools are long, and say little that lasts.
_TEXT = 8_000
_INPUT = 1_000
_OUTPUT = 2_000


def transcript(messages: Sequence[Message]) -> str:
    """
    What was said and done, a paragraph each.

    It names no ids and needs no tools, so that any model can be asked, and the request stays valid
    whatever the history is made of.
    """
    return "\n\n".join([line for message in messages for line in _lines(message)])


def clipped(text: str, length: int) -> str:
    """*text* without its middle, if it has more than *length* characters."""
    if len(text) <= length:
        return text
    gap = f" [... {len(text) - length} characters left out ...] "
    rest = max(0, length - len(gap))
    head = rest * 2 // 3
    return text[:head] + gap + text[len(text) - (rest - head) :]


def _lines(message: Message) -> list[str]:
    who = "User" if message.role == "user" else "Assistant"
    lines = []
    for part in message.parts:
        if isinstance(part, TextPart):
            if part.text:
                lines.append(f"{who}: {clipped(part.text, _TEXT)}")
        elif isinstance(part, FilePart):
            lines.append(f"{who} gave a file: {part.filename or part.media_type}")
        elif isinstance(part, ToolCallPart):
            lines.append(_call(part))
        elif isinstance(part, OutputPart) and not part.in_text:
            lines.append(f"{who}: {clipped(_plain(part.value), _TEXT)}")
    return lines


def _call(part: ToolCallPart) -> str:
    given = part.raw if part.raw is not None else part.input
    told = f"Assistant called {part.tool} with {clipped(_plain(given), _INPUT)}"
    if part.outcome in {"completed", "skipped"}:
        return f"{told}\nResult: {clipped(_plain(part.output), _OUTPUT)}"
    return f"{told}\n{part.outcome or 'open'}: {clipped(part.error or '', _INPUT)}"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
