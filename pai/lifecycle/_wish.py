"""Which plugins are asked for, in which order, with which options."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

import attrs

from pai.errors import DefinitionError, Fault

__all__ = ("VARIABLE", "Wish", "read_wishes")

VARIABLE = "PAI_PLUGINS"
"""The environment variable: names with commas between them, empty for none."""


@attrs.frozen(eq=False)
class Wish:
    """
    One plugin that is asked for.

    Args:
        at: Where that is said.
        name: Its name, if it is an installed one.
        options: Its options; ``None``: nothing is said of them.
        plugin: The plugin itself, if it is none that is installed.
    """

    at: str
    name: str | None = None
    options: object = None
    plugin: object = None


def read_wishes(plugins: object) -> list[Wish] | None:
    """
    Read ``plugins=``; where it is ``None``, the environment variable ``PAI_PLUGINS``.

    Args:
        plugins: Names, objects and dicts from names to options, in a sequence; or one such dict.

    Returns:
        What is asked for, in order; ``None``: whatever is installed.

    Raises:
        DefinitionError: It is nothing of the kind, or a name stands there twice.
    """
    if plugins is None:
        variable = os.environ.get(VARIABLE)
        if variable is None:
            return None
        names = [name.strip() for name in variable.split(",")]
        wishes = [Wish(VARIABLE, name) for name in names if name]
    elif isinstance(plugins, Mapping):
        wishes = list(_of_mapping(plugins))
    elif isinstance(plugins, Sequence) and not isinstance(plugins, (str, bytes)):
        wishes = []
        for index, item in enumerate(plugins):
            if isinstance(item, Mapping):
                wishes += _of_mapping(item)
            elif isinstance(item, str):
                wishes.append(Wish(f"plugins[{index}]", item))
            else:
                wishes.append(Wish(f"plugins[{index}]", plugin=item))
    else:
        message = f"expected a list of names and plugins, got {type(plugins).__name__}"
        raise DefinitionError([Fault("plugins", message)], subject="plugins")
    if faults := list(_faults(wishes)):
        raise DefinitionError(faults, subject="plugins")
    return wishes


def _of_mapping(options: Mapping[object, object]) -> Iterator[Wish]:
    for name, value in options.items():
        yield Wish(f"plugins.{name}", str(name), {} if value is None else value)


def _faults(wishes: list[Wish]) -> Iterator[Fault]:
    seen: set[str] = set()
    for wish in wishes:
        if wish.name is None:
            continue
        if not wish.name:
            yield Fault(wish.at, "is empty: expected the name of an installed plugin")
        elif wish.name in seen:
            yield Fault(wish.at, f"{wish.name!r} stands there twice")
        seen.add(wish.name)
