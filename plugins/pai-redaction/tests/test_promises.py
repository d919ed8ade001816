"""What applications and other plugins rely on."""

from __future__ import annotations

import pytest
from pai_redaction import redaction

from pai.testing import check_plugin

pytestmark = pytest.mark.anyio


async def test_it_keeps_what_others_rely_on() -> None:
    # Text is held back as long as a match could begin in it.
    await check_plugin(redaction, rechunks=True)
