"""pai with every run durable, in SQLite: the cases that name no database get a temporary file."""

from __future__ import annotations

import tempfile
import uuid
from pathlib import Path

from . import pai_


class Adapter(pai_.Adapter):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.folder = tempfile.TemporaryDirectory(prefix="pai-bench-", ignore_cleanup_errors=True)

    def store_url(self, db: str | None) -> str:
        return super().store_url(db or str(Path(self.folder.name) / f"{uuid.uuid4().hex}.db"))
