"""What applications and other plugins rely on."""

from __future__ import annotations

from pathlib import Path

import pytest
from pai_rag import Index, Record, rag

from pai import Source
from pai.testing import check_plugin

pytestmark = pytest.mark.anyio


async def test_it_keeps_what_others_rely_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'index.db'}"
    with Index(url) as index:
        index.add([Record("one", "Nothing of that.")])
    await check_plugin(lambda: rag(url))
    with Index(url) as index:
        index.add([Record("one", "Where to go on a holiday.")])
    # The user says "go": that is found, and cited.
    await check_plugin(lambda: rag(url), quiet=lambda part: not isinstance(part, Source))
