"""The compiled form of one type: parse, dump, describe."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, overload, runtime_checkable

from pai.errors import DefinitionError, Fault, InvalidInput

from ._json import JsonObject, JsonValue
from ._names import type_name
from ._refusal import Refusal
from ._unset import UNSET, Unset

if TYPE_CHECKING:
    from ._shapes import Shape
    from ._walk import Walker

__all__ = ("Schema", "ValueSchema", "compile_schema", "finish_walk")

T = TypeVar("T")

_TOO_DEEP = "nested too deeply"


@runtime_checkable
class ValueSchema(Protocol):
    """What all schemas can do, whether they come from a type or from a client's JSON Schema."""

    @property
    def json_schema(self) -> JsonObject:
        """The JSON Schema; not to be changed."""
        ...

    def parse(self, value: object, *, at: str = "$") -> object:
        """*value* as the schema means it, or `InvalidInput` with every fault below *at*."""
        ...

    def faults(self, value: object) -> tuple[Fault, ...]:
        """Everything that keeps *value* from being parsed; empty if nothing does."""
        ...

    def dump(self, obj: Any, /) -> JsonValue:
        """What `parse` made, as JSON; `InvalidInput` if a part of it has no JSON form."""
        ...


class Schema(Generic[T]):
    """
    One type, compiled; made by `compile_schema`.

    Functions are generated on first use, so that declaring a schema costs little.
    """

    __slots__ = ("__weakref__", "_dump", "_json_schema", "_parse", "_partial", "shape", "type")

    type: object
    """The type it was made from."""

    shape: Shape
    """What the type means as JSON; for this room only."""

    def __init__(self, tp: object, shape: Shape) -> None:
        self.type = tp
        self.shape = shape
        self._parse: Callable[[object], object] = self._first_parse
        self._partial: Callable[[object], object] = self._first_partial
        self._dump: Callable[[object], object] = self._first_dump
        self._json_schema: JsonObject | None = None

    def __repr__(self) -> str:
        return f"<Schema {type_name(self.type)}>"

    def _first_parse(self, value: object) -> object:
        from ._parse import compile_parse

        self._parse = compile_parse(self.shape)
        return self._parse(value)

    def _first_partial(self, value: object) -> object:
        from ._parse_partial import compile_partial

        self._partial = compile_partial(self.shape)
        return self._partial(value)

    def _first_dump(self, value: object) -> object:
        from ._dump import compile_dump

        self._dump = compile_dump(self.shape)
        return self._dump(value)

    def parse(self, value: object, *, at: str = "$") -> T:
        """
        *value*, strict JSON, as an object of the type.

        Nothing is guessed: ``"5"`` is no integer, unknown keys are refused. An object of an attrs
        class is taken where the class is declared: it is dumped and parsed again.

        Args:
            value: Strict JSON; at the root, any mapping.
            at: The name of the root in the paths of faults.

        Raises:
            InvalidInput: With every fault found.
        """
        try:
            return self._parse(value)  # type: ignore[return-value]
        except Refusal as refusal:
            if isinstance(value, Mapping) and type(value) is not dict:
                return self.parse(dict(value), at=at)
            raise InvalidInput(refusal.faults(at)) from None
        except RecursionError:
            raise InvalidInput([Fault(at, _TOO_DEEP)]) from None

    def parse_partial(self, value: object) -> T | Unset:
        """
        What there is of an object of the type, in JSON that is still being written.

        It never raises. An attrs instance has `UNSET` where nothing is written yet, where a value
        does not fit, and where the member of a union cannot be told yet; lists and mappings leave
        that out. Texts, lists and mappings are as long as they are; other values are whole. No code
        of the class runs: no default, converter or validator, and no ``__init__``.

        Args:
            value: What `PartialJson` gives, which was told of this schema.

        Returns:
            `UNSET` if nothing can be said yet.
        """
        try:
            return self._partial(value)  # type: ignore[return-value]
        except (Refusal, RecursionError):
            return UNSET

    def faults(self, value: object) -> tuple[Fault, ...]:
        """Everything that keeps *value* from being parsed; empty if nothing does."""
        try:
            self.parse(value)
        except InvalidInput as error:
            return error.faults
        return ()

    def dump(self, obj: T) -> JsonValue:
        """
        *obj* as JSON, keyed by the fields' aliases.

        Objects are taken at their word: one built with values of the wrong type may dump to JSON
        that `parse` refuses, and plain dicts stand where classes are declared. To be sure, parse
        what came out, or use `parse_stable`.

        Raises:
            InvalidInput: If a part of *obj* has no JSON form.
        """
        try:
            return self._dump(obj)  # type: ignore[return-value]
        except Refusal as refusal:
            raise InvalidInput(refusal.faults("$"), subject="output") from None
        except RecursionError:
            raise InvalidInput([Fault("$", _TOO_DEEP)], subject="output") from None

    @property
    def json_schema(self) -> JsonObject:
        """The JSON Schema (2020-12), made once; not to be changed."""
        if self._json_schema is None:
            from ._describe import describe

            self._json_schema = describe(self.shape)
        return self._json_schema


def finish_walk(walker: Walker, subject: str) -> None:
    """
    End a walk.

    Raises:
        DefinitionError: With everything that *walker* and the probing of converters found.
    """
    from ._coercions import coercion_faults

    walker.finish()
    found = [*walker.faults, *coercion_faults(walker.records.values())]
    if found:
        raise DefinitionError(Refusal(dict.fromkeys(found)).faults("$"), subject=subject)


def _compile(tp: object, _: str = "") -> Schema[object]:
    # The machinery is loaded when the first schema is declared, not when pai is imported.
    from ._walk import Walker

    walker = Walker()
    shape = walker.shape(tp, ())
    finish_walk(walker, f"schema {type_name(tp)}")
    return Schema(tp, shape)


_compile_once: Callable[[object, str], Schema[object]]
_compile_once = functools.lru_cache(maxsize=2048)(_compile)


@overload
def compile_schema(tp: type[T]) -> Schema[T]: ...


@overload
def compile_schema(tp: object) -> Schema[object]: ...


def compile_schema(tp: object) -> Schema[Any]:
    """
    The schema of a type (A-DEF-3).

    Accepted are attrs classes, ``TypedDict``, ``bool int float str None``, ``datetime date UUID``,
    ``Literal``, enums of text or integers, ``list tuple dict`` (also as ``Sequence`` and
    ``Mapping``), unions whose members can be told apart, ``Annotated`` constraints, ``NewType``,
    generics, recursion, and ``object`` for any JSON value.

    Args:
        tp: The type. Schemas are kept by type: the same type gives the same object.

    Raises:
        DefinitionError: With everything that is not accepted, by path.
    """
    try:
        hash(tp)
    except TypeError:
        return _compile(tp)
    # Unions and literals are equal in any order, but the order is seen in the JSON Schema.
    return _compile_once(tp, "" if isinstance(tp, type) else str(tp))
