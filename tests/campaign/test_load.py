"""Many workers on many threads: the small form of ``nox -s load``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from ..processes import command


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_workers_share_threads_of_postgresql(postgres: str) -> None:
    """R-1, R-2: in order, and one at a time."""
    load(postgres, "--workers=4", "--threads=12", "--sends=4")


@pytest.mark.skipif(sys.platform == "win32", reason="no fork")
def test_workers_share_threads_of_sqlite() -> None:
    """R-1, R-2: the same with processes on one file."""
    load("sqlite", "--workers=3", "--threads=8", "--sends=3")


def load(store: str, *options: str) -> None:
    done = subprocess.run(
        command("tests.campaign.load", f"--store={store}", *options),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
