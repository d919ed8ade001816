"""What is no schema is refused when it is declared (A-DEF-3)."""

from __future__ import annotations

import dataclasses
import decimal
import enum
import pathlib
import re
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, NamedTuple, TypeVar

import annotated_types as at
import attrs
import pytest
from attrs import validators

from pai.errors import DefinitionError
from pai.schema import Schema, compile_schema

if TYPE_CHECKING:
    from decimal import Context

T = TypeVar("T")


@attrs.frozen
class Cat:
    kind: Literal["cat"]


@attrs.frozen
class OtherCat:
    kind: Literal["cat", "tiger"]


@attrs.frozen
class Plain:
    name: str = ""


@attrs.frozen
class Box(Generic[T]):
    item: T


@dataclasses.dataclass
class Data:
    a: int


class Point(NamedTuple):
    x: int


class Mixed(enum.Enum):
    A = "a"
    B = 1.5


class Empty(enum.Enum):
    pass


@attrs.frozen
class Unresolvable:
    a: Context
    b: list[Nowhere]  # type: ignore[name-defined]  # noqa: F821
    c: int


@attrs.frozen
class Old:
    untyped = attrs.field()


def told(tp: Any) -> list[str]:
    with pytest.raises(DefinitionError) as caught:
        compile_schema(tp)
    return [str(fault) for fault in caught.value.faults]


@pytest.mark.parametrize(
    ("tp", "hint"),
    [
        (set[int], "use list"),
        (frozenset, "use list or tuple"),
        (bytes, "use str, in base64 say"),
        (decimal.Decimal, "use str, int or float"),
        (pathlib.Path, "use str"),
        (Data, "declare an attrs class"),
        (Point, "declare an attrs class"),
        (type[int], "not accepted"),
        (3, "it is not a type"),
        ("int", "cannot resolve"),
        (Mixed, "every member of an enum must have a str or int"),
        (Empty, "every member of an enum"),
        (Literal[b"x"], "only str, int, bool and None"),
        (Literal[Mixed.A], "only str, int, bool and None"),
        (Literal[2**60], "only str, int, bool and None"),
        (dict[int, str], "keys of an object are strings"),
        (Box, "the type variable T stands for no type here"),
        (T, "the type variable T"),
    ],
)
def test_types_without_a_strict_json_form_are_refused(tp, hint):
    (fault,) = told(tp)
    assert hint in fault


@pytest.mark.parametrize(
    "tp",
    [
        list[int] | list[str],
        str | Literal["auto"],  # noqa: PYI051
        float | Literal[1],
        bool | Literal[True],  # noqa: PYI051
        Annotated[int, at.Ge(1)] | float,
        dict[str, int] | Cat,
        dict[str, int] | dict[str, str],
        Cat | Plain,
        Cat | OtherCat,
        Cat | Box[int],
        Any | int,
    ],
)
def test_unions_that_cannot_be_told_apart_are_refused(tp):
    (fault,) = told(tp)
    assert fault.startswith("$: ")


def test_a_union_whose_aliases_only_name_itself_is_refused():
    class TypeAliasType:
        __name__ = "Loop"

        @property
        def __value__(self) -> object:
            return self

    (fault,) = told(TypeAliasType())
    assert fault.endswith("only names itself")


@pytest.mark.parametrize(
    "tp",
    [
        Annotated[str, at.Ge(1)],
        Annotated[int, at.MinLen(1)],
        Annotated[int, re.compile("x")],
        Annotated[str, re.compile(b"x")],
        Annotated[int, at.Ge(float("nan"))],
        Annotated[int, at.Ge("1")],
        Annotated[int, at.MultipleOf(0)],
        Annotated[str, at.MinLen(-1)],
        Annotated[Plain, at.Ge(1)],
        Annotated[str, at.Timezone(None)],
    ],
)
def test_constraints_that_do_not_suit_the_type_are_refused(tp):
    assert len(told(tp)) == 1


def test_validators_that_would_raise_for_allowed_values_are_refused():
    @attrs.frozen
    class Bad:
        a: int | None = attrs.field(default=1, validator=validators.ge(1))
        b: str = attrs.field(default="", validator=validators.ge(1))  # type: ignore[arg-type]
        c: int = attrs.field(default=1, validator=validators.min_len(1))

    faults = told(Bad)
    assert [fault.split(":")[0] for fault in faults] == ["$.a", "$.b", "$.c"]
    assert "attrs.validators.optional" in faults[0]


def test_names_that_cannot_be_resolved_are_told_by_field():
    faults = told(Unresolvable)
    assert [fault.split(":")[0] for fault in faults] == ["$.a", "$.b"]
    assert "'Context' is not known" in faults[0]
    assert "'Nowhere' is not known" in faults[1]
    assert told(Old) == ["$.untyped: the field has no type annotation"]


def test_all_faults_are_told_at_once_wherever_they_are():
    @attrs.frozen
    class Inner:
        x: set[int]

    @attrs.frozen
    class Outer:
        a: bytes
        b: Annotated[str, at.Ge(1)]
        c: list[int] | list[str]
        d: str = attrs.field(default=3)  # type: ignore[assignment]
        e: int = attrs.field(default=1, converter=str)

    inner = attrs.field(type=list[Inner], kw_only=True)
    outer = attrs.make_class("Outer", {"inner": inner}, bases=(Outer,))
    assert sorted(fault.split(":")[0] for fault in told(outer)) == [
        "$.a",
        "$.b",
        "$.c",
        "$.d",
        "$.e",
        "$.inner.x",
    ]


def flip(value: object) -> object:
    """What it makes equals what it was given, and yet is another JSON value."""
    if value is True:
        return 1
    return True if value == 1 else value


def make(tp: object, **options: Any) -> type:
    return attrs.make_class("Made", {"x": attrs.field(type=tp, **options)})  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("tp", "converter"),
    [
        (int, str),
        (str, int),
        (str, len),
        (int, lambda value: value + 1),
        (str, lambda text: text + "!"),
        (list[int], lambda items: [*items, 0]),
        (list[int], set),
        (bool, lambda flag: not flag),
        (Annotated[str, at.MinLen(2)], str.strip),
        (int | None, lambda value: value or "none"),
        (dict[str, int], list),
        (float, lambda _: float("nan")),
        (object, flip),
    ],
)
def test_converters_that_change_what_a_value_is_are_refused(tp, converter):
    """A-META-4."""
    (fault,) = told(make(tp, converter=converter))
    assert "converter" in fault


@pytest.mark.parametrize(
    ("tp", "converter", "given", "wanted"),
    [
        (str, str.strip, " a ", "a"),
        (str, str.casefold, "AB", "ab"),
        (list[int], sorted, [2, 1], [1, 2]),
        (list[str], lambda items: sorted(set(items)), ["b", "a", "b"], ["a", "b"]),
        (float, lambda value: round(value, 1), 0.44, 0.4),
        (int | None, attrs.converters.default_if_none(0), None, 0),
        (tuple[int, ...], tuple, [1], (1,)),
        (str, attrs.converters.pipe(str.strip, str.lower), " A", "a"),
    ],
)
def test_converters_that_tidy_up_are_taken(tp, converter, given, wanted):
    """A-META-4."""
    schema: Schema[Any] = compile_schema(make(tp, converter=converter))
    made = schema.parse({"x": given})
    assert made.x == wanted
    dumped = schema.dump(made)
    assert schema.dump(schema.parse(dumped)) == dumped


def test_a_converter_that_reads_its_object_is_taken():
    def tidy(value: str, self_: object) -> str:
        return value.strip()

    converter = attrs.Converter(tidy, takes_self=True)
    schema: Schema[Any] = compile_schema(make(str, converter=converter))
    made = schema.parse({"x": " a "})
    assert made.x == "a"


@pytest.mark.parametrize(
    ("tp", "default"),
    [(int, None), (str, 1), (list[int], ("a",)), (Cat, {"kind": "dog"}), (float, float("inf"))],
)
def test_constant_defaults_must_fit(tp, default):
    (fault,) = told(make(tp, default=default))
    assert fault.startswith("$.x: the default ")


def test_a_default_that_its_validator_refuses_is_told():
    assert told(make(int, default=0, validator=validators.ge(1))) == [
        "$.x: the default 0 must be >= 1"
    ]


def test_a_refused_type_is_refused_each_time():
    assert told(set[int]) == told(set[int])
