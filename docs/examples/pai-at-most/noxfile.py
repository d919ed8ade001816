"""``nox`` makes an environment of its own and runs the tests in it."""

from __future__ import annotations

import importlib.metadata
import json
import os
import urllib.parse
import urllib.request

import nox

nox.needs_version = ">=2025.2.9"
nox.options.default_venv_backend = "uv|virtualenv"


def core() -> str:
    """
    Say what to install as pai-core.

    That is what ``PAI_CORE`` names, else the folder or file that nox's own environment has it from,
    else what the package index has.
    """
    if named := os.environ.get("PAI_CORE"):
        return named
    try:
        text = importlib.metadata.distribution("pai-core").read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        text = None
    url = urllib.parse.urlsplit(json.loads(text)["url"] if text else "")
    return urllib.request.url2pathname(url.path) if url.scheme == "file" else "pai-core"


@nox.session
def tests(session: nox.Session) -> None:
    """Run the tests on the installed package."""
    project = nox.project.load_toml("pyproject.toml")
    session.install(core(), "-e.", *nox.project.dependency_groups(project, "test"))
    session.run("pytest", *session.posargs)
