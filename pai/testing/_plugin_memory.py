"""What a plugin still holds when its runs are over."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from types import BuiltinFunctionType, FrameType, FunctionType, MethodType, ModuleType

import attrs

from pai.contexts import Records, RunContext, StepContext, ThreadRef, ToolCallContext
from pai.definition import Signal
from pai.lifecycle import Lifecycle

__all__ = ("Held", "held_by")

_OF_A_RUN = (RunContext, StepContext, ToolCallContext, ThreadRef, Records, Signal)
_ENOUGH = 200_000


@attrs.frozen
class Held:
    """
    What can be reached from a plugin.

    Attributes:
        count: How many references, as a measure of size.
        contexts: Names of the kinds that belong to one run.
        texts: All that is text.
    """

    count: int
    contexts: frozenset[str]
    texts: tuple[str, ...]


def held_by(plugin: object) -> Held:
    """
    Walk over all that a plugin holds: itself, its class, and the globals of its module.

    Other modules are not entered, nor loggers, models and what else is not the plugin's own.
    """
    gc.collect()
    seen: dict[int, object] = {}
    contexts: set[str] = set()
    texts: list[str] = []
    stack = list(_roots(plugin))
    own = {id(item) for item in stack}
    count = 0
    while stack and len(seen) < _ENOUGH:
        item = stack.pop()
        if id(item) in seen:
            continue
        seen[id(item)] = item  # Keeps it alive, so that no other object gets its id.
        if isinstance(item, _OF_A_RUN):
            contexts.add(type(item).__name__)
        elif isinstance(item, str):
            texts.append(item)
        elif isinstance(item, bytes):
            texts.append(item.decode("utf-8", "replace"))
        elif id(item) in own or not _is_foreign(item):
            below = _below(item)
            # Not the objects: a number that stands in two places is one object or two.
            count += len(below)
            stack += below
    return Held(count, frozenset(contexts), tuple(texts))


def _roots(plugin: object) -> Iterator[object]:
    for part in plugin.plugins if isinstance(plugin, Lifecycle) else (plugin,):
        yield part
        cls = None if isinstance(part, ModuleType) else type(part)
        module = part if isinstance(part, ModuleType) else sys.modules.get(type(part).__module__)
        if cls is not None:
            yield dict(vars(cls))
        if isinstance(module, ModuleType):
            own = module.__name__
            yield {
                name: value
                for name, value in vars(module).items()
                # What it only imported belongs to others.
                if not name.startswith("__") and getattr(value, "__module__", own) == own
            }


def _below(item: object) -> list[object]:
    if isinstance(item, MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, FunctionType):
        return [item.__closure__, item.__defaults__, item.__kwdefaults__, item.__dict__]
    if isinstance(item, ModuleType):
        return []
    return gc.get_referents(item)


def _is_foreign(item: object) -> bool:
    if isinstance(item, (type, ModuleType, BuiltinFunctionType, FrameType)):
        return True
    return type(item).__module__.partition(".")[0] in _OTHERS


_OTHERS = frozenset({"pai", "pluggy", "logging", "_pytest", "pytest", "typing", "threading", "re"})
