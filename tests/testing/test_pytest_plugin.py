"""The pytest plugin, in a test run of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TESTS = '''
import pytest
from pai import define_agent, tool
from pai.testing import Call, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend():
    return "asyncio"


@tool
def add(ctx, a: int) -> int:
    """Add."""
    if a < 0:
        raise ValueError("inside of the tool")
    return a + 1


def agent(a):
    model = ScriptedModel([Call("add", {"a": a}), "Done."])
    return define_agent(name="adds", model=model, tools={"add": add})


async def test_good(pai_app, pai_store):
    async with pai_app(agent(1), store=pai_store) as app:
        run = await app.thread("adds").send("go")
        assert (await run.result()).text == "Done."
    assert pai_app.errors == []


async def test_bad(pai_app):
    async with pai_app(agent(-1)) as app:
        assert (await (await app.thread("adds").send("go")).result()).text == "Done."


async def test_expected(pai_app):
    async with pai_app(agents={"other": agent(-1)}) as app:
        await (await app.thread("other").send("go")).result()
    (error,) = pai_app.errors
    assert str(error) == "inside of the tool"
    pai_app.errors.clear()
'''


def test_runs_on_both_stores_and_errors_that_are_shown(tmp_path: Path) -> None:
    (tmp_path / "test_app.py").write_text(TESTS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_app.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    told = done.stdout
    assert "4 passed, 1 error" in told, told + done.stderr
    assert "ERROR test_app.py::test_bad" in told
    assert "ValueError: inside of the tool" in told


def test_it_costs_a_test_run_next_to_nothing() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import pai.testing.pytest_plugin;"
        "print(*sorted(m for m in set(sys.modules) - before if m.startswith('pai')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["pai", "pai.testing", "pai.testing.pytest_plugin"]
