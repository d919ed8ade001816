"""
The tasks of this project: ``nox -l`` lists them, ``nox -s NAME`` runs one.

Every session makes its own environment, with uv where it is installed and with virtualenv where
it is not, and sets up all that it needs.
"""

from __future__ import annotations

import os
import shutil
import tomllib
from pathlib import Path

import nox

nox.needs_version = ">=2025.5"
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.error_on_external_run = True

ROOT = Path(__file__).parent
NODE = ROOT / "tests" / "node"

# Name -> folder of every dist beside the core; the folder's name is the dist's.
DISTS = {
    path.parent.name: f"./{path.parent.relative_to(ROOT).as_posix()}"
    for group in ("plugins", "contrib")
    for path in sorted(ROOT.glob(f"{group}/*/pyproject.toml"))
}
EXTRAS = "[{}]".format(
    ",".join(
        tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
            "optional-dependencies"
        ]
    )
)
EDITABLE = [f"-e.{EXTRAS}", *(f"-e{folder}" for folder in DISTS.values())]

# Where an installed core is on trial: keeps the checkout off sys.path, in child processes too, and
# keeps uv from taking siblings from it as editable.
INSTALLED_ONLY = {"PYTHONSAFEPATH": "1", "UV_NO_SOURCES": "1"}
IS_INSTALLED = "import pai, sys; assert pai.__file__.startswith(sys.prefix), pai.__file__"


def pytest(session: nox.Session, *args: str, env: dict[str, str] | None = None) -> None:
    """Run pytest with the session's own arguments, or on all processors when there are none."""
    install_node_modules(session)
    session.run("pytest", *args, *(session.posargs or ["--numprocesses=auto"]), env=env)


def install_node_modules(session: nox.Session) -> None:
    """Install the mock model server; without Node the tests that need it say that they skip."""
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        session.warn("node and npm are not installed: tests that need aimock are skipped.")
        return
    lock, done = NODE / "package-lock.json", NODE / "node_modules" / ".package-lock.json"
    if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
        session.run(npm, "ci", "--no-audit", "--no-fund", f"--prefix={NODE}", external=True)


@nox.session
def demo(session: nox.Session) -> None:
    """A conversation that streams, calls a tool, and is still there in the next process."""
    session.install(".")
    session.run("python", "docs/examples/demo.py", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """All tests, with every dist of the checkout installed editable."""
    session.install("--group=test", *EDITABLE)
    pytest(session)


@nox.session(default=False)
@nox.parametrize("name", list(DISTS), ids=list(DISTS))
def plugin(session: nox.Session, name: str) -> None:
    """One dist on an installed core: what it declares must be enough."""
    session.install("--group=test", ".", DISTS[name], env=INSTALLED_ONLY)
    session.run("python", "-c", IS_INSTALLED, env=INSTALLED_ONLY)
    pytest(session, f"{DISTS[name]}/tests", env=INSTALLED_ONLY)


@nox.session(default=False)
def minimums(session: nox.Session) -> None:
    """All tests on the lowest versions that the metadata promises."""
    session.install("uv")
    session.run("uv", "pip", "install", "--resolution=lowest-direct", "--group=test", *EDITABLE)
    pytest(session)


@nox.session(default=False)
def deep(session: nox.Session) -> None:
    """The property tests of schemas, models and the loop, with 10,000 examples each."""
    session.install("--group=test", *EDITABLE)
    # Those that run whole runs or real databases stay with the ordinary number, and so do those
    # that try the strategies of pai.testing, not a rule.
    session.run(
        "pytest",
        "-m=hypothesis",
        "-ofaulthandler_timeout=0",
        "-ofaulthandler_exit_on_timeout=false",
        "--numprocesses=auto",
        *(session.posargs or [f"tests/{room}" for room in ("schema", "models", "loop")]),
        env={"HYPOTHESIS_PROFILE": "deep"},
    )


@nox.session(default=False)
def kill(session: nox.Session) -> None:
    """The kill campaign: 1,000 workers on SQLite, 300 on PostgreSQL (--kills N --store NAME)."""
    session.install("--group=test", *EDITABLE)
    forms = [["--kills=1000"], ["--kills=300", "--store=postgresql"]]
    for arguments in [session.posargs] if session.posargs else forms:
        session.run("python", "-m", "tests.campaign", *arguments)


@nox.session(default=False)
def load(session: nox.Session) -> None:
    """8 workers, 200 threads, 10 sends each on PostgreSQL (--workers, --threads, --sends)."""
    session.install("--group=test", *EDITABLE)
    session.run("python", "-m", "tests.campaign.load", *session.posargs)


@nox.session
def typing(session: nox.Session) -> None:
    """mypy, strict; and pyright on what the types of public names promise."""
    session.install("--group=typing", *EDITABLE)
    session.run("mypy", *session.posargs)
    session.run("pyright", "tests/typing")
    # A dist's own src layout is no module path from here: it is checked as it is installed.
    if packages := [f"--package={name.replace('-', '_')}" for name in DISTS]:
        session.run("mypy", *packages)


@nox.session
def imports(session: nox.Session) -> None:
    """The import contracts: calls go down, plugins are strangers."""
    session.install("--group=lint")
    session.install("--no-deps", "-e.")
    session.run("lint-imports", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, its formatter, and the changelog's fragments."""
    session.install("--group=lint")
    session.run("ruff", "check", *session.posargs)
    session.run("ruff", "format", "--check")
    session.run("towncrier", "build", "--draft", silent=True)


@nox.session
def docs(session: nox.Session) -> None:
    """The documentation; a broken reference fails."""
    session.install("--group=docs", "-e.")
    session.run("sphinx-build", "-n", "-W", "--keep-going", "docs", "docs/_build/html")


@nox.session(default=False)
def build(session: nox.Session) -> None:
    """Wheels of every dist, in dist/, then all tests against them."""
    session.install("build")
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    for folder in (".", *DISTS.values()):
        session.run("python", "-m", "build", "--outdir=dist", folder)
    core, *others = sorted(
        (ROOT / "dist").glob("*.whl"), key=lambda wheel: not wheel.name.startswith("pai_core-")
    )
    session.install("--group=test", f"{core}{EXTRAS}", *map(str, others), env=INSTALLED_ONLY)
    session.run("python", "-c", IS_INSTALLED, env=INSTALLED_ONLY)
    with session.chdir(session.create_tmp()):
        session.run("pai", "plugins", "doctor", env=INSTALLED_ONLY)
        session.run("pai", "chat", "What is 2 + 3?", env=INSTALLED_ONLY)
    pytest(session, env=INSTALLED_ONLY)


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """What a run and a chunk cost, beside a hand-written loop: a table (--rounds N, --check)."""
    session.install("--group=bench", ".")
    session.run(
        "python", "-m", "bench", *session.posargs, env={"PYTHONPATH": "tests", **INSTALLED_ONLY}
    )


if __name__ == "__main__":
    os.chdir(ROOT)
    nox.main()
