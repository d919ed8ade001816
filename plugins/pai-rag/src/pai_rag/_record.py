"""A record: a document that is handed over, and not read from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from pai import Fault
from pai_rag._key import text_fault
from pai_rag._sections import MEDIA_TYPES

__all__ = ("Record", "record_of")


@attrs.frozen
class Record:
    """
    A document to index.

    Args:
        id: Unique within its partition; indexing it again replaces it.
        text: Markdown, HTML or plain text.
        title: Its name; without one its first heading, else the id.
        url: Where it is, for citations.
        media_type: ``text/markdown``, ``text/html`` or ``text/plain``.
    """

    id: str
    text: str
    title: str | None = None
    url: str | None = None
    media_type: str = "text/plain"


_FIELDS = {field.name: field for field in attrs.fields(Record)}


def record_of(value: Record | Mapping[str, object], at: str, faults: list[Fault]) -> Record | None:
    """*value* as a record; what is wrong with it is added to *faults*."""
    given: dict[str, Any] = (
        {name: getattr(value, name) for name in _FIELDS}
        if isinstance(value, Record)
        else dict(value)
    )
    found = [Fault(f"{at}.{key}", "no field of a record") for key in given if key not in _FIELDS]
    for name, field in _FIELDS.items():
        item = given.get(name, None if field.default is attrs.NOTHING else field.default)
        if item is None and name in ("title", "url"):
            continue
        if not isinstance(item, str):
            found.append(Fault(f"{at}.{name}", f"expected text, got {type(item).__name__}"))
        elif fault := text_fault(item, empty=name == "text"):
            found.append(Fault(f"{at}.{name}", fault))
        elif name == "media_type" and item not in MEDIA_TYPES:
            found.append(Fault(f"{at}.{name}", f"expected one of {', '.join(MEDIA_TYPES)}"))
    if found:
        faults += found
        return None
    return Record(**given)
