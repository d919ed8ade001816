"""
The loader of installed plugins (R-36).

Each is loaded by itself: one that can't be is reported by name, distribution and cause, and the
others work. What pluggy and stevedore would do at this place is to let the first ImportError end
the program, and to take one of two plugins of one name without a word.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, Literal

import attrs

from pai.errors import DefinitionError, Fault, InvalidInput, PluginError
from pai.lifecycle._compose import Lifecycle, compose_lifecycle
from pai.lifecycle._installed import Installed, installed_plugins
from pai.lifecycle._options import options_class, parse_options
from pai.lifecycle._origin import Origin
from pai.lifecycle._report import PluginReport, broken, refused
from pai.lifecycle._target import load_target, plugins_of, position_of, register
from pai.lifecycle._wish import Wish, read_wishes

__all__ = ("RAISED", "LoadedPlugins", "chosen_plugins", "load_plugins")

_log = logging.getLogger("pai.hooks")

_TOLD: Final[set[tuple[object, ...]]] = set()
"""What was logged: a process may make many runtimes."""

RAISED: Final = (Exception, SystemExit)
"""What a plugin may raise without ending the program: a script without a main guard exits."""


@attrs.frozen(eq=False)
class LoadedPlugins:
    """
    The plugins of a runtime.

    Args:
        left: Those that stand left of an agent's own.
        right: Those that stand right of it: they declare ``position = "last"``.
        reports: What became of each that was to be loaded, in their order.
    """

    left: Lifecycle = Lifecycle(())
    right: Lifecycle = Lifecycle(())
    reports: tuple[PluginReport, ...] = ()

    def around(self, own: object | None) -> Lifecycle:
        """
        An agent's whole lifecycle, where *own* is what it declares.

        Raises:
            DefinitionError: As :func:`compose_lifecycle`.
        """
        return compose_lifecycle(self.left, *(() if own is None else (own,)), self.right)


def load_plugins(plugins: object = None, *, strict: bool = False) -> LoadedPlugins:
    """
    Load plugins for a runtime.

    Args:
        plugins: Names, objects and dicts from names to options, in a sequence, or one such dict:
            these, in this order. ``None``: what ``PAI_PLUGINS`` names, else all that are installed,
            in the order of their names.
        strict: Raise if one is broken.

    Raises:
        DefinitionError: A name is not installed, or options do not fit; all such faults at once.
        PluginError: One is broken, and *strict* is set.
    """
    faults: list[Fault] = []
    places = _Places()
    # Options are checked before the first plugin is made: a fault shall leave nothing behind.
    entries = [
        entry if isinstance(entry, Wish) else _read(*entry, faults)
        for entry in _entries(read_wishes(plugins))
    ]
    if faults:
        raise DefinitionError(faults, subject="plugins")
    reports = [report for entry in entries if (report := places.put(entry, faults)) is not None]
    if faults:
        raise DefinitionError(faults, subject="plugins")
    _log_reports(reports)
    if strict:
        _refuse_broken(reports)
    return LoadedPlugins(places.lifecycle("first"), places.lifecycle("last"), tuple(reports))


def chosen_plugins(plugins: object = None) -> list[tuple[Installed, Wish | None]]:
    """
    The installed plugins that *plugins* asks for, in order; nothing is imported.

    Raises:
        DefinitionError: A name is not installed.
    """
    return [entry for entry in _entries(read_wishes(plugins)) if not isinstance(entry, Wish)]


def _entries(wishes: list[Wish] | None) -> list[Wish | tuple[Installed, Wish | None]]:
    """What to load, in order: an object, or an installed plugin with what is said of it."""
    if wishes is not None and all(wish.name is None for wish in wishes):
        return list(wishes)
    installed = installed_plugins()
    if wishes is None:
        return [(plugin, None) for plugin in installed]
    entries: list[Wish | tuple[Installed, Wish | None]] = []
    faults: list[Fault] = []
    for wish in wishes:
        if wish.name is None:
            entries.append(wish)
            continue
        found = [plugin for plugin in installed if plugin.name == wish.name]
        entries += [(plugin, wish) for plugin in found]
        if not found:
            known = ", ".join(sorted({plugin.name for plugin in installed})) or "none"
            told = f"no plugin {wish.name!r} is installed; installed: {known}"
            faults.append(Fault(wish.at, told))
    if faults:
        raise DefinitionError(faults, subject="plugins")
    return entries


@attrs.frozen(eq=False)
class _Ready:
    """An installed plugin that is imported, with its options; chosen, or merely installed."""

    plugin: Installed
    target: object
    options: object
    is_chosen: bool


def _read(plugin: Installed, wish: Wish | None, faults: list[Fault]) -> _Ready | PluginReport:
    """Import a plugin and check its options; faults of somebody's options go to *faults*."""
    if plugin.unreadable is not None:
        return broken(plugin, plugin.unreadable)
    if plugin.rivals:
        return refused(plugin, f"is left out: {', '.join(plugin.rivals)} has the same name")
    try:
        target = load_target(plugin.value)
        options, found = parse_options(
            plugin.name, options_class(target), None if wish is None else wish.options
        )
    except RAISED as error:
        return broken(plugin, error)
    if found and wish is None:
        # Nobody asked for it: that it needs options must not keep the program from working.
        return broken(plugin, InvalidInput(found, subject="needs options"))
    faults += found
    return _Ready(plugin, target, options, wish is not None)


class _Places:
    """Where plugins stand, and where they come from."""

    def __init__(self) -> None:
        self._sides: Final[dict[str, list[object]]] = {"first": [], "last": []}
        self._origins: Final[dict[int, Origin]] = {}

    def lifecycle(self, side: Literal["first", "last"]) -> Lifecycle:
        return attrs.evolve(compose_lifecycle(*self._sides[side]), origins=self._origins)

    def put(self, entry: Wish | _Ready | PluginReport, faults: list[Fault]) -> PluginReport | None:
        """Place a plugin; what is wrong with objects and options that were given: *faults*."""
        if isinstance(entry, PluginReport):
            return entry
        if isinstance(entry, _Ready):
            return self._put_installed(entry, faults)
        try:
            for part in compose_lifecycle(entry.plugin).plugins:
                self._sides[position_of(part)].append(part)
        except DefinitionError as error:
            faults += [fault.under(entry.at) for fault in error.faults]
        return None

    def _put_installed(self, ready: _Ready, faults: list[Fault]) -> PluginReport:
        plugin = ready.plugin
        try:
            given = register(ready.target, ready.options)
        except RAISED as error:
            if ready.is_chosen and isinstance(error, DefinitionError):
                # Each option fits its class, but not the others: somebody has to choose again.
                faults += [fault.under(f"plugins.{plugin.name}") for fault in error.faults]
            return broken(plugin, error)
        try:
            parts = plugins_of(ready.target, given)
            positions = [position_of(part, ready.target) for part in parts]
            # Where another entry point gives the same object, that one has it.
            compose_lifecycle(*self._sides["first"], *self._sides["last"], *parts)
        except RAISED as error:
            return broken(plugin, error)
        for part, position in zip(parts, positions, strict=True):
            self._sides[position].append(part)
            self._origins[id(part)] = Origin(
                plugin.name, plugin.distribution, plugin.version, ready.target
            )
        state: Literal["loaded", "aside"] = "loaded" if parts else "aside"
        return PluginReport(
            plugin.name,
            plugin.distribution,
            plugin.version,
            state,
            positions[0] if positions else None,
        )


def _log_reports(reports: Sequence[PluginReport]) -> None:
    for report in reports:
        key = (report.name, report.distribution, report.version, report.state)
        if key in _TOLD:
            continue
        _TOLD.add(key)
        if report.error is not None:
            _log.error("%s", report.error)
        else:
            _log.info(
                "plugin %r of %s %s: %s",
                report.name,
                report.distribution,
                report.version or "(no version)",
                report.state,
            )


def _refuse_broken(reports: Sequence[PluginReport]) -> None:
    errors = [report.error for report in reports if report.error is not None]
    if not errors:
        return
    first = errors[0]
    if len(errors) == 1:
        raise first
    raise PluginError(
        f"{len(errors)} plugins are broken:\n" + "\n".join(f"  - {error}" for error in errors),
        plugin=first.plugin,
        distribution=first.distribution,
        phase=first.phase,
    ) from ExceptionGroup("plugins", errors)
