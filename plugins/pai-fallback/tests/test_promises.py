"""What applications and other plugins rely on."""

from __future__ import annotations

import pytest
from pai_fallback import fallback

from pai.testing import ScriptedModel, check_plugin

pytestmark = pytest.mark.anyio


async def test_it_keeps_what_others_rely_on() -> None:
    await check_plugin(lambda: fallback(ScriptedModel(lambda request: "Second."), first=30))
