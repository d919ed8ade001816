"""What applications and other plugins rely on."""

from __future__ import annotations

import pytest
from pai_compaction import compaction

from pai.testing import check_plugin

pytestmark = pytest.mark.anyio


async def test_it_keeps_what_others_rely_on() -> None:
    await check_plugin(lambda: compaction(100_000))


async def test_it_keeps_it_without_a_budget() -> None:
    await check_plugin(compaction)
