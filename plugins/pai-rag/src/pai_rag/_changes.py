"""What indexing did."""

from __future__ import annotations

import attrs

__all__ = ("Changes",)


@attrs.define
class Changes:
    """
    What one call changed in the index, in documents.

    Args:
        added: New ones.
        changed: Those whose content is another one.
        removed: Those that are gone.
        unchanged: Those that were left alone.
        skipped: Files that cannot be indexed, with the reason.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0
    unchanged: int = 0
    skipped: dict[str, str] = attrs.field(factory=dict)

    def __str__(self) -> str:
        text = (
            f"{self.added} added, {self.changed} changed,"
            f" {self.removed} removed, {self.unchanged} unchanged"
        )
        return f"{text}, {len(self.skipped)} skipped" if self.skipped else text
