"""Composing plugins: :func:`compose_lifecycle`."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Final

import attrs

from pai.errors import DefinitionError, Fault
from pai.hookspecs import Hooks
from pai.lifecycle._origin import Origin

__all__ = ("HOOK_NAMES", "Lifecycle", "compose_lifecycle", "implementations", "plugin_name")

HOOK_NAMES: tuple[str, ...] = tuple(
    [name for name, item in vars(Hooks).items() if inspect.isfunction(item)]
)
"""Every hook, in the order of its phase."""

_STREAMS: Final = frozenset({"wrap_model_call", "transform_step_stream"})
_SYNC: Final = frozenset({"transform_aside", "register_lifecycle", "register_cli"})


@attrs.frozen(eq=False)
class Lifecycle:
    """
    Plugins in order, checked: what ``lifecycle=`` takes.

    Attributes:
        plugins: Left to right.
        origins: Where those come from that are installed, by the plugin's ``id()``.
    """

    plugins: tuple[object, ...]
    origins: Mapping[int, Origin] = attrs.field(factory=dict)

    def name_of(self, plugin: object) -> str:
        """What one of the plugins is called: its ``name``, else its entry point's, its class."""
        origin = self.origins.get(id(plugin))
        return plugin_name(plugin) if origin is None else _own_name(plugin) or origin.name

    def declared(self, plugin: object, attribute: str) -> object:
        """What one of the plugins declares in an attribute, or its entry point's module for it."""
        origin = self.origins.get(id(plugin))
        found: object = getattr(plugin, attribute, None)
        return getattr(origin.target, attribute, None) if origin and found is None else found


def _own_name(plugin: object) -> str | None:
    try:
        name = getattr(plugin, "name", None)
    except Exception:  # a property of theirs that fails is no name
        return None
    return name if isinstance(name, str) and name else None


def plugin_name(plugin: object) -> str:
    """What a plugin is called in messages: its ``name``, else its class or module."""
    name = _own_name(plugin)
    if name is not None:
        return name
    if inspect.ismodule(plugin):
        return plugin.__name__
    if isinstance(plugin, type):
        return plugin.__qualname__
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
    origins: dict[int, Origin] = {}
    for plugin in plugins:
        if isinstance(plugin, Lifecycle):
            flat += plugin.plugins
            origins |= plugin.origins
        else:
            flat.append(plugin)
    faults: list[Fault] = []
    seen: set[int] = set()
    for plugin in flat:
        at = plugin_name(plugin)
        if id(plugin) in seen:
            faults.append(Fault(at, "the same object stands twice: make a second instance"))
            continue
        seen.add(id(plugin))
        faults += _plugin_faults(plugin, at)
    if faults:
        raise DefinitionError(faults, subject="lifecycle")
    return Lifecycle(tuple(flat), origins)


def _marker(item: object) -> Mapping[str, object] | None:
    """The options that ``@hookimpl`` left on a function."""
    options = getattr(item, "pai_impl", None)
    return options if isinstance(options, dict) else None


def implementations(plugin: object) -> dict[str, Callable[..., object]]:
    """The functions of a plugin that carry ``@hookimpl``, bound, by attribute name."""
    found: dict[str, Callable[..., object]] = {}
    for name in dir(plugin):
        if name.startswith("__"):
            continue
        item = inspect.getattr_static(plugin, name, None)
        if isinstance(item, (property, functools.cached_property)):
            continue  # asking for it would run it
        try:
            member = getattr(plugin, name)
        except Exception:  # noqa: S112  # a descriptor of theirs that fails is no hook
            continue
        options = _marker(member) or _marker(item)
        if options is None:
            continue
        if _marker(member) is None and inspect.isfunction(member):
            member.pai_impl = options  # type: ignore[attr-defined]  # as the marker does
        found[name] = member
    return found


def _plugin_faults(plugin: object, at: str) -> list[Fault]:
    if isinstance(plugin, type):
        return [Fault(at, f"is a class: give an instance, {plugin.__name__}(...)")]
    marked = implementations(plugin)
    # An attribute that is None switches an inherited hook off, as with __hash__.
    faults = [
        Fault(f"{at}.{name}", "has a hook's name and no @hookimpl")
        for name in HOOK_NAMES
        if name not in marked and inspect.getattr_static(plugin, name, None) is not None
    ]
    for name, member in marked.items():
        faults += _hook_faults(name, member, f"{at}.{name}")
    if not marked and not faults:
        faults.append(Fault(at, "has no @hookimpl function: it would do nothing"))
    limit = getattr(plugin, "hook_timeout", None)
    if limit is not None and (isinstance(limit, bool) or not _is_positive(limit)):
        faults.append(Fault(f"{at}.hook_timeout", "expected a number of seconds above 0, or None"))
    return faults


def _is_positive(value: object) -> bool:
    return isinstance(value, (int, float)) and value > 0


def _hook_faults(name: str, member: Callable[..., object], at: str) -> list[Fault]:
    options = _marker(member) or {}
    hook = options.get("specname") or name
    if not isinstance(hook, str) or hook not in HOOK_NAMES:
        near = difflib.get_close_matches(str(hook), HOOK_NAMES, 1)
        hint = f"; did you mean {near[0]}?" if near else ""
        return [Fault(at, f"there is no hook of this name{hint}")]
    if options.get("wrapper") or options.get("hookwrapper"):
        return [
            Fault(
                at,
                "wrapper=True does not work with async hooks: use wrap_model_call to stand around"
                " the model",
            )
        ]
    if not (inspect.isfunction(member) or inspect.ismethod(member)):
        return [Fault(at, "is no function or method: pluggy would pass over it")]
    faults = _argument_faults(member, hook, at)
    if hook in _SYNC and inspect.iscoroutinefunction(member):
        faults.append(Fault(at, "must be sync: it is called by code that cannot wait"))
    if hook not in _STREAMS and (
        inspect.isasyncgenfunction(member) or inspect.isgeneratorfunction(member)
    ):
        faults.append(Fault(at, "is a generator: return the answer instead of yielding it"))
    return faults


def _argument_faults(member: Callable[..., object], hook: str, at: str) -> list[Fault]:
    allowed = [
        name for name in inspect.signature(getattr(Hooks, hook)).parameters if name != "self"
    ]
    has = f"{hook} has {', '.join(allowed)}"
    faults = []
    for name, item in inspect.signature(member).parameters.items():
        if item.kind in (item.VAR_POSITIONAL, item.VAR_KEYWORD):
            continue  # never filled
        where = f"{at}({name})"
        if name in allowed and item.kind is item.KEYWORD_ONLY:
            faults.append(Fault(where, "is keyword-only: arguments are given by position"))
        elif name in allowed and item.default is not item.empty:
            faults.append(Fault(where, "has a default: pluggy never passes such an argument"))
        elif name not in allowed and item.default is item.empty:
            faults.append(Fault(where, f"there is no such argument; {has}"))
    return faults
