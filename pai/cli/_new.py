"""``pai new``: a package to begin with, whose tests pass at once."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from string import Template

import attrs

from pai.errors import DefinitionError, Fault

__all__ = ("make_plugin",)

_NAME = re.compile(r"[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
_LENGTH = 60
_IN_USE = {"core": "pai-core is pai itself"}
# What the file with the class imports or defines beside it.
_TAKEN = frozenset({"Any", "Options", "StepContext", "StepPatch"})

# Template -> file.
_PLUGIN = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "gitignore": ".gitignore",
    "noxfile.py": "noxfile.py",
    "init.py": "src/$package/__init__.py",
    "logic.py": "src/$package/_logic.py",
    "plugin.py": "src/$package/plugin.py",
    "test_plugin.py": "tests/test_plugin.py",
}


@attrs.frozen
class _Names:
    """What a plugin is called in its files."""

    name: str
    distribution: str
    package: str
    class_name: str


def make_plugin(name: str, folder: Path | None) -> Path:
    """
    Make a package with a plugin.

    Args:
        name: The plugin's name: ``"at-most"``; ``"pai-at-most"`` is the same.
        folder: Where to make it; ``None``: in the folder ``pai-NAME``, here.

    Returns:
        The folder.

    Raises:
        DefinitionError: It can't be a name, or there is something in the folder already.
    """
    names = _names(name)
    root = Path(names.distribution) if folder is None else folder
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        fault = Fault("folder", f"there is something in {str(root)!r} already: name another one")
        raise DefinitionError([fault], subject="new plugin")
    values = attrs.asdict(names)
    for template, target in _PLUGIN.items():
        path = root / Template(target).substitute(values)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = _template(template).substitute(values)
        path.write_text(text, encoding="utf-8", newline="\n")
    (root / "src" / names.package / "py.typed").touch()
    return root


def _template(name: str) -> Template:
    # They end in .txt so that nobody takes them for code of ours.
    path = files("pai.cli").joinpath("templates", "plugin", f"{name}.txt")
    return Template(path.read_text("utf-8"))


def _names(name: str) -> _Names:
    own = name.removeprefix("pai-")
    told = None
    if not _NAME.match(own) or len(own) > _LENGTH:
        told = f"{name!r} is no name: write lower-case letters and digits, with hyphens between"
    elif own in _IN_USE:
        told = f"{name!r} is taken: {_IN_USE[own]}"
    if told is not None:
        raise DefinitionError([Fault("name", told)], subject="new plugin")
    class_name = "".join([word.capitalize() for word in own.split("-")])
    if class_name in _TAKEN:
        class_name += "Plugin"
    return _Names(own, f"pai-{own}", f"pai_{own.replace('-', '_')}", class_name)
