"""Distributions on disk, as pip leaves them: a folder of metadata beside the modules."""

from __future__ import annotations

import importlib
import importlib.metadata
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

HEAD = "from pai import hookimpl\n"

SIMPLE = '''
from pai import hookimpl

@hookimpl
def run_started(run):
    """Do nothing."""
'''


class Site:
    """A folder of installed distributions."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def add(
        self,
        distribution: str,
        points: Mapping[str, str] | str,
        version: str | None = "1.0",
        **modules: str,
    ) -> None:
        """
        Install a distribution.

        Args:
            distribution: Its name.
            points: Entry points of the group ``pai`` by name, or the text of the whole file.
            version: ``None``: there is no METADATA.
            modules: The source of each module.
        """
        info = self.folder / f"{distribution.replace('-', '_')}-{version or '0'}.dist-info"
        info.mkdir()
        if version is not None:
            head = f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n"
            (info / "METADATA").write_text(head)
        if not isinstance(points, str):
            lines = [f"{name} = {value}" for name, value in points.items()]
            points = "\n".join(["[pai]", *lines, ""])
        (info / "entry_points.txt").write_text(points)
        for name, source in modules.items():
            (self.folder / f"{name}.py").write_text(source)
        importlib.invalidate_caches()


@contextmanager
def only_site(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Let this process see the distributions of one folder, and no others."""
    site = Site(folder)
    everywhere = importlib.metadata.distributions
    monkeypatch.setattr(importlib.metadata, "distributions", lambda: everywhere(path=[str(folder)]))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delenv("PAI_PLUGINS", raising=False)
    before = set(sys.modules)
    yield site
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
            del sys.modules[name]
