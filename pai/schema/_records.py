"""Records into shapes: attrs classes, ``TypedDict``s, and their fields."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import Annotated, Protocol, get_args, get_origin

import attrs

from ._checks import NotUnderstood, validator_checks
from ._names import Unresolved, bind, bindings, def_name, module_of, owner_of, resolve
from ._refusal import Found, Way
from ._shapes import ABSENT, REFUSED, Check, Field, Record, Shape, split_words

__all__ = ("RecordWalker",)

# Factories that are known to be without effects, so that their value can be shown as a default.
_PURE_FACTORIES = (list, dict, tuple, str, int, float, bool)


class _Walk(Protocol):
    """What this file needs of the walker."""

    faults: list[Found]

    def shape(self, tp: object, way: Way) -> Shape: ...

    def refuse(self, way: Way, message: str) -> Shape: ...


class RecordWalker:
    """Fills records; a record is known to the walk before its fields are, so it may recur."""

    def __init__(self, walk: _Walk) -> None:
        self._walk = walk

    def start(self, tp: object, cls: type, way: Way) -> Record:
        """An empty record for *cls*, *tp* being *cls* with its arguments."""
        own_doc = cls.__dict__.get("__doc__")
        doc = inspect.cleandoc(own_doc) if isinstance(own_doc, str) else None
        return Record(def_name(tp), cls if attrs.has(cls) else None, doc, way)

    def fill_class(self, record: Record, cls: type, args: tuple[object, ...], way: Way) -> None:
        """The fields of an attrs class: those its ``__init__`` takes."""
        known = bindings(cls, args)
        for attribute in attrs.fields(cls):
            if not attribute.init:
                continue
            key = attribute.alias or attribute.name
            owner, annotation = owner_of(cls, attribute.name)
            if attribute.type is not None:
                annotation = attribute.type
            here = (*way, key)
            if annotation is None:
                self._walk.refuse(here, "the field has no type annotation")
                continue
            shape = self._resolved(annotation, owner, cls, known, here)
            shape, description = split_words(shape)
            record.fields[key] = Field(
                key,
                attribute.name,
                shape,
                required=attribute.default is attrs.NOTHING,
                default=_constant(attribute.default),
                description=_words(attribute.metadata) or description,
                attribute=attribute,
                checks=self._checks(attribute.validator, shape, here),
            )

    def fill_typed_dict(
        self, record: Record, cls: type, args: tuple[object, ...], way: Way
    ) -> None:
        """The keys of a ``TypedDict``."""
        known = bindings(cls, args)
        required: frozenset[str] = cls.__required_keys__  # type: ignore[attr-defined]
        for key, annotation in inspect.get_annotations(cls).items():
            here = (*way, key)
            try:
                tp = resolve(annotation, module_of(cls), {cls.__name__: cls})
            except Unresolved as error:
                self._walk.refuse(here, str(error))
                continue
            # The flags of the class are wrong for annotations that were still text.
            needed = key in required
            while (name := getattr(get_origin(tp), "_name", None)) in (
                "Required",
                "NotRequired",
                "ReadOnly",
            ):
                needed = needed if name == "ReadOnly" else name == "Required"
                (tp,) = get_args(tp)
            shape, description = split_words(self._walk.shape(bind(tp, known[cls]), here))
            record.fields[key] = Field(key, key, shape, needed, description=description)

    def _resolved(
        self,
        annotation: object,
        owner: type,
        cls: type,
        known: Mapping[type, Mapping[object, object]],
        way: Way,
    ) -> Shape:
        names = {klass.__name__: klass for klass in (owner, cls)}
        try:
            tp = resolve(annotation, module_of(owner), names)
        except Unresolved as error:
            return self._walk.refuse(way, str(error))
        if get_origin(tp) is Annotated and get_origin(get_args(tp)[0]) is typing.Final:
            return self._walk.refuse(way, "write Final[Annotated[...]], not the reverse")
        return self._walk.shape(bind(tp, known.get(owner, {})), way)

    def _checks(self, validator: object, shape: Shape, way: Way) -> tuple[Check, ...]:
        if validator is None or shape is REFUSED:
            return ()
        try:
            return tuple(validator_checks(validator, shape))
        except NotUnderstood as error:
            self._walk.refuse(way, str(error))
            return ()


def _words(metadata: Mapping[object, object]) -> str | None:
    text = metadata.get("description")
    return text if isinstance(text, str) and text else None


def _constant(default: object) -> object:
    if default is attrs.NOTHING:
        return ABSENT
    if isinstance(default, attrs.Factory):  # type: ignore[arg-type]
        pure = not default.takes_self and default.factory in _PURE_FACTORIES  # type: ignore[attr-defined]
        return default.factory() if pure else ABSENT  # type: ignore[attr-defined]
    return default
