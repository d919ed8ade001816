"""
Workers are killed, and nothing is lost and nothing done twice: the short form of ``nox -s kill``.

R-1, R-3b, R-10, R-12, R-13, R-20, R-21, R-22, R-25 and R-42, by what a store holds when all is over.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from ..processes import command


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_killed_workers_of_sqlite_lose_and_double_nothing() -> None:
    campaign("sqlite", 20)


@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
def test_killed_workers_of_postgresql_lose_and_double_nothing(postgres: str) -> None:
    campaign(postgres, 10)


def campaign(store: str, kills: int) -> None:
    done = subprocess.run(
        command("tests.campaign", f"--kills={kills}", f"--store={store}"),
        capture_output=True,
        text=True,
        check=False,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
