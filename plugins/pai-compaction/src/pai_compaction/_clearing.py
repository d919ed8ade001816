"""Which outputs of tools can go, and what stands in their place: :class:`Clearing`."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from pai import Message, MessagePart, ToolCallPart

__all__ = ("PLACEHOLDER", "Clearing")

PLACEHOLDER = "[The output was removed to save space. Call the tool again if you need it.]"


@attrs.frozen
class Clearing:
    """
    How outputs are cleared.

    The call, its input and how it ended stay, so that the history stays one that providers take.

    Args:
        placeholder: What the model reads in place of an output.
        exclude: Tools whose outputs stay.
    """

    placeholder: str = PLACEHOLDER
    exclude: frozenset[str] = frozenset()

    def takes(self, part: ToolCallPart) -> bool:
        """Whether the call has an output that can be cleared; a provider's own calls have none."""
        return (
            part.outcome in {"completed", "skipped"}
            and not part.provider_executed
            and part.tool not in self.exclude
        )

    def clear(self, message: Message, size: Callable[[object], int]) -> Message:
        """
        The message without its outputs; one that would not become shorter stays the very object.

        Args:
            message: The message.
            size: Measures an output.
        """
        parts: list[MessagePart] = []
        changed = False
        least = size(self.placeholder)
        for part in message.parts:
            if isinstance(part, ToolCallPart) and self.takes(part) and size(part.output) > least:
                part = attrs.evolve(part, output=self.placeholder)
                changed = True
            parts.append(part)
        return attrs.evolve(message, parts=tuple(parts)) if changed else message
