"""Constraints, from ``Annotated`` and from attrs validators, made into checks."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal

from ._json import SAFE_INTEGER, JsonObject, JsonValue
from ._patterns import json_pattern
from ._shapes import AnyJson, Array, Bounded, Check, Choice, Fixed, Leaf, Shape, Table, Union, strip

__all__ = ("NotUnderstood", "annotation_checks", "description_in", "validator_checks")

_TEXT: tuple[type, ...] = (str,)
_NUMBERS: tuple[type, ...] = (int, float)
_PLAIN = (type(None), bool, int, str)
_SIZED: tuple[type, ...] = (str, list, tuple, dict)


class NotUnderstood(Exception):
    """A constraint that cannot hold for its type; the text says why."""


def _python_types(shape: Shape) -> set[type]:
    """The Python classes that parsed values of *shape* can have, as far as checks care."""
    match strip(shape):
        case Leaf(name=name):
            by_name: dict[str, set[type]] = {
                "integer": {int},
                "number": {float},
                "string": {str},
                "boolean": {bool},
                "null": {type(None)},
            }
            return by_name.get(name, {object})
        case Array(make=make):
            return {make}
        case Fixed():
            return {tuple}
        case Table():
            return {dict}
        case Bounded(base=base):
            return _python_types(base)
        case Union(members=members):
            return set().union(*map(_python_types, members))
        case Choice(values=values, cls=None):
            return {type(value) for value in values}
        case AnyJson():
            return {type(None), bool, int, float, str, list, dict}
        case _:
            return {object}


def _applies(shape: Shape, types: tuple[type, ...], what: str, *, to_all: bool) -> None:
    """
    Raise unless a check on *types* makes sense for *shape*.

    A check in ``Annotated`` passes over values of other kinds, as JSON Schema does. An attrs
    validator gets every value, so it must suit them all.
    """
    have = _python_types(shape)
    suits = have <= set(types) if to_all else not have.isdisjoint(types)
    if not suits:
        hint = "; wrap it in attrs.validators.optional" if type(None) in have and to_all else ""
        raise NotUnderstood(f"{what} does not apply to every value of this type{hint}")


def _number(value: object, what: str) -> int | float:
    if type(value) not in _NUMBERS or not -SAFE_INTEGER <= value <= SAFE_INTEGER:  # type: ignore[operator]
        raise NotUnderstood(f"{what}: the bound must be a finite number")
    return value  # type: ignore[return-value]


_BOUNDS: dict[str, tuple[str, Callable[..., bool]]] = {
    ">=": ("minimum", operator.ge),
    ">": ("exclusiveMinimum", operator.gt),
    "<=": ("maximum", operator.le),
    "<": ("exclusiveMaximum", operator.lt),
}


def _bound(sign: str, value: object) -> Check:
    limit = _number(value, sign)
    keyword, compare = _BOUNDS[sign]
    return Check(
        _NUMBERS, lambda given: compare(given, limit), f"must be {sign} {limit}", {keyword: limit}
    )


def _multiple(value: object) -> Check:
    step = _number(value, "MultipleOf")
    if step <= 0:
        raise NotUnderstood("MultipleOf: must be greater than 0")
    exact = Decimal(repr(step))

    def test(given: object) -> bool:
        if type(given) is int and type(step) is int:
            return given % step == 0
        # As people read the digits: 0.3 is a multiple of 0.1.
        return Decimal(repr(given)) % exact == 0

    return Check(_NUMBERS, test, f"must be a multiple of {step}", {"multipleOf": step})


def _length(side: str, value: object, shape: Shape) -> Check:
    if type(value) is not int or value < 0:
        raise NotUnderstood("a length must be a whole number, 0 or more")
    bound = value
    have = _python_types(shape)
    keywords: JsonObject = {}
    if str in have:
        keywords[f"{side}Length"] = bound
    if list in have or tuple in have:
        keywords[f"{side}Items"] = bound
    if dict in have:
        keywords[f"{side}Properties"] = bound
    if side == "min":
        return Check(
            _SIZED,
            lambda given: len(given) >= bound,  # type: ignore[arg-type]
            f"must have a length of at least {bound}",
            keywords if bound else {},
        )
    return Check(
        _SIZED,
        lambda given: len(given) <= bound,  # type: ignore[arg-type]
        f"must have a length of at most {bound}",
        keywords,
    )


def _pattern(pattern: re.Pattern[str], how: str) -> Check:
    match: Callable[[str], object] = getattr(pattern, how)
    in_json = json_pattern(pattern, how)
    return Check(
        _TEXT,
        lambda given: match(given) is not None,  # type: ignore[arg-type]
        f"must match the pattern {pattern.pattern!r}",
        {} if in_json is None else {"pattern": in_json},
    )


def _flat(metadata: Iterable[object]) -> Iterator[object]:
    from annotated_types import GroupedMetadata

    for item in metadata:
        if isinstance(item, GroupedMetadata):
            yield from _flat(item)
        else:
            yield item


def annotation_checks(metadata: Iterable[object], shape: Shape) -> Iterator[Check]:
    """
    The constraints among the metadata of an ``Annotated``; what is unknown is passed over.

    Raises:
        NotUnderstood: For a constraint that can hold for no value of *shape*.
    """
    import annotated_types as at

    for item in _flat(metadata):
        name = type(item).__name__
        match item:
            case at.Ge(ge=bound):
                check = _bound(">=", bound)
            case at.Gt(gt=bound):
                check = _bound(">", bound)
            case at.Le(le=bound):
                check = _bound("<=", bound)
            case at.Lt(lt=bound):
                check = _bound("<", bound)
            case at.MultipleOf(multiple_of=step):
                check = _multiple(step)
            case at.MinLen(min_length=bound):
                check = _length("min", bound, shape)
            case at.MaxLen(max_length=bound):
                check = _length("max", bound, shape)
            case re.Pattern():
                if isinstance(item.pattern, bytes):
                    raise NotUnderstood("a pattern must be of text, not of bytes")
                check = _pattern(item, "search")
            case at.Predicate(func=func):
                yield Check(None, _guarded(func), f"must satisfy {_name(func)}")
                continue
            case at.Not(func=func):
                yield Check(None, _guarded(func, wanted=False), f"must not satisfy {_name(func)}")
                continue
            case at.Timezone():
                raise NotUnderstood("Timezone: every date-time is in UTC already")
            case _:
                continue
        assert check.types is not None
        _applies(shape, check.types, name, to_all=False)
        yield check


def _name(func: Callable[..., object]) -> str:
    name = getattr(func, "__qualname__", None) or type(func).__name__
    return "its predicate" if "<lambda>" in name else name


def _guarded(func: Callable[[object], object], *, wanted: bool = True) -> Callable[[object], bool]:
    def test(given: object) -> bool:
        try:
            return bool(func(given)) is wanted
        except Exception:
            # A predicate is asked about any value of the type; one it cannot answer is not good.
            return False

    return test


def description_in(metadata: Iterable[object]) -> str | None:
    """The words for people among the metadata of an ``Annotated``: ``Doc``, ``doc`` or a string."""
    for item in metadata:
        text = item if isinstance(item, str) else getattr(item, "documentation", None)
        if isinstance(text, str) and text.strip():
            return text.strip()
    return None


def validator_checks(validator: object, shape: Shape) -> Iterator[Check]:
    """
    The constraints that attrs' own validators express, for messages and for JSON Schema.

    attrs runs them itself, so one that is not known here still holds. Their classes have private
    names; nothing else in the room knows those.

    Raises:
        NotUnderstood: For a validator that raises for a value that the type allows.
    """
    yield from _validator_checks(validator, shape, optional=False)


def _validator_checks(validator: object, shape: Shape, *, optional: bool) -> Iterator[Check]:
    name = type(validator).__name__
    if name == "_AndValidator":
        for part in validator._validators:  # type: ignore[attr-defined]  # noqa: SLF001
            yield from _validator_checks(part, shape, optional=optional)
    elif name == "_OptionalValidator":
        inner = validator.validator  # type: ignore[attr-defined]
        for part in inner if isinstance(inner, (list, tuple)) else (inner,):
            yield from _validator_checks(part, shape, optional=True)
    elif name == "_NumberValidator":
        yield _suited(
            _bound(validator.compare_op, validator.bound),  # type: ignore[attr-defined]
            shape,
            optional,
        )
    elif name == "_MinLengthValidator":
        yield _suited(_length("min", validator.min_length, shape), shape, optional)  # type: ignore[attr-defined]
    elif name == "_MaxLengthValidator":
        yield _suited(_length("max", validator.max_length, shape), shape, optional)  # type: ignore[attr-defined]
    elif name == "_MatchesReValidator":
        pattern: re.Pattern[str] = validator.pattern  # type: ignore[attr-defined]
        how = validator.match_func.__name__  # type: ignore[attr-defined]
        yield _suited(_pattern(pattern, how), shape, optional)
    elif name == "_InValidator":
        yield _one_of(validator.options, optional)  # type: ignore[attr-defined]


def _suited(check: Check, shape: Shape, optional: bool) -> Check:
    assert check.types is not None
    allowed = (*check.types, type(None)) if optional else check.types
    _applies(shape, allowed, "the validator", to_all=True)
    return check


def _one_of(options: Iterable[object], optional: bool) -> Check:
    try:
        listed = list(options)
    except TypeError:
        listed = []
    plain: list[JsonValue] = [
        option for option in listed if option is None or isinstance(option, (str, int))
    ]
    if not plain or len(plain) != len(listed) or any(type(p) not in _PLAIN for p in plain):
        return Check(None, lambda given: given in options, "must be one of the allowed values")
    if optional and None not in plain:
        plain.append(None)
    names = ", ".join(map(repr, plain))
    return Check(None, lambda given: given in plain, f"must be one of {names}", {"enum": plain})
