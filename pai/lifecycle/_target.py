"""What the entry point of an installed plugin names, and the plugins that it gives."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Final, Literal

from pai.errors import DefinitionError, Fault
from pai.lifecycle._compose import Lifecycle, compose_lifecycle, implementations, plugin_name
from pai.lifecycle._installed import import_target

__all__ = ("hook_of", "load_target", "plugins_of", "position_of", "register")

_AT_START: Final = frozenset({"register_lifecycle", "register_cli"})


def load_target(value: str) -> object:
    """
    Import what an entry point names, and check its hooks.

    Raises:
        DefinitionError: Its hooks have faults.
        Exception: Whatever importing it raises.
    """
    target = import_target(value)
    compose_lifecycle(target)
    return target


def _hooks(target: object) -> dict[str, Callable[..., object]]:
    """The hooks of a target by their own names."""
    return {
        str(getattr(member, "pai_impl", {}).get("specname") or name): member
        for name, member in implementations(target).items()
    }


def hook_of(target: object, name: str) -> Callable[[object], object] | None:
    """The target's implementation of a hook of the start, to be called with its one argument."""
    hook = _hooks(target).get(name)
    if hook is None or inspect.signature(hook).parameters:
        return hook
    return lambda _: hook()


def register(target: object, options: object) -> object:
    """
    Ask a target for its plugins: what its ``register_lifecycle`` returns, if it has one.

    Raises:
        DefinitionError: The options do not fit together.
        Exception: Whatever else it raises.
    """
    hook = None if isinstance(target, Lifecycle) else hook_of(target, "register_lifecycle")
    return None if hook is None else hook(options)


def plugins_of(target: object, given: object) -> tuple[object, ...]:
    """
    The plugins that a target gives: those that :func:`register` returned, or the target itself.

    Raises:
        DefinitionError: What it gives is no plugin, or some of its own hooks would never run.
    """
    if isinstance(target, Lifecycle):
        return target.plugins
    own = [name for name in _hooks(target) if name not in _AT_START]
    if given is None:
        return (target,) if own else ()
    items = tuple(given) if isinstance(given, (list, tuple)) else (given,)
    plugins = compose_lifecycle(*items).plugins
    if own and not any(plugin is target for plugin in plugins):
        raise DefinitionError(
            [
                Fault(f"{plugin_name(target)}.{name}", "would never run: register_lifecycle gives"
                      " other plugins, and not the one that has this hook")
                for name in own
            ],
            subject="plugin",
        )  # fmt: skip
    return plugins


def position_of(plugin: object, target: object = None) -> Literal["first", "last"]:
    """
    On which side of the agents' own plugins it stands: what it declares, else its target.

    Raises:
        DefinitionError: It declares something else.
    """
    position = getattr(plugin, "position", None) or getattr(target, "position", None)
    if position is None:
        return "first"
    if position == "last":
        return "last"
    raise DefinitionError(
        [Fault(f"{plugin_name(plugin)}.position", 'expected "last", or nothing')], subject="plugin"
    )
