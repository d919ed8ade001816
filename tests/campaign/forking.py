"""Processes that have imported everything already, and the store that they share."""

from __future__ import annotations

import contextlib
import os
import traceback
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio

from ..postgres import fresh_database

__all__ = ("a_store", "fork")


def fork(task: Callable[..., Coroutine[Any, Any, None]], *args: Any, log: Path, **how: Any) -> int:
    """Run a coroutine in a process of its own: everything is imported already."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        with log.open("a") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        anyio.run(task, *args, **how)
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


@contextlib.contextmanager
def a_store(kind: str, folder: Path) -> Iterator[str]:
    if kind == "sqlite":
        yield f"sqlite:///{folder / 'pai.db'}"
    elif kind == "postgresql":
        with fresh_database() as url:
            yield url
    else:
        yield kind
