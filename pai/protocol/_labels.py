"""Labels of reasoning parts, which are kept beside their messages (A-REASON-1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from pai.protocol._parts import MessagePart, ReasoningPart

__all__ = ("labelled",)


def labelled(parts: Sequence[MessagePart], labels: Mapping[int, str]) -> tuple[MessagePart, ...]:
    """
    The parts, with labels on the reasoning parts that have text.

    Args:
        parts: A message's parts.
        labels: By the place of a part among those, from 0. One that has no part is passed over.
    """
    found: list[MessagePart] = []
    ordinal = 0
    for part in parts:
        if type(part) is ReasoningPart and part.text:
            label = labels.get(ordinal)
            ordinal += 1
            if label is not None:
                part = attrs.evolve(part, summary=label)
        found.append(part)
    return tuple(found)
