"""What a turn asks of the store does not grow with its thread."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from pai.runtime import _engines, _side_jobs

from .growth import grow

TURNS = 40


def test_a_turn_costs_what_the_second_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the history is read in more and more rows; a run of two steps is few transactions."""
    # Looks for others' work would be counted, too.
    monkeypatch.setattr(_engines, "POLL", 1e6)
    monkeypatch.setattr(_side_jobs, "POLL", 1e6)
    series = anyio.run(grow, f"sqlite:///{tmp_path / 'growth.db'}", TURNS)
    assert {counts.transactions for counts in series} <= set(range(1, 9))
    assert len({counts.writes for counts in series}) == 1
    # Who watches may have to look into the log once.
    assert {counts.rows for counts in series} <= set(range(13))
    # Three messages and a call a turn.
    assert [counts.history for counts in series] == [4 * turn for turn in range(TURNS)]
    assert max(counts.reads for counts in series) <= 3
