"""``pai new``: what it makes works at once."""

from __future__ import annotations

import ast
import faulthandler
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from pai.cli import _new
from pai.errors import DefinitionError

ROOT = Path(__file__).parents[2]
MADE = {
    ".gitignore",
    "README.md",
    "noxfile.py",
    "pyproject.toml",
    "src/pai_at_most/__init__.py",
    "src/pai_at_most/_logic.py",
    "src/pai_at_most/plugin.py",
    "src/pai_at_most/py.typed",
    "tests/test_plugin.py",
}


def run(*command: str | Path, cwd: Path, **environment: str) -> str:
    """Run a program; give what it printed."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("PAI_", "PY"))}
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**kept, **environment},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def made(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def install(folder: Path, site: Path) -> None:
    """Leave what pip would: the metadata of the package beside its modules."""
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = site / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    points = [f"{key} = {value}" for key, value in project["entry-points"]["pai"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[pai]", *points, ""]))


@pytest.mark.parametrize("name", ["at-most", "options", "class"])
def test_the_tests_of_a_new_plugin_pass(tmp_path: Path, name: str) -> None:
    run(sys.executable, "-m", "pai", "new", "plugin", name, cwd=tmp_path, PYTHONPATH=str(ROOT))
    folder = tmp_path / f"pai-{name}"
    if name == "at-most":
        assert made(folder) == MADE
    install(folder, folder / "src")
    path = os.pathsep.join([str(folder / "src"), str(ROOT)])
    out = run(
        sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=folder, PYTHONPATH=path
    )
    assert "8 passed" in out


def test_what_is_made_declares_what_it_needs(tmp_path: Path) -> None:
    folder = _new.make_plugin("pai-at-most", tmp_path / "anywhere")
    assert made(folder) == MADE
    project = tomllib.loads((folder / "pyproject.toml").read_text())
    assert project["project"]["name"] == "pai-at-most"
    assert project["project"]["entry-points"] == {"pai": {"at-most": "pai_at_most.plugin"}}
    assert "pai-core>=0.1,<0.2" in project["project"]["dependencies"]
    core = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert core["version"].startswith("0.1.")
    # Another editor or tool than ours must find nothing to change.
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix != ".typed":
            text = path.read_text("utf-8")
            assert "$" not in text
            assert text.endswith("\n")
            assert all(line == line.rstrip() and len(line) <= 100 for line in text.splitlines())


def test_names_of_the_file_are_not_taken_twice(tmp_path: Path) -> None:
    tree = ast.parse(
        (_new.make_plugin("at-most", tmp_path) / "src/pai_at_most/plugin.py").read_text()
    )
    names = {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
    } | {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    capitalized = {name for name in names if name[0].isupper()} - {"AtMost"}
    assert capitalized == _new._TAKEN


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("AtMost", "write lower-case letters and digits, with hyphens between"),
        ("at_most", "is no name"),
        ("at--most", "is no name"),
        ("2nd", "is no name"),
        ("../x", "is no name"),
        ("", "is no name"),
        ("pai-", "is no name"),
        ("x" * 61, "is no name"),
        ("core", "pai-core is pai itself"),
        ("pai-core", "pai-core is pai itself"),
    ],
)
def test_a_name_may_be_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DefinitionError, match=told) as caught:
        _new.make_plugin(name, None)
    assert [fault.path for fault in caught.value.faults] == ["name"]
    assert made(tmp_path) == set()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    _new.make_plugin("at-most", folder)
    (folder / "README.md").write_text("mine")
    with pytest.raises(DefinitionError, match="there is something in"):
        _new.make_plugin("at-most", folder)
    assert (folder / "README.md").read_text() == "mine"
    with pytest.raises(DefinitionError, match="there is something in"):
        _new.make_plugin("at-most", folder / "README.md")


@pytest.mark.skipif(
    not (os.environ.get("CI") or os.environ.get("PAI_TEST_INSTALL")),
    reason="installs from the package index, which takes minutes: set PAI_TEST_INSTALL=1",
)
def test_nox_is_green_at_once(tmp_path: Path) -> None:
    """From the wheel of the core, in fresh environments, with plain virtualenv."""
    # Here the time limit of a test is that of each program.
    faulthandler.cancel_dump_traceback_later()
    run(sys.executable, "-m", "venv", "venv", cwd=tmp_path)
    python = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin") / "python"
    pip = (python, "-m", "pip", "--disable-pip-version-check")
    run(*pip, "wheel", "--no-deps", "-w", "dist", ROOT, cwd=tmp_path)
    (wheel,) = (tmp_path / "dist").glob("pai_core-*.whl")
    run(*pip, "install", wheel, "nox>=2025.2.9", "virtualenv", cwd=tmp_path)
    run(python, "-m", "pai", "new", "plugin", "at-most", cwd=tmp_path)
    folder = tmp_path / "pai-at-most"
    out = run(python, "-m", "nox", "-db", "virtualenv", cwd=folder)
    assert "8 passed" in out
