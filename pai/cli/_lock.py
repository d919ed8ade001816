"""
``pai check --lock`` and ``--locked``: the set of plugins that a deployment was tested with.

A plugin that pip brings along, or that is gone, changes what agents do without a line of code that
says so.
"""

from __future__ import annotations

import json
from pathlib import Path

from pai.errors import DefinitionError, Fault
from pai.lifecycle import LoadedPlugins

__all__ = ("lock_faults", "write_lock")

_Set = dict[str, tuple[str, str | None]]
"""Distribution and version by the plugin's name."""


def _set_of(loaded: LoadedPlugins) -> _Set:
    return {
        report.name: (report.distribution, report.version)
        for report in loaded.reports
        if report.error is None
    }


def write_lock(path: Path, loaded: LoadedPlugins) -> None:
    """
    Record the plugins that are loaded.

    Raises:
        DefinitionError: The file cannot be written.
    """
    rows = [
        {"name": name, "distribution": distribution, "version": version}
        for name, (distribution, version) in sorted(_set_of(loaded).items())
    ]
    try:
        path.write_text(json.dumps({"plugins": rows}, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unusable(path, f"cannot be written: {error.strerror}") from error


def lock_faults(path: Path, loaded: LoadedPlugins) -> list[Fault]:
    """
    Where the plugins that are loaded differ from those that were recorded.

    Raises:
        DefinitionError: The file is none that ``--lock`` wrote.
    """
    try:
        rows = json.loads(path.read_text("utf-8"))["plugins"]
        recorded: _Set = {row["name"]: (row["distribution"], row["version"]) for row in rows}
    except OSError as error:
        raise _unusable(path, f"cannot be read: {error.strerror}") from error
    except (ValueError, LookupError, TypeError) as error:
        raise _unusable(path, "is no file that --lock has written") from error
    present = _set_of(loaded)
    faults = []
    for name in sorted({*recorded, *present}):
        before, now = recorded.get(name), present.get(name)
        if before == now:
            continue
        was = f"{path} has {_told(before)}" if before else f"{path} does not have it"
        here = f"{_told(now)} is loaded" if now else "it is not loaded"
        faults.append(Fault(f"plugins.{name}", f"{was}, {here}"))
    return faults


def _told(row: tuple[str, str | None]) -> str:
    distribution, version = row
    return f"{distribution} {version or '(no version)'}"


def _unusable(path: Path, why: str) -> DefinitionError:
    return DefinitionError([Fault(str(path), why)], subject="lock")
