"""Stored metadata, read through the schemas of today (A-META-10)."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from pai.definition._metadata import MetadataSchemas
from pai.errors import Fault
from pai.protocol import Metadata

__all__ = ("ReadMetadata", "StoredMetadata")


class ReadMetadata(NamedTuple):
    """
    Bags as the schemas of today have them.

    Args:
        bags: A new field has its default; what does not fit any more is left out.
        hidden: What that was in the private bag: for the server alone (A-META-6).
        shown: The same of the public one.
    """

    bags: Metadata
    hidden: tuple[Fault, ...] = ()
    shown: tuple[Fault, ...] = ()


class StoredMetadata:
    """
    Reads bags of one kind, of a run, a thread or its messages.

    Args:
        schemas: What the agent declares; ``None``: bags are as they are.
    """

    __slots__ = ("_last", "_schemas")

    def __init__(self, schemas: MetadataSchemas[Any, Any] | None) -> None:
        self._schemas: Final = schemas
        self._last: tuple[Metadata, ReadMetadata] | None = None

    def read(self, bags: Metadata) -> ReadMetadata:
        """The bags; the very object where they are stored as they are read."""
        if self._schemas is None:
            return ReadMetadata(bags)
        last = self._last
        # The messages of a thread often have the same: the initial one.
        if last is not None and last[0] == bags:
            return last[1]
        made, hidden, shown = self._schemas.read(bags)
        read = ReadMetadata(bags if made == bags else made, hidden, shown)
        self._last = bags, read
        return read
