"""The signature of a function as a schema."""

from __future__ import annotations

import functools
import inspect
from collections import abc
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, get_args, get_origin

from ._docs import read_docs
from ._names import Unresolved, resolve
from ._schema import Schema, finish_walk
from ._shapes import ABSENT, Field, Record, Shape, split_words

if TYPE_CHECKING:
    from ._walk import Walker

__all__ = ("FunctionSchema", "function_schema")


class FunctionSchema:
    """
    What a function's signature says.

    Args:
        name: The function's name.
        description: Its docstring, without the sections on parameters and results.
        input: Parses to a dict of keyword arguments; absent ones are left to the defaults.
        output: The schema of what it returns, or None where nothing is said about that.
    """

    __slots__ = ("description", "input", "name", "output")

    def __init__(
        self,
        name: str,
        description: str,
        input: Schema[dict[str, object]],
        output: Schema[object] | None,
    ) -> None:
        self.name = name
        self.description = description
        self.input = input
        self.output = output

    def __repr__(self) -> str:
        return f"<FunctionSchema {self.name}>"


def function_schema(fn: Callable[..., object], *, skip_first: bool) -> FunctionSchema:
    """
    The schema of *fn*'s parameters and result.

    Each annotation is resolved alone, and that of a skipped parameter not at all, so it may be
    imported for type checkers only.

    Args:
        fn: A function, method or callable object; sync or async.
        skip_first: Leave out the first parameter: it is the context, given by the caller.

    Raises:
        DefinitionError: With everything that is wrong with the signature.
    """
    from ._walk import Walker

    plain, name = _plain(fn)
    docs = read_docs(getattr(plain, "__doc__", None))
    module: Mapping[str, object] = getattr(plain, "__globals__", {})
    walker = Walker()
    record = Record(name, None, None, ())
    for parameter in _parameters(fn, walker, skip_first=skip_first):
        shape, words = _shape(parameter, module, walker)
        default = ABSENT if parameter.default is parameter.empty else parameter.default
        key = parameter.name
        record.fields[key] = Field(
            key,
            key,
            shape,
            required=default is ABSENT,
            default=default,
            description=words or docs.fields.get(key),
        )
    returned = _returned(plain, module, walker)
    # Not a type, so no other mention of it can be confused with this record.
    walker.records[object()] = record
    finish_walk(walker, f"function {name!r}")
    output: Schema[object] | None = None if returned is None else Schema(*returned)
    return FunctionSchema(name, docs.text, Schema(dict, record), output)


def _plain(fn: Callable[..., object]) -> tuple[object, str]:
    """The function below partials, wrappers and objects, which has the annotations; its name."""
    while isinstance(fn, functools.partial):
        fn = fn.func
    name = str(getattr(fn, "__name__", type(fn).__name__))
    fn = inspect.unwrap(fn)
    if not hasattr(fn, "__globals__") and not hasattr(fn, "__func__"):
        fn = inspect.unwrap(type(fn).__call__)
    return getattr(fn, "__func__", fn), name


def _parameters(
    fn: Callable[..., object], walker: Walker, *, skip_first: bool
) -> list[inspect.Parameter]:
    """The parameters that are fields; the others are faults."""
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except (TypeError, ValueError):
        walker.refuse((), "its signature cannot be read")
        return []
    if skip_first:
        first = parameters[0] if parameters else None
        if first is None or first.kind in (first.KEYWORD_ONLY, first.VAR_KEYWORD):
            walker.refuse((), "it must take the context as its first parameter")
        else:
            parameters = parameters[1:] if first.kind is not first.VAR_POSITIONAL else parameters
    return [parameter for parameter in parameters if _is_field(parameter, walker)]


_NO_FIELD = {
    inspect.Parameter.VAR_POSITIONAL: "*{} takes any number of values; give it as a list instead",
    inspect.Parameter.VAR_KEYWORD: "**{} takes any keys; give it as a dict instead",
    inspect.Parameter.POSITIONAL_ONLY: "{} is positional only, but arguments are given by name",
}


def _is_field(parameter: inspect.Parameter, walker: Walker) -> bool:
    if parameter.kind in _NO_FIELD:
        walker.refuse((parameter.name,), _NO_FIELD[parameter.kind].format(parameter.name))
        return False
    return True


def _shape(
    parameter: inspect.Parameter, module: Mapping[str, object], walker: Walker
) -> tuple[Shape, str | None]:
    way = (parameter.name,)
    if parameter.annotation is parameter.empty:
        return walker.refuse(way, "the parameter has no type annotation"), None
    try:
        tp = resolve(parameter.annotation, module, {})
    except Unresolved as error:
        return walker.refuse(way, str(error)), None
    return split_words(walker.shape(tp, way))


def _returned(
    plain: object, module: Mapping[str, object], walker: Walker
) -> tuple[object, Shape] | None:
    annotations: Mapping[str, object] = getattr(plain, "__annotations__", {})
    if "return" not in annotations:
        return None
    way = ("return",)
    try:
        tp = resolve(annotations["return"], module, {})
    except Unresolved as error:
        walker.refuse(way, str(error))
        return None
    if get_origin(tp) in (abc.Awaitable, abc.Coroutine):
        tp = get_args(tp)[-1]
    if tp is object or tp is Any:
        return None
    return tp, walker.shape(tp, way)
