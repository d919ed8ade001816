"""What applications and other plugins rely on."""

from __future__ import annotations

import pytest
from pai_prompt_cache import prompt_cache

from pai.testing import check_plugin

pytestmark = pytest.mark.anyio


async def test_it_keeps_what_others_rely_on() -> None:
    # It remembers the prefixes of the last 1,000 threads.
    await check_plugin(prompt_cache, remembers=True)
    await check_plugin(lambda: prompt_cache(watch=False))
