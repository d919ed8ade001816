"""Parts that come whole: those of messages, and those of a stream that are no deltas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import attrs

from pai import (
    UNSET,
    Data,
    DataPart,
    File,
    FilePart,
    OutputPart,
    ReasoningPart,
    Source,
    SourcePart,
    StepFinish,
    TextPart,
    ToolCall,
    ToolCallPart,
)
from pai_redaction._hider import Hider

__all__ = ("hide_part",)

PartT = TypeVar("PartT")
_Fields = dict[str, Callable[[Hider, Any], Any]]

_SOURCE: Final[_Fields] = dict.fromkeys(("id", "url", "title", "filename"), Hider.maybe)
# A file's content is left alone: it is no text.
_FILE: Final[_Fields] = dict.fromkeys(("url", "filename"), Hider.maybe)
_CALL: Final[_Fields] = {
    "input": Hider.value,
    "raw": Hider.raw,
    "output": Hider.value,
    "error": Hider.maybe,
    "approval": Hider.value,
}

# What is looked at, by the kind of part. Names are the application's, and ids are known elsewhere.
_FIELDS: Final[dict[type, _Fields]] = {
    TextPart: {"text": Hider.text},
    ReasoningPart: {"text": Hider.text, "summary": Hider.maybe},
    ToolCallPart: _CALL,
    ToolCall: _CALL,
    FilePart: _FILE,
    File: _FILE,
    SourcePart: _SOURCE,
    Source: _SOURCE,
    DataPart: {"value": Hider.value},
    Data: {"value": Hider.value},
    OutputPart: {"value": Hider.value},
    StepFinish: {"output": Hider.value},
}


def hide_part(hider: Hider, part: PartT, *, but: tuple[str, ...] = ()) -> PartT:
    """
    The part without what is to be hidden; the same object if there was nothing.

    Args:
        hider: Hides.
        part: The part; one of an unknown kind is left alone.
        but: Fields that are left alone.
    """
    changes: dict[str, Any] = {}
    for name, hide in _FIELDS.get(type(part), {}).items():
        old = getattr(part, name)
        if old is None or old is UNSET or name in but:
            continue
        new = hide(hider, old)
        if new != old:
            changes[name] = new
    data = getattr(part, "provider_data", None)
    if data is not None and hider.kept(data, changed=bool(changes)) is None:
        changes["provider_data"] = None
    return attrs.evolve(part, **changes) if changes else part  # type: ignore[misc]  # all are attrs classes
