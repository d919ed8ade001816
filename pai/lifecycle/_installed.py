"""
Finding installed plugins: the entry points of the group ``pai``, distribution by distribution.

A distribution that can't be read must not hide the others, so each is looked at by itself; and most
declare no plugin, so their entry points are not parsed at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import reduce
from importlib import import_module
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    from importlib.metadata import Distribution

__all__ = ("GROUP", "Installed", "import_target", "installed_plugins")

GROUP = "pai"
"""The entry-point group: ``name = "module"`` or ``name = "module:attribute"``."""

_SECTION = re.compile(rf"^\s*\[\s*{GROUP}\s*\]\s*$", re.MULTILINE)
_TARGET = re.compile(r"(?P<module>[\w.]+)(?:\s*:\s*(?P<attribute>[\w.]+))?\s*(?:\[.*\])?\Z")


@attrs.frozen
class Installed:
    """
    A plugin that an installed distribution declares; nothing of it is imported yet.

    Args:
        name: Its entry point's name.
        distribution: The distribution's name.
        version: The distribution's version, as far as it says one.
        value: What the entry point names: ``module`` or ``module:attribute``.
        rivals: Other distributions that declare a plugin of this name.
        unreadable: The error, if the distribution's entry points can't be read; the distribution's
            name then stands for the plugin's.
    """

    name: str
    distribution: str
    version: str | None
    value: str
    rivals: tuple[str, ...] = ()
    unreadable: Exception | None = None


def installed_plugins() -> list[Installed]:
    """All plugins that are installed, ordered by name; two may have the same."""
    from importlib.metadata import distributions

    found: dict[tuple[str, str, str], Installed] = {}
    seen: set[str] = set()
    for distribution in distributions():
        text = distribution.read_text("entry_points.txt")
        if not text or not _SECTION.search(text):
            continue
        name = _name(distribution)
        key = re.sub(r"[-_.]+", "-", name).lower()
        if key in seen:
            continue  # an older one of the same name, further back on the path
        seen.add(key)
        for plugin in _declared(distribution, name):
            found[plugin.name, key, plugin.value] = plugin
    listed = sorted(found.values(), key=lambda plugin: (plugin.name, plugin.distribution))
    return [attrs.evolve(plugin, rivals=_rivals(plugin, listed)) for plugin in listed]


def _rivals(plugin: Installed, listed: list[Installed]) -> tuple[str, ...]:
    return tuple(
        [
            f"{other.distribution} ({other.value})"
            for other in listed
            if other.name == plugin.name and other is not plugin
        ]
    )


def _declared(distribution: Distribution, name: str) -> Iterator[Installed]:
    version = _version(distribution)
    try:
        points = list(distribution.entry_points.select(group=GROUP))
    except Exception as error:
        yield Installed(name, name, version, "", unreadable=error)
        return
    for point in points:
        yield Installed(point.name, name, version, point.value)


def _name(distribution: Distribution) -> str:
    try:
        name: str | None = distribution.metadata["Name"]
    except Exception:  # there is no METADATA, or what there is can't be read
        name = None
    if name:
        return name
    # The folder is called NAME-VERSION.dist-info.
    folder = getattr(distribution, "_path", None)
    return str(getattr(folder, "name", "?")).partition("-")[0]


def _version(distribution: Distribution) -> str | None:
    try:
        version: str | None = distribution.metadata["Version"]
    except Exception:  # as above
        return None
    return version


def import_target(value: str) -> object:
    """
    Import what an entry point names.

    Raises:
        ImportError: It is no name of that form, or there is no such module or attribute.
        Exception: Whatever importing it raises.
    """
    match = _TARGET.match(value)
    if match is None:
        raise ImportError(f"{value!r} is neither 'module' nor 'module:attribute'")
    module = import_module(match["module"])
    if match["attribute"] is None:
        return module
    try:
        target: object = reduce(getattr, match["attribute"].split("."), module)
    except AttributeError:
        raise ImportError(f"the module {match['module']!r} has no {match['attribute']!r}") from None
    return target
