"""What types are called, and what their annotations mean."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Mapping

__all__ = ("Unresolved", "bind", "bindings", "def_name", "owner_of", "resolve", "type_name")


class Unresolved(Exception):
    """An annotation whose names cannot be found; the text says which."""


def type_name(tp: object) -> str:
    """*tp* as people write it: ``list[int]``, ``Pet``."""
    if isinstance(tp, type) and typing.get_origin(tp) is None:
        return tp.__name__
    return str(tp).replace("typing.", "")


def def_name(tp: object) -> str:
    """What *tp* is called in ``$defs``: ``Pet``, ``Box_int``."""
    args = typing.get_args(tp)
    origin = typing.get_origin(tp)
    if origin is None or not args:
        return str(getattr(tp, "__name__", tp))
    return "_".join([def_name(origin), *("".join(_words(type_name(arg))) for arg in args)])


def _words(text: str) -> list[str]:
    return [char if char.isalnum() else "_" for char in text.rsplit(".", 1)[-1]]


def resolve(
    annotation: object, module: Mapping[str, object], names: Mapping[str, object]
) -> object:
    """
    The type that *annotation* names, with its ``Annotated`` kept.

    Each annotation is resolved alone, so that one which cannot be (an import under
    ``TYPE_CHECKING``, say) spoils no other.

    Raises:
        Unresolved: If a name in it is known neither in *module* nor in *names*.
    """

    def holder() -> None: ...

    holder.__annotations__ = {"it": annotation}
    try:
        hints = typing.get_type_hints(
            holder, globalns=dict(module), localns=dict(names), include_extras=True
        )
    except NameError as error:
        raise Unresolved(
            f"cannot resolve the annotation {_text(annotation)}: name {error.name!r} is not known;"
            " it must be defined or imported at module level (not only for type checkers)"
        ) from None
    except Exception as error:
        raise Unresolved(
            f"cannot resolve the annotation {_text(annotation)}: {type(error).__name__}: {error}"
        ) from None
    return hints["it"]


def _text(annotation: object) -> str:
    if isinstance(annotation, typing.ForwardRef):
        return repr(annotation.__forward_arg__)
    return repr(annotation) if isinstance(annotation, str) else type_name(annotation)


def owner_of(cls: type, field: str) -> tuple[type, object]:
    """The class among *cls* and its bases that annotates *field*, and the annotation."""
    for klass in cls.__mro__:
        try:
            own = inspect.get_annotations(klass)
        except NameError:
            continue
        if field in own:
            return klass, types.NoneType if own[field] is None else own[field]
    return cls, None


def module_of(cls: type) -> Mapping[str, object]:
    """The names that the body of *cls* could see at module level."""
    module = sys.modules.get(cls.__module__)
    return vars(module) if module is not None else {}


def bind(tp: object, known: Mapping[object, object]) -> object:
    """*tp* with its type variables replaced by what they stand for."""
    if isinstance(tp, typing.TypeVar):
        return known.get(tp, tp)
    free = getattr(tp, "__parameters__", ())
    if not free or (typing.get_origin(tp) is None and not isinstance(tp, types.UnionType)):
        return tp
    return tp[tuple(known.get(variable, variable) for variable in free)]  # type: ignore[index]


def bindings(cls: type, args: tuple[object, ...]) -> dict[type, dict[object, object]]:
    """What the type variables of *cls*, given *args*, and of each of its bases stand for."""
    own = dict(zip(getattr(cls, "__parameters__", ()), args, strict=False))
    found: dict[type, dict[object, object]] = {cls: own}
    for base in getattr(cls, "__orig_bases__", ()):
        origin = typing.get_origin(base)
        if isinstance(origin, type) and origin is not typing.Generic:
            given = tuple(bind(arg, own) for arg in typing.get_args(base))
            for klass, known in bindings(origin, given).items():
                found.setdefault(klass, known)
    for base in cls.__bases__:
        if base not in found:
            for klass, known in bindings(base, ()).items():
                found.setdefault(klass, known)
    return found
