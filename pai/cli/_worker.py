"""``pai worker``: a process that works on runs until it is told to end."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time

import anyio

from pai.cli._plugins import warn
from pai.errors import DefinitionError, Fault
from pai.runtime import Pai

__all__ = ("run_worker",)

_PATIENCE = 5.0
"""Seconds that tools in threads have to heed their signal."""


def run_worker(app: Pai) -> int:
    """
    Work until SIGTERM or SIGINT; then hand the runs under way back, and return the exit code.

    Raises:
        DefinitionError: Nobody else can have runs in its store.
        PaiError: The store can't be opened.
    """
    if not app.durable:
        message = "a worker needs a store that others share: sqlite:///path or postgresql://…"
        raise DefinitionError([Fault("store", message)], subject="worker")
    logging.basicConfig(stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    warn(app.plugins)
    anyio.run(_work, app.working(True))
    _leave()
    return 0


async def _work(app: Pai) -> None:
    async with app:
        _say(f"ready: works on runs of {', '.join(app.agents)}")
        if sys.platform == "win32":
            await anyio.sleep_forever()
        # A second signal while it ends is not waited for: it ends the process.
        with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
            async for _ in signals:
                break
        _say("ending: runs under way are handed to other workers")


def _leave() -> None:
    """End with 0, also where a tool's thread does not heed its signal: its run is elsewhere."""
    until = time.monotonic() + _PATIENCE
    others = [
        thread
        for thread in threading.enumerate()
        if not thread.daemon and thread is not threading.main_thread()
    ]
    for thread in others:
        thread.join(max(until - time.monotonic(), 0.0))
    if any(thread.is_alive() for thread in others):
        _say("ended, although a tool's thread did not heed its signal")
        sys.stderr.flush()
        os._exit(0)


def _say(line: str) -> None:
    print(line, flush=True)
