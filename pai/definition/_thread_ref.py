"""A thread, as code of a run sees it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from pai.protocol import Metadata

__all__ = ("ThreadRef",)


@attrs.frozen(eq=False)
class ThreadRef:
    """The thread of a run; hooks see both bags of its metadata (A-META-7)."""

    id: str
    title: str | None
    title_source: str | None
    metadata: Metadata
    created_at: datetime
