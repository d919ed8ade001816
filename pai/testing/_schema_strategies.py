"""Hypothesis strategies for schemas: JSON values, accepted types, and values that fit a type."""

from __future__ import annotations

import datetime as dt
import enum
import operator
import re
import typing
import uuid
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NotRequired, TypedDict, Union, get_args, get_origin

import annotated_types as at
import attrs
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from pai.schema import JsonObject, JsonValue

__all__ = ("json_values", "mutated", "schema_types", "values_for")

_SAFE = 2**53 - 1

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_KEYS = st.sampled_from(["a", "b", "c", "kind", "x_1", "", "ü", "with space"])
_INTEGERS = st.integers(-_SAFE, _SAFE) | st.integers(-3, 3)
_FLOATS = st.floats(-(2.0**53), 2.0**53, exclude_min=True, exclude_max=True)
_SCALARS: SearchStrategy[JsonValue] = st.one_of(st.none(), st.booleans(), _INTEGERS, _FLOATS, _TEXT)

_PATTERNS = ("^[a-z]{2}", "[0-9]", "^(ab|cd)*x")


def json_values(max_leaves: int = 12) -> SearchStrategy[JsonValue]:
    """
    Strict JSON values.

    Args:
        max_leaves: About how many scalars one value has at most.
    """
    return st.recursive(
        _SCALARS,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
        max_leaves=max_leaves,
    )


# Types.

_NAMES = st.sampled_from(["alpha", "beta", "gamma", "delta", "_private"])


@st.composite
def _enums(draw: DrawFn) -> object:
    values: list[str] | list[int] = draw(
        st.lists(st.sampled_from(["red", "green", "1", ""]), min_size=1, max_size=3, unique=True)
        | st.lists(st.integers(0, 3), min_size=1, max_size=3, unique=True)
    )
    return enum.Enum("Shade", {f"M{index}": value for index, value in enumerate(values)})


def _literals() -> SearchStrategy[object]:
    options = st.sampled_from(["cat", "dog", "", 0, 1, 7, True, None])
    values = st.lists(options, min_size=1, max_size=4, unique_by=lambda v: (type(v), v))
    return values.map(lambda picked: Literal[tuple(picked)])


@st.composite
def _bounded_numbers(draw: DrawFn) -> object:
    low = draw(st.integers(-20, 20))
    number: object = draw(st.sampled_from([int, float]))
    metadata: list[object] = [draw(st.sampled_from([at.Ge(low), at.Gt(low)]))]
    if draw(st.booleans()):
        metadata.append(draw(st.sampled_from([at.Le(low + 30), at.Lt(low + 30)])))
    if number is int and draw(st.booleans()):
        metadata.append(at.MultipleOf(draw(st.integers(1, 5))))
    return _annotated(number, metadata)


@st.composite
def _bounded_text(draw: DrawFn) -> object:
    if draw(st.booleans()):
        return _annotated(str, [re.compile(draw(st.sampled_from(_PATTERNS)))])
    low = draw(st.integers(0, 3))
    return _annotated(str, [at.Len(low, low + draw(st.integers(0, 3))), "some words"])


def _annotated(base: object, metadata: list[object]) -> object:
    return operator.getitem(Annotated, (base, *metadata))


def _leaf_types() -> SearchStrategy[object]:
    plain: list[object] = [bool, int, float, str, NoneType, dt.datetime, dt.date, uuid.UUID, object]
    return st.one_of(
        st.sampled_from(plain), _literals(), _enums(), _bounded_numbers(), _bounded_text()
    )


def _bounded_list(item: object) -> object:
    return _annotated(list[item], [at.Len(1, 3)])  # type: ignore[valid-type]


def _containers(inner: SearchStrategy[object]) -> SearchStrategy[object]:
    return st.one_of(
        inner.map(lambda item: list[item]),  # type: ignore[valid-type]
        inner.map(_bounded_list),
        inner.map(lambda item: tuple[item, ...]),  # type: ignore[valid-type]
        st.lists(inner, max_size=3).map(lambda items: tuple[tuple(items)]),  # type: ignore[misc]
        inner.map(lambda item: dict[str, item]),  # type: ignore[valid-type]
        _unions(inner),
        _classes(inner),
        _typed_dicts(inner),
        _tagged(inner),
    )


@st.composite
def _unions(draw: DrawFn, inner: SearchStrategy[object]) -> object:
    """Members of different kinds; an optional type more often than not."""
    by_kind: list[SearchStrategy[object]] = [
        st.just(NoneType),
        st.just(bool),
        st.sampled_from([int, float]),
        st.just(str) | st.just(dt.datetime) | _bounded_text(),
        inner.map(lambda item: list[item]),  # type: ignore[valid-type]
        _classes(inner),
    ]
    several = draw(st.lists(st.sampled_from(range(6)), min_size=2, max_size=3, unique=True))
    several = draw(st.just(several) | st.just([0, several[-1] or 1]))
    members = [draw(by_kind[index]) for index in several]
    if int in members and draw(st.booleans()):
        members.append(float)
    return operator.getitem(Union, tuple(members))


def _field(tp: object, default: object, converter: object) -> Any:
    return attrs.field(type=tp, default=default, converter=converter)  # type: ignore[call-overload]


@st.composite
def _fields(draw: DrawFn, inner: SearchStrategy[object]) -> dict[str, object]:
    names = draw(st.lists(_NAMES, max_size=3, unique=True))
    made: dict[str, object] = {}
    for name in names:
        how = draw(st.sampled_from(["plain", "optional", "listed", "bounded", "tidied", "sorted"]))
        if how == "plain":
            made[name] = attrs.field(type=draw(inner), kw_only=True)  # type: ignore[call-overload]
        elif how == "optional":
            made[name] = _field(operator.getitem(Union, (draw(inner), None)), None, None)
        elif how == "listed":
            made[name] = _field(list[draw(inner)], attrs.Factory(list), None)  # type: ignore[misc]
        elif how == "bounded":
            made[name] = attrs.field(type=int, default=3, validator=attrs.validators.ge(1))
        elif how == "tidied":
            made[name] = _field(str, " Tidy ", _tidy)
        else:
            made[name] = _field(list[int], attrs.Factory(list), sorted)
    return made


def _tidy(text: str) -> str:
    return text.strip()


def _classes(inner: SearchStrategy[object]) -> SearchStrategy[object]:
    return _fields(inner).map(lambda fields: attrs.make_class("Thing", fields, frozen=True))


@st.composite
def _tagged(draw: DrawFn, inner: SearchStrategy[object]) -> object:
    """A union of classes with a ``Literal`` field."""
    members = []
    for name in draw(st.sampled_from([("cat", "dog"), ("cat", "dog", "cow")])):
        tag = Literal[name]  # type: ignore[valid-type]
        default = draw(st.sampled_from([attrs.NOTHING, name]))
        kind = attrs.field(type=tag, default=default, kw_only=True)
        fields = {**draw(_fields(inner)), "kind": kind}
        members.append(attrs.make_class(name.title(), fields, frozen=True))
    return operator.getitem(Union, tuple(members))


@st.composite
def _typed_dicts(draw: DrawFn, inner: SearchStrategy[object]) -> object:
    fields: dict[str, Any] = {
        name: NotRequired[tp] if draw(st.booleans()) else tp
        for name, tp in draw(st.dictionaries(_NAMES, inner, max_size=3)).items()
    }
    return TypedDict("Shaped", fields)  # type: ignore[operator]


def schema_types(max_leaves: int = 6) -> SearchStrategy[object]:
    """
    Types that `pai.schema.compile_schema` accepts.

    Args:
        max_leaves: About how many plain types one type is made of at most.
    """
    return st.recursive(_leaf_types(), _containers, max_leaves=max_leaves).filter(_accepted)


def _accepted(tp: object) -> bool:
    """``object`` in a union, and literals that meet a sibling, are refused; they are rare."""
    from pai.errors import DefinitionError
    from pai.schema import compile_schema

    try:
        compile_schema(tp)
    except DefinitionError:
        return False
    return True


# Values.


def values_for(tp: object) -> SearchStrategy[JsonValue]:
    """
    JSON values that fit *tp*, worked out from the type alone.

    Args:
        tp: A type out of `schema_types`, or one made of the same parts.
    """
    simple = _SIMPLE.get(tp) if isinstance(tp, type) or tp is None else None
    if simple is not None:
        return simple()
    origin, args = get_origin(tp), get_args(tp)
    if origin is Annotated:
        return _annotated_values(args[0], args[1:])
    if origin is Literal or origin in (Union, UnionType):
        # Equal ones may differ in their order, and typing gives out whichever it made first.
        args = tuple(sorted(args, key=repr))
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, UnionType):
        return st.one_of([_member(arg, args) for arg in args])
    if origin is list:
        return st.lists(values_for(args[0]), max_size=4)
    if origin is dict:
        return st.dictionaries(_KEYS, values_for(args[1]), max_size=3)
    if origin is tuple:
        if len(args) == 2 and args[1] is Ellipsis:
            return st.lists(values_for(args[0]), max_size=4)
        return st.tuples(*map(values_for, args)).map(list)
    if isinstance(tp, type) and issubclass(tp, enum.Enum):
        return st.sampled_from([member.value for member in tp])
    if typing.is_typeddict(tp):
        return _typed_dict_values(tp)
    assert isinstance(tp, type), f"no strategy for {tp!r}"
    return _class_values(tp)


def _times() -> SearchStrategy[JsonValue]:
    zones = st.sampled_from(["Z", "+00:00", "-07:30", "z"])
    days = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1)).map(dt.date.isoformat)
    times = st.times().map(dt.time.isoformat)
    return st.tuples(days, times, zones).map(lambda parts: "{}T{}{}".format(*parts))


_SIMPLE: dict[object, Callable[[], SearchStrategy[JsonValue]]] = {
    None: st.none,
    NoneType: st.none,
    bool: st.booleans,
    int: lambda: _INTEGERS | st.integers(-100, 100).map(float),
    float: lambda: _FLOATS | _INTEGERS,
    str: lambda: _TEXT,
    dt.datetime: _times,
    dt.date: lambda: st.dates().map(dt.date.isoformat),
    uuid.UUID: lambda: st.uuids().map(str) | st.uuids().map(lambda u: str(u).upper()),
    object: lambda: json_values(4),
}


def _member(tp: object, members: tuple[object, ...]) -> SearchStrategy[JsonValue]:
    """Values for *tp* as a member of a union of classes: the tag must be there."""
    values = values_for(tp)
    tagged = [member for member in members if attrs.has(member) and _tag(member)]  # type: ignore[arg-type]
    if tp in tagged and len(tagged) > 1:
        return values.map(lambda value: {**value, "kind": _tag(tp)})  # type: ignore[dict-item]
    return values


def _tag(cls: object) -> str | None:
    kind = getattr(attrs.fields(cls), "kind", None)  # type: ignore[arg-type]
    return get_args(kind.type)[0] if kind is not None else None


def _annotated_values(base: object, metadata: tuple[object, ...]) -> SearchStrategy[JsonValue]:
    pattern = next((item for item in metadata if isinstance(item, re.Pattern)), None)
    if pattern is not None:
        return st.from_regex(str(pattern.pattern)).filter(_is_text)
    flat = [
        part
        for item in metadata
        for part in (item if isinstance(item, at.GroupedMetadata) else [item])
    ]
    low = next((x.min_length for x in flat if isinstance(x, at.MinLen)), 0)
    high = next((x.max_length for x in flat if isinstance(x, at.MaxLen)), None)
    if base is str:
        return st.text(st.characters(exclude_categories=["Cs"]), min_size=low, max_size=high)
    if get_origin(base) is list:
        return st.lists(values_for(get_args(base)[0]), min_size=low, max_size=high)
    return st.integers(-300, 300).filter(lambda number: all(_holds(x, number) for x in flat))


def _is_text(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


def _holds(constraint: object, number: int) -> bool:
    match constraint:
        case at.Ge(ge=bound):
            return number >= bound  # type: ignore[operator]
        case at.Gt(gt=bound):
            return number > bound  # type: ignore[operator]
        case at.Le(le=bound):
            return number <= bound  # type: ignore[operator]
        case at.Lt(lt=bound):
            return number < bound  # type: ignore[operator]
        case at.MultipleOf(multiple_of=step):
            return number % step == 0  # type: ignore[operator]
    return True


def _typed_dict_values(tp: Any) -> SearchStrategy[JsonValue]:
    hints = {
        key: get_args(hint)[0] if get_origin(hint) is NotRequired else hint
        for key, hint in typing.get_type_hints(tp, include_extras=True).items()
    }
    required = {key: values_for(hints[key]) for key in tp.__required_keys__}
    optional = {key: values_for(hints[key]) for key in tp.__optional_keys__}
    return st.fixed_dictionaries(required, optional=optional)


def _class_values(cls: type) -> SearchStrategy[JsonValue]:
    required: dict[str, SearchStrategy[JsonValue]] = {}
    optional: dict[str, SearchStrategy[JsonValue]] = {}
    for field in attrs.fields(cls):
        values = values_for(field.type)
        if field.validator is not None:
            values = st.integers(1, 50)
        wanted = required if field.default is attrs.NOTHING else optional
        wanted[str(field.alias)] = values
    return st.fixed_dictionaries(required, optional=optional)


def mutated(value: JsonValue) -> SearchStrategy[JsonValue]:
    """
    *value* with one thing changed somewhere: it may or may not fit what it fitted before.

    Args:
        value: Strict JSON; it is not changed itself.
    """
    return _mutated(value)


@st.composite
def _mutated(draw: DrawFn, value: JsonValue) -> JsonValue:
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        index = draw(st.integers(0, len(value) - 1))
        return [*value[:index], draw(_mutated(value[index])), *value[index + 1 :]]
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        return {**value, key: draw(_mutated(value[key]))}
    return draw(st.one_of(_changes(value)))


def _changes(value: JsonValue) -> list[SearchStrategy[JsonValue]]:
    changes: list[SearchStrategy[JsonValue]] = [json_values(3)]
    if isinstance(value, list):
        changes.append(st.just([*value, None]))
        changes.append(st.just(value[:-1]))
        changes.append(st.just([*value, *value]))
    elif isinstance(value, dict):
        changes.append(json_values(2).map(lambda new: {**value, "more": new}))
        changes += [st.just(_without(value, key)) for key in value]
    elif isinstance(value, bool) or value is None:
        changes.append(st.sampled_from([0, 1, "", "true", not value]))
    elif isinstance(value, (int, float)):
        shifts = [-value, value / 2, str(value), bool(value)]
        changes.append(st.sampled_from(shifts))
        if abs(value) < _SAFE:
            changes.append(st.sampled_from([value + 1, value - 1, float(value)]))
    else:
        changes.append(st.sampled_from([value + "x", value[1:], value.upper(), f" {value}"]))
    return changes


def _without(value: JsonObject, key: str) -> JsonObject:
    return {name: item for name, item in value.items() if name != key}
