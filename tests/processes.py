"""Modules of these tests as processes of their own."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ("command",)

_ROOT = Path(__file__).parents[1]
_RUN = """
import runpy, sys
sys.path.append(sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""


def command(module: str, *arguments: object) -> list[str]:
    """
    What runs a module of these tests, on the pai that this process runs on.

    It is found behind all that is installed, so that an installed pai is not hidden by the
    checkout's; ``python -m`` would look there first, or not at all.
    """
    return [sys.executable, "-P", "-c", _RUN, str(_ROOT), module, *map(str, arguments)]
