"""
The configuration file: which plugins the script loads, with which options, and which store it uses.

It is the one that ``PAI_CONFIG`` names, else ``pai.toml`` or the table ``[tool.pai]`` of a
``pyproject.toml``, whichever lies nearest, from the working directory upward::

    store = "sqlite:///pai.db"   # of commands that are given none

    [plugins]                # a list, plugins = ["rag", "redaction"], where none has options
    rag = {}

    [plugins.redaction]
    mode = "hash"

Only the script reads it: an application says ``create_pai(plugins=..., store=...)``, which takes
the same forms.
"""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import attrs

from pai.errors import DefinitionError, Fault

__all__ = ("Config", "read_config", "store_url")

_KEYS = ("plugins", "store")


@attrs.frozen
class Config:
    """
    What the configuration file says.

    Args:
        path: The file; ``None``: there is none.
        plugins: Names of plugins, or their options by name, in order; ``None``: nothing is said.
        store: The URL of the store; ``None``: nothing is said.
    """

    path: Path | None = None
    plugins: list[str] | dict[str, dict[str, object]] | None = None
    store: str | None = None


def read_config() -> Config:
    """
    Find the file and read it.

    Raises:
        DefinitionError: ``PAI_CONFIG`` names no file, or the file has faults.
    """
    named = os.environ.get("PAI_CONFIG")
    if named:
        path = Path(named)
        if not path.is_file():
            raise DefinitionError([Fault("PAI_CONFIG", f"{named!r} is no file")], subject="pai")
        return _config(path, _table(path) or {})
    here = Path.cwd()
    for folder in (here, *here.parents):
        for name in ("pai.toml", "pyproject.toml"):
            path = folder / name
            if path.is_file() and (table := _table(path)) is not None:
                return _config(path, table)
    return Config()


def _table(path: Path) -> object:
    """Our part of the file; ``None``: a project's file that says nothing of us."""
    try:
        with path.open("rb") as file:
            found: dict[str, object] = tomllib.load(file)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise DefinitionError([Fault("", f"cannot be read: {error}")], subject=str(path)) from error
    if path.name != "pyproject.toml":
        return found
    tools = found.get("tool")
    return tools.get("pai") if isinstance(tools, dict) else None


def _config(path: Path, table: object) -> Config:
    if not isinstance(table, dict):
        raise DefinitionError([Fault("tool.pai", "expected a table")], subject=str(path))
    known = ", ".join(_KEYS)
    faults = [
        Fault(key, f"there is no such key; keys: {known}") for key in table if key not in _KEYS
    ]
    plugins = table.get("plugins")
    if isinstance(plugins, dict):
        faults += [
            Fault(f"plugins.{name}", "expected a table of options")
            for name, options in plugins.items()
            if not isinstance(options, dict)
        ]
    elif plugins is not None and not (
        isinstance(plugins, list) and all(isinstance(name, str) for name in plugins)
    ):
        faults.append(Fault("plugins", "expected a list of names, or a table of options by name"))
    store = table.get("store")
    if store is not None and not isinstance(store, str):
        faults.append(Fault("store", "expected the URL of a store"))
        store = None
    if faults:
        raise DefinitionError(faults, subject=str(path))
    return Config(path, plugins, store)


def store_url(given: str | None) -> str:
    """
    The store a command works on: the one it was given, else that of the configuration file.

    Raises:
        DefinitionError: Neither names one, or the file has faults.
    """
    url = given if given is not None else read_config().store
    if url is None:
        message = 'which one? Give its URL, or write store = "..." into pai.toml'
        raise DefinitionError([Fault("store", message)], subject="pai")
    return url
