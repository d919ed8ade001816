"""
The compiled chains: what the loop runs of a lifecycle.

pluggy orders; here each phase becomes a plain tuple once, when a runtime is built, with the wanted
arguments settled. A phase that nobody implements is an empty tuple and costs one truth test.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any, Final

import pluggy

from pai.errors import PluginError
from pai.hookspecs import Hooks
from pai.lifecycle._compose import HOOK_NAMES, Lifecycle, plugin_name

__all__ = ("Chains", "Hook", "broken_hook")


class Hook:
    """
    One implementation of one hook.

    Attributes:
        call: Takes the hook's arguments in the order of its card (``state`` excepted) and passes
            on those the implementation wants; what it returns may have to be awaited.
        is_async: Whether it has to be.
        phase: The hook's name.
        plugin: The plugin's name.
        distribution: The distribution that brought it, where it was installed.
        reason: Why it stands where it does.
    """

    __slots__ = ("call", "distribution", "is_async", "phase", "plugin", "reason")

    def __init__(
        self,
        call: Callable[..., Any],
        is_async: bool,
        phase: str,
        plugin: str,
        distribution: str | None,
        reason: str,
    ) -> None:
        self.reason: Final = reason
        self.call: Final = call
        self.is_async: Final = is_async
        self.phase: Final = phase
        self.plugin: Final = plugin
        self.distribution: Final = distribution


class _ByIdentity:
    """Stands in for a plugin towards pluggy, which compares with ``==``: equal ones would clash."""

    def __init__(self, plugin: object) -> None:
        self._plugin = plugin

    def __getattr__(self, name: str) -> object:
        return getattr(self._plugin, name)

    def __dir__(self) -> Iterable[str]:
        return [name for name in dir(self._plugin) if not name.startswith("__")]



# The arguments of each hook, in the order the loop gives them.
_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(
        [arg for arg in inspect.signature(getattr(Hooks, name)).parameters if arg != "self"]
    )
    for name in HOOK_NAMES
}


class Chains:
    """All phases of an agent's lifecycle, each a tuple of hooks, left to right."""

    __slots__ = (
        "accept_message", "after_tool_result", "before_tool_call", "prepare_model_step",
        "prepare_run", "rewrite_tool_input", "run_settled", "run_started", "step_finished",
        "thread_deleted", "tool_settled", "transform_aside", "transform_step_stream",
        "wrap_model_call",
    )  # fmt: skip

    accept_message: tuple[Hook, ...]
    prepare_run: tuple[Hook, ...]
    prepare_model_step: tuple[Hook, ...]
    wrap_model_call: tuple[Hook, ...]
    transform_step_stream: tuple[Hook, ...]
    rewrite_tool_input: tuple[Hook, ...]
    before_tool_call: tuple[Hook, ...]
    after_tool_result: tuple[Hook, ...]
    transform_aside: tuple[Hook, ...]
    run_started: tuple[Hook, ...]
    step_finished: tuple[Hook, ...]
    tool_settled: tuple[Hook, ...]
    run_settled: tuple[Hook, ...]
    thread_deleted: tuple[Hook, ...]

    def __init__(self, lifecycle: Lifecycle) -> None:
        manager = pluggy.PluginManager("pai")
        manager.add_hookspecs(Hooks)
        # pluggy calls the last registered first: right to left makes its order left to right.
        for index, plugin in reversed(list(enumerate(lifecycle.plugins))):
            manager.register(_ByIdentity(plugin), name=f"{index}:{plugin_name(plugin)}")
        for phase in self.__slots__:
            caller: pluggy.HookCaller = getattr(manager.hook, phase)
            setattr(
                self, phase, tuple([_compiled(phase, i) for i in reversed(caller.get_hookimpls())])
            )


def _compiled(phase: str, impl: pluggy.HookImpl) -> Hook:
    given = [name for name in _ARGUMENTS[phase] if name != "state"]
    wanted = impl.argnames
    function = impl.function
    plugin = impl.plugin._plugin
    owner = id(plugin)
    call: Callable[..., Any]
    if tuple(given) == tuple(wanted):
        call = function
    elif len(given) == 1:
        call = _one(function, wanted, owner)
    else:
        call = _some(function, given, wanted, owner)
    distribution = getattr(plugin, "__pai_distribution__", None)
    reason = "in the order given"
    if impl.tryfirst:
        reason = "tryfirst"
    elif impl.trylast:
        reason = "trylast"
    return Hook(
        call,
        inspect.iscoroutinefunction(function),
        phase,
        plugin_name(plugin),
        distribution,
        reason,
    )


def _state(value: Any, owner: int) -> dict[str, object]:
    state_of = getattr(value, "state_of", None)
    if state_of is None:
        return {}
    found: dict[str, object] = state_of(owner)
    return found


def _one(function: Callable[..., Any], wanted: tuple[str, ...], owner: int) -> Callable[..., Any]:
    """A hook with one argument of its own: the shapes that come often, without a loop."""
    if not wanted:
        return lambda value: function()
    if wanted == ("state",):
        return lambda value: function(_state(value, owner))
    if wanted[0] == "state":
        return lambda value: function(_state(value, owner), value)
    return lambda value: function(value, _state(value, owner))


def _some(
    function: Callable[..., Any], given: list[str], wanted: tuple[str, ...], owner: int
) -> Callable[..., Any]:
    places = [-1 if name == "state" else given.index(name) for name in wanted]
    # The first argument knows the run; transform_aside has it second.
    source = given.index("run") if "run" in given else 0

    def call(*values: Any) -> Any:
        return function(
            *[values[at] if at >= 0 else _state(values[source], owner) for at in places]
        )

    return call


def broken_hook(hook: Hook, error: BaseException) -> PluginError:
    """The error that tells whose hook raised, in which phase (R-33)."""
    origin = f" of {hook.distribution}" if hook.distribution else ""
    return PluginError(
        f"plugin {hook.plugin!r}{origin} raised {type(error).__name__} in {hook.phase}",
        plugin=hook.plugin,
        distribution=hook.distribution,
        phase=hook.phase,
    )
