"""Which plugins a command loads: the command line, else ``PAI_PLUGINS``, else the file."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Annotated

import attrs
from cyclopts import Parameter

from pai.errors import DefinitionError, Fault

__all__ = ("Choice", "Chosen")

Chosen = dict[str, dict[str, object]] | tuple[()] | None
"""What ``create_pai(plugins=...)`` is given: options by name, none, or whatever is installed."""


@attrs.frozen
class Choice:
    """The options of a command that loads plugins."""

    plugin: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="An installed plugin to load; give it several times for several, in order.",
        ),
    ] = ()
    option: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="An option of a plugin, as NAME.KEY=VALUE; the value is JSON, else text.",
        ),
    ] = ()
    no_plugins: Annotated[
        bool, Parameter(negative="", show_default=False, help="Load no installed plugin.")
    ] = False

    def plugins(self) -> Chosen:
        """
        What ``create_pai(plugins=...)`` is to be given.

        Options of the file hold for the plugins that are chosen, wherever that is said; those of
        the command line come on top.

        Raises:
            DefinitionError: The file or an option has faults.
        """
        if self.no_plugins:
            if self.plugin or self.option:
                fault = Fault("no-plugins", "--plugin and --option say the contrary")
                raise DefinitionError([fault], subject="options")
            return ()
        from pai.cli._config import read_config

        said = read_config().plugins
        of_file = said if isinstance(said, dict) else {}
        names = self._names(said)
        if names is None:
            return None
        chosen = {name: dict(of_file.get(name, {})) for name in names}
        faults = []
        for text in self.option:
            faults += _set_option(chosen, text)
        if faults:
            raise DefinitionError(faults, subject="options")
        return chosen

    def _names(self, of_file: Iterable[str] | None) -> list[str] | None:
        if self.plugin:
            return list(self.plugin)
        variable = os.environ.get("PAI_PLUGINS")
        if variable is not None:
            return [name.strip() for name in variable.split(",") if name.strip()]
        if of_file is not None:
            return list(of_file)
        if self.option:
            from pai.lifecycle import installed_plugins

            return [plugin.name for plugin in installed_plugins()]
        return None


def _set_option(chosen: dict[str, dict[str, object]], text: str) -> list[Fault]:
    import json

    way, equals, value = text.partition("=")
    name, *keys = way.split(".")
    if not equals or not keys or not all(keys):
        return [Fault(way, "expected NAME.KEY=VALUE")]
    if name not in chosen:
        loaded = ", ".join(chosen) or "none"
        return [Fault(way, f"the plugin {name!r} is not loaded; loaded: {loaded}")]
    table = chosen[name]
    for key in keys[:-1]:
        below = table.get(key)
        inner = below if isinstance(below, dict) else {}
        table[key] = inner
        table = inner
    try:
        table[keys[-1]] = json.loads(value)
    except ValueError:
        table[keys[-1]] = value
    return []
