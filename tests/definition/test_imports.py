"""What importing costs: counted in modules, since a count is the same on every machine."""

from __future__ import annotations

import subprocess
import sys

import pytest

COUNT = """
import sys
before = set(sys.modules)
{statement}
names = "{heavy}".split()
print(len(set(sys.modules) - before), *[name for name in names if name in sys.modules])
"""
HEAVY = (
    "openai httpx httpx2 sqlalchemy alembic starlette pydantic stevedore cattrs anyio trio asyncio"
    " hypothesis jsonschema_rs docstring_parser rfc8785 importlib.metadata"
)


@pytest.mark.parametrize(
    ("statement", "most"),
    [("import pai", 200), ("from pai import define_agent, hookimpl, tool", 260)],
)
def test_importing_loads_few_modules_and_none_that_is_heavy(statement, most):
    """A-DEF-1: what a definition does not need is loaded when it is needed."""
    made = subprocess.run(
        [sys.executable, "-c", COUNT.format(statement=statement, heavy=HEAVY)],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    count, *heavy = made.stdout.split()
    assert heavy == []
    assert int(count) < most
