"""Composing plugins: :func:`compose_lifecycle`."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable

import attrs

from pai.errors import DefinitionError, Fault
from pai.hookspecs import Hooks

__all__ = ("HOOK_NAMES", "Lifecycle", "compose_lifecycle", "plugin_name")

HOOK_NAMES: tuple[str, ...] = tuple(
    [name for name, item in vars(Hooks).items() if inspect.isfunction(item)]
)


@attrs.frozen(eq=False)
class Lifecycle:
    """
    Plugins in order, checked: what ``lifecycle=`` takes.

    Attributes:
        plugins: Left to right.
    """

    plugins: tuple[object, ...]


def plugin_name(plugin: object) -> str:
    """What a plugin is called in messages: its ``name``, else its class or module."""
    name = getattr(plugin, "name", None)
    if isinstance(name, str) and name:
        return name
    if inspect.ismodule(plugin):
        return plugin.__name__
    return type(plugin).__qualname__


def compose_lifecycle(*plugins: object) -> Lifecycle:
    """
    Put plugins in order, left to right (A-LIFE-2).

    Args:
        plugins: Objects or modules with ``@hookimpl`` functions, or compositions.

    Raises:
        DefinitionError: All mistakes at once: an unknown hook or argument, a public attribute with
            a hook's name and no ``@hookimpl``, one object twice, ``wrapper=True``.
    """
    flat: list[object] = []
    for plugin in plugins:
        flat += plugin.plugins if isinstance(plugin, Lifecycle) else [plugin]
    faults: list[Fault] = []
    seen: set[int] = set()
    for plugin in flat:
        at = plugin_name(plugin)
        if id(plugin) in seen:
            faults.append(Fault(at, "the same object stands twice: make a second instance"))
        seen.add(id(plugin))
        faults += _plugin_faults(plugin, at)
    if faults:
        raise DefinitionError(faults, subject="lifecycle")
    return Lifecycle(tuple(flat))


def _plugin_faults(plugin: object, at: str) -> list[Fault]:
    if isinstance(plugin, type):
        return [Fault(at, f"is a class: give an instance, {plugin.__name__}(...)")]
    faults = []
    marked = 0
    for name in dir(plugin):
        if name.startswith("__"):
            continue
        try:
            item = inspect.getattr_static(plugin, name)
            member = getattr(plugin, name)
        except Exception:  # noqa: BLE001, S112  # a property of theirs that fails is no hook
            continue
        if isinstance(item, property):
            continue
        options = getattr(member, "pai_impl", None)
        if not isinstance(options, dict):
            if name in HOOK_NAMES and callable(member):
                faults.append(Fault(f"{at}.{name}", "has a hook's name and no @hookimpl"))
            continue
        marked += 1
        hook = options.get("specname") or name
        if hook not in HOOK_NAMES:
            near = difflib.get_close_matches(hook, HOOK_NAMES, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            faults.append(Fault(f"{at}.{name}", f"there is no hook of this name{hint}"))
            continue
        if options.get("wrapper") or options.get("hookwrapper"):
            faults.append(
                Fault(f"{at}.{name}", "wrapper=True does not work with async hooks:"
                      " use wrap_model_call to stand around the model")
            )  # fmt: skip
            continue
        faults += _argument_faults(member, hook, f"{at}.{name}")
        if hook == "transform_aside" and inspect.iscoroutinefunction(member):
            faults.append(Fault(f"{at}.{name}", "must be sync: it is called where the item is written"))
    if not marked and not faults:
        faults.append(Fault(at, "has no @hookimpl function: it would do nothing"))
    return faults


def _argument_names(function: Callable[..., object]) -> list[str]:
    """The arguments that pluggy would pass: positional, without a default, ``self`` left out."""
    return [
        name
        for name, item in inspect.signature(function).parameters.items()
        if item.default is item.empty
        and item.kind in (item.POSITIONAL_ONLY, item.POSITIONAL_OR_KEYWORD)
        and name != "self"
    ]


def _argument_faults(member: Callable[..., object], hook: str, at: str) -> list[Fault]:
    allowed = _argument_names(getattr(Hooks, hook))
    return [
        Fault(f"{at}({name})", f"{hook} has no such argument; it has {', '.join(allowed)}")
        for name in _argument_names(member)
        if name not in allowed
    ]
