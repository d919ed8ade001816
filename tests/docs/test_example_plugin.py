"""The plugin in docs/examples, which is written from the plugin author's book alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib

import pytest

from pai import create_pai, define_agent, tool
from pai.cli import _new
from pai.testing import Call, ScriptedModel

from ..distributions import only_site
from .extensions import ROOT

FOLDER = ROOT / "docs" / "examples" / "pai-at-most"
PROJECT = tomllib.loads((FOLDER / "pyproject.toml").read_text("utf-8"))["project"]


@tool
def add(ctx, a: int, b: int) -> int:
    """Add two integers."""
    return a + b


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Only this plugin is installed, as pip does it."""
    with only_site(tmp_path / "site", monkeypatch) as found:
        shutil.copytree(FOLDER / "src" / "pai_at_most", found.folder / "pai_at_most")
        found.add(PROJECT["name"], PROJECT["entry-points"]["pai"], PROJECT["version"])
        yield found


@pytest.mark.anyio
async def test_it_works_from_create_pai(site):
    model = ScriptedModel(lambda request: Call("add", {"a": 2, "b": 3}) if request.tools else "5")
    agent = define_agent(name="calc", model=model, tools={"add": add})
    options = {"at-most": {"calls": {"add": 2}, "per": "thread"}}
    async with create_pai(agents={"main": agent}, plugins=options, strict=True) as app:
        assert [(report.name, report.state) for report in app.plugins] == [("at-most", "loaded")]
        thread = app.thread("main")
        for _ in range(2):
            run = await thread.send("Add.")
            assert (await run.result()).text == "5"
    # Two calls in the first run, then none in this conversation.
    assert [len(request.tools) for request in model.requests] == [1, 1, 0, 0]


@pytest.mark.anyio
async def test_installed_and_not_configured_it_stands_aside(site):
    model = ScriptedModel([Call("add", {"a": 2, "b": 3}), "5"])
    agent = define_agent(name="calc", model=model, tools={"add": add})
    async with create_pai(agents={"main": agent}, strict=True) as app:
        assert [report.state for report in app.plugins] == ["aside"]
        run = await app.thread("main").send("Add.")
        assert (await run.result()).text == "5"


def test_its_own_tests_pass(site):
    path = os.pathsep.join([str(site.folder), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(FOLDER / "tests")],
        cwd=FOLDER,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_is_what_pai_new_makes(tmp_path):
    """But for the hooks: a change of the templates reaches the example."""
    made = _new.make_plugin("at-most", tmp_path)
    for name in (".gitignore", "noxfile.py", "pyproject.toml"):
        lines = (made / name).read_text("utf-8").splitlines()
        own = (FOLDER / name).read_text("utf-8").splitlines()
        assert [line for line in own if line not in lines] == (
            [f'description = "{PROJECT["description"]}"'] if name == "pyproject.toml" else []
        )
        assert len(own) == len(lines)
