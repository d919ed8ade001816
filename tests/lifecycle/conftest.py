"""What tests of the loader need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..distributions import Site, only_site


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Give a folder of distributions that this process sees, and no others."""
    with only_site(tmp_path / "site", monkeypatch) as made:
        yield made
