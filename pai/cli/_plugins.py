"""``pai plugins``: what is installed, what of it works, and what the script gets from it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pai.cli._choice import Choice, Chosen
from pai.errors import DefinitionError, PaiError
from pai.lifecycle import (
    RAISED,
    Installed,
    LoadedPlugins,
    PluginReport,
    cause_of,
    chosen_plugins,
    hook_of,
    installed_plugins,
    load_plugins,
    load_target,
    options_class,
)
from pai.schema import compile_schema, dump_json

if TYPE_CHECKING:
    from cyclopts import App

    from pai.schema import JsonObject, JsonValue

__all__ = ("add_commands", "load_and_warn", "print_doctor", "print_plugins", "warn")

_HEAD = ("name", "distribution", "version", "position", "state", "options")


def warn(reports: Sequence[PluginReport]) -> None:
    """Say which plugins are left out."""
    for report in reports:
        if report.error is not None:
            print(f"warning: {report.error}", file=sys.stderr)


def load_and_warn(chosen: Chosen) -> LoadedPlugins:
    """
    Load plugins, and say which are left out.

    Raises:
        DefinitionError: A name is not installed, or options do not fit.
    """
    loaded = load_plugins(chosen)
    warn(loaded.reports)
    return loaded


def print_plugins(chosen: Chosen) -> None:
    """
    Print a table of all that are installed; those that are not chosen are ``off``.

    Raises:
        DefinitionError: A name is not installed, or options do not fit.
    """
    reports = {_key(report): report for report in load_plugins(chosen).reports}
    rows = [_HEAD]
    for plugin in _in_order(reports):
        report = reports.get(_key(plugin))
        rows.append(
            (
                plugin.name,
                plugin.distribution,
                plugin.version or "",
                (report.position if report else None) or "",
                report.state if report else "off",
                ", ".join(_options(plugin)) if report and report.error is None else "",
            )
        )
    if len(rows) == 1:
        print("no plugin is installed")
        return
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        print("  ".join(map(str.ljust, row, widths)).rstrip())


def _key(plugin: Installed | PluginReport) -> tuple[str, str]:
    return plugin.name, plugin.distribution


def _in_order(reports: dict[tuple[str, str], PluginReport]) -> list[Installed]:
    """Those that are chosen, in their order, then the others."""
    order = list(reports)
    return sorted(
        installed_plugins(),
        key=lambda plugin: order.index(_key(plugin)) if _key(plugin) in reports else len(order),
    )


def _options(plugin: Installed) -> JsonObject:
    """A plugin's options by name: the JSON Schema of each."""
    cls = options_class(load_target(plugin.value))
    found = {} if cls is None else compile_schema(cls).json_schema.get("properties", {})
    return found if isinstance(found, dict) else {}


def _told(schema: JsonValue) -> str:
    """An option's default and description, as far as its schema says them."""
    if not isinstance(schema, dict):
        return ""
    default = f" = {dump_json(schema['default'])}" if "default" in schema else ""
    description = schema.get("description")
    return default + (f": {description}" if description else "")


def print_doctor(choice: Choice) -> int:
    """Print all that is known of each chosen plugin, and how to mend it; 1 if one is broken."""
    try:
        loaded = load_plugins(choice.plugins())
    except DefinitionError as error:
        print(f"{type(error).__name__}: {error}")
        return 1
    installed = {_key(plugin): plugin for plugin in installed_plugins()}
    for report in loaded.reports:
        plugin = installed[_key(report)]
        print(f"{report.name}: {report.state}")
        print(f"  {report.distribution} {report.version or '(no version)'}, {plugin.value}")
        if report.position is not None:
            side = {"first": "left", "last": "right"}[report.position]
            print(f"  stands {side} of the agents' own plugins")
        if report.error is not None:
            print("\n".join(f"  {line}" for line in _story(report.error)))
            continue
        for name, schema in _options(plugin).items():
            print(f"  option {name}{_told(schema)}")
    broken = sum(report.error is not None for report in loaded.reports)
    print(f"{len(loaded.reports)} plugins, {broken} broken")
    return 1 if broken else 0


def _story(error: PaiError) -> list[str]:
    """What was raised, whole, and where: who looks here may read it."""
    cause = error.__cause__
    if cause is None:
        return [str(error), "remove all but one of them, or choose others"]
    lines = "".join(traceback.format_exception_only(cause)).rstrip().splitlines()
    frames = traceback.extract_tb(cause.__traceback__)
    if frames and not isinstance(cause, PaiError):
        lines.append(f"in {frames[-1].filename}, line {frames[-1].lineno}")
    return lines


def add_commands(app: App) -> None:
    """Let the chosen plugins add their commands; one that can't is reported, the rest work."""
    try:
        chosen = chosen_plugins(Choice().plugins())
    except DefinitionError as error:
        print(f"warning: no plugin adds commands: {error}", file=sys.stderr)
        return
    for plugin, _ in chosen:
        if plugin.rivals or plugin.unreadable is not None:
            continue  # the commands that load plugins say so
        try:
            register = hook_of(load_target(plugin.value), "register_cli")
            if register is not None:
                register(app)
        except RAISED as error:
            print(
                f"warning: the commands of the plugin {plugin.name!r} of {plugin.distribution} are"
                f" left out: {cause_of(error)}",
                file=sys.stderr,
            )
