"""What everything that is declared checks alike."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any

from pai.errors import DefinitionError, Fault
from pai.schema import Schema, check_json, compile_schema

__all__ = (
    "arity_faults",
    "class_faults",
    "compiled",
    "described",
    "entries",
    "function_faults",
    "is_async",
    "provider_options_faults",
    "seconds_faults",
    "text_faults",
    "version_faults",
    "yield_faults",
)


def compiled(schema: object, at: str, faults: list[Fault]) -> Schema[object] | None:
    """The schema of a type; None where there is none, or where it has faults: they are added."""
    if schema is None:
        return None
    try:
        return compile_schema(schema)
    except DefinitionError as error:
        faults += [fault.under(at) for fault in error.faults]
        return None


def described(schema: object, at: str, faults: list[Fault]) -> Schema[object] | None:
    """The schema of a type that has to be given."""
    if schema is None:
        faults.append(Fault(at, "expected a type; write object for any JSON, type(None) for null"))
    return compiled(schema, at, faults)


def entries(given: object, at: str, faults: list[Fault]) -> Iterable[tuple[Any, object]]:
    """The items of a mapping, if it is one."""
    if given is None:
        return ()
    if not isinstance(given, Mapping):
        faults.append(Fault(at, f"expected a mapping by name, got {type(given).__name__}"))
        return ()
    return given.items()


def arity_faults(fn: object, at: str) -> list[Fault]:
    """Functions given to an agent take one argument."""
    if fn is None:
        return []
    if not callable(fn):
        return [Fault(at, f"expected a function of one argument, got {type(fn).__name__}")]
    return _call_faults(fn, at, 1)


def function_faults(fn: object, at: str) -> list[Fault]:
    """What a tool or a command runs takes the context and the parsed input."""
    if not callable(fn):
        return [Fault(at, f"expected a function of (ctx, input), got {type(fn).__name__}")]
    return _call_faults(fn, at, 2)


def version_faults(fn: object, at: str) -> list[Fault]:
    """What judges versions takes the stored one and its own."""
    if fn is None:
        return []
    if not callable(fn):
        return [Fault(at, f"expected a function of (stored, own), got {type(fn).__name__}")]
    return _call_faults(fn, at, 2, "(stored, own)")


def _call_faults(fn: object, at: str, count: int, words: str = "(ctx, input)") -> list[Fault]:
    try:
        signature = inspect.signature(fn)  # type: ignore[arg-type]  # checked by the callers
    except (TypeError, ValueError):
        # Some callables of C have none: they are taken at their word.
        return []
    try:
        signature.bind(*[None] * count)
    except TypeError:
        words = "one argument" if count == 1 else words
        return [Fault(at, f"is called with {words}, and its signature {signature} takes it not")]
    return []


def yield_faults(fn: object, at: str) -> list[Fault]:
    """What a tool or a command runs returns one output."""
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        return [Fault(at, "yields: it must return its output, whole")]
    return []


def is_async(fn: object) -> bool:
    """Whether calling *fn* gives a coroutine, as far as that can be seen."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(
        getattr(type(fn), "__call__", None)  # noqa: B004  # the method is wanted, not whether there is one
    )


def class_faults(given: object, at: str) -> list[Fault]:
    """What values are checked against must be a class that isinstance() takes."""
    fault = Fault(at, "expected a class, or a protocol that is @runtime_checkable")
    if not isinstance(given, type):
        return [fault]
    try:
        isinstance(None, given)
    except TypeError:
        return [fault]
    return []


def seconds_faults(given: object, at: str) -> list[Fault]:
    """A length of time that may be left out."""
    if given is None or (type(given) in (int, float) and given > 0):  # type: ignore[operator]  # a number
        return []
    return [Fault(at, "expected a number of seconds above 0")]


def text_faults(given: object, at: str, expected: str) -> list[Fault]:
    """A text that is not empty must be there."""
    if isinstance(given, str) and given.strip():
        return []
    return [Fault(at, expected)]


def provider_options_faults(options: object, at: str) -> list[Fault]:
    """Options are JSON objects by provider name (A-MODEL-3)."""
    faults: list[Fault] = []
    for provider, own in entries(options, at, faults):
        where = f"{at}.{provider}"
        if not isinstance(own, Mapping):
            faults.append(Fault(where, "expected the options of this provider, by name"))
        else:
            faults += check_json(dict(own), at=where)
    return faults
