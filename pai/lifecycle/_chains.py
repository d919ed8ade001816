"""
The compiled chains: what the loop runs of a lifecycle.

pluggy discovers and validates; here each phase becomes a plain tuple once, when a runtime is built,
with the wanted arguments settled. A phase that nobody implements is an empty tuple and costs one
truth test.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import pluggy

from pai.hookspecs import Hooks
from pai.lifecycle._compose import HOOK_NAMES, Lifecycle, implementations, plugin_name
from pai.lifecycle._hook import Hook, LateHook

__all__ = ("Chains",)

_STREAMS: Final = frozenset({"wrap_model_call", "transform_step_stream"})
_OF_PLUGIN: Final = frozenset({"state", "records"})
_OUTSIDE: Final = frozenset({"accept_message", "thread_deleted"})
"""Called where there is no run: whoever calls them gives the source of records as last argument."""

_SOURCE: Final = "(source)"

# The arguments of each hook, in the order the loop gives them.
_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    name: tuple(
        [arg for arg in inspect.signature(getattr(Hooks, name)).parameters if arg != "self"]
    )
    for name in HOOK_NAMES
}


class _Registered:
    """
    Stands in for a plugin towards pluggy, with its hooks as attributes of its own.

    pluggy compares plugins with ``==``, so that two equal frozen instances would clash.
    """

    def __init__(self, index: int, plugin: object) -> None:
        self.__dict__.update(implementations(plugin))
        self._place = index, plugin

    @property
    def place(self) -> tuple[int, object]:
        """Where the plugin stands, and the plugin."""
        return self._place


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
        for index, plugin in enumerate(lifecycle.plugins):
            manager.register(_Registered(index, plugin), name=f"{index}:{plugin_name(plugin)}")
        for phase in self.__slots__:
            caller: pluggy.HookCaller = getattr(manager.hook, phase)
            chain = sorted(caller.get_hookimpls(), key=_order)
            setattr(self, phase, tuple([_compiled(phase, impl, lifecycle) for impl in chain]))


def _order(impl: pluggy.HookImpl) -> tuple[int, int]:
    """Pluggy calls the last registered first; here the left one is first, within each group."""
    index, _ = _place(impl)
    if impl.tryfirst:
        return 0, index
    return (2 if impl.trylast else 1), index


def _place(impl: pluggy.HookImpl) -> tuple[int, object]:
    registered = impl.plugin
    assert isinstance(registered, _Registered)
    return registered.place


def _compiled(phase: str, impl: pluggy.HookImpl, lifecycle: Lifecycle) -> Hook:
    given = [name for name in _ARGUMENTS[phase] if name not in _OF_PLUGIN]
    if phase in _OUTSIDE:
        given.append(_SOURCE)
    wanted = tuple(impl.argnames)
    function = impl.function
    _, plugin = _place(impl)
    owner, name = id(plugin), lifecycle.name_of(plugin)
    origin = lifecycle.origins.get(owner)
    call: Callable[..., Any]
    if tuple(given) == wanted:
        call = function
    elif len(given) == 1 and "records" not in wanted:
        call = _one(function, wanted, owner)
    else:
        call = _some(function, given, wanted, owner, name)
    reason = "in the order given"
    if impl.tryfirst:
        reason = "tryfirst"
    elif impl.trylast:
        reason = "trylast"
    is_async = inspect.iscoroutinefunction(function)
    timeout = getattr(plugin, "hook_timeout", None)
    if timeout is not None and phase not in _STREAMS:
        call = partial(_limited, call, timeout)
        is_async = True
    return Hook(
        call,
        is_async,
        phase,
        name,
        None if origin is None else origin.distribution,
        reason,
    )


async def _limited(call: Callable[..., Any], seconds: float, *values: Any) -> Any:
    """Call a hook, and give up waiting for it after its plugin's own limit (R-35)."""
    answer = call(*values)
    if not inspect.isawaitable(answer):
        return answer
    return await _in_time(answer, seconds)


async def _in_time(answer: Awaitable[Any], seconds: float) -> Any:
    import anyio

    # Whether the hook lets the cancellation through or swallows it: its time is over.
    with anyio.move_on_after(seconds) as scope:
        value = await answer
    if scope.cancel_called:
        raise LateHook(f"within {seconds:.6g} s")
    return value


def _state(value: Any, owner: int) -> dict[str, object]:
    state_of = getattr(value, "state_of", None)
    if state_of is None:
        return {}
    found: dict[str, object] = state_of(owner)
    return found


def _records(value: Any, name: str) -> object:
    # A rename has no run.
    return None if value is None else value.records_of(name)


def _one(function: Callable[..., Any], wanted: tuple[str, ...], owner: int) -> Callable[..., Any]:
    """A hook with one argument of its own: the shapes that come often, without a loop."""
    if not wanted:
        return lambda value: function()  # it did not want it
    if wanted == ("state",):
        return lambda value: function(_state(value, owner))
    if wanted[0] == "state":
        return lambda value: function(_state(value, owner), value)
    return lambda value: function(value, _state(value, owner))


def _some(
    function: Callable[..., Any],
    given: list[str],
    wanted: tuple[str, ...],
    owner: int,
    plugin: str,
) -> Callable[..., Any]:
    made: dict[str, Callable[[Any], object]] = {
        "state": lambda value: _state(value, owner),
        "records": lambda value: _records(value, plugin),
    }
    places = [made.get(name) or given.index(name) for name in wanted]
    # The first argument knows the run; transform_aside has it second.
    source = next((given.index(name) for name in ("run", _SOURCE) if name in given), 0)

    def call(*values: Any) -> Any:
        return function(
            *[values[at] if isinstance(at, int) else at(values[source]) for at in places]
        )

    return call
