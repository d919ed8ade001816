"""How soon another worker goes on where one was killed."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from pai import create_pai, define_agent
from pai.protocol import RunStarted
from pai.runtime import _engines
from pai.testing import Hang, ScriptedModel

from ..processes import command

LEASE = 2.0


async def hang(url: str) -> None:
    """Take a run, and never bring it to its end: this is what the process below does."""
    agent = define_agent(name="a", model=ScriptedModel([["so far", Hang()]]))
    async with create_pai(agents={"a": agent}, store=url, lease=LEASE) as app:
        run = await app.thread("a", thread_id="t").send("go", run_id="r")
        async for event in run.events():
            if event.type == "text-delta":
                sys.stdout.write("ready\n")
                sys.stdout.flush()


@pytest.mark.anyio
@pytest.mark.skipif(sys.platform == "win32", reason="no kill -9")
async def test_a_takeover_comes_within_the_lease_and_one_look(tmp_path: Path) -> None:
    """R-4: the lease, one look, and a second."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    agent = define_agent(name="a", model=ScriptedModel(["done"]))

    def killed() -> float:
        with subprocess.Popen(
            command("tests.campaign.test_takeover_time", url), stdout=subprocess.PIPE, text=True
        ) as worker:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
            worker.send_signal(signal.SIGKILL)
            return time.monotonic()

    async with create_pai(agents={"a": agent}, store=url) as app:
        then = await anyio.to_thread.run_sync(killed)
        run = await app.thread("a", thread_id="t").run("r")
        with anyio.fail_after(20):
            async for event in run.events():
                if isinstance(event, RunStarted) and event.attempt == 2:
                    break
        took = time.monotonic() - then
    assert took < LEASE + _engines.POLL + 1


if __name__ == "__main__":
    anyio.run(hang, sys.argv[1])
