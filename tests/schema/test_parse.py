"""Values into objects: strict by kind, every fault with its path."""

from __future__ import annotations

import datetime as dt
import enum
import re
import sys
import uuid
from collections.abc import Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NewType,
    NotRequired,
    Required,
    TypedDict,
    TypeVar,
    get_args,
)

import annotated_types as at
import attrs
import pytest
from attrs import validators

from pai.errors import InvalidInput
from pai.schema import JsonObject, JsonValue, compile_schema

T = TypeVar("T")
UserId = NewType("UserId", str)
Zip = Annotated[str, re.compile(r"^\d{5}$")]
BIG = 2**53


def tidy(text: str) -> str:
    return text.strip()


def in_order(items: list[str]) -> list[str]:
    return sorted(items)


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.frozen
class Cat:
    name: str
    kind: Literal["cat"] = "cat"


@attrs.frozen
class Dog:
    name: str
    kind: Literal["dog", "wolf"]


@attrs.frozen
class Tree:
    value: int
    children: list[Tree] = attrs.field(factory=list)
    parent: Tree | None = None


@attrs.frozen
class Box(Generic[T]):
    item: T
    others: dict[str, T] = attrs.field(factory=dict)


@attrs.frozen
class IntBox(Box[int]):
    label: str = ""


class Movie(TypedDict):
    title: Required[str]
    year: NotRequired[int]


class Rated(Movie, total=False):
    stars: Annotated[int, at.Interval(ge=1, le=5)]


@attrs.frozen
class Everything:
    a: int
    pet: Cat | Dog
    b: float = 0.5
    c: str | None = None
    tags: tuple[str, ...] = ()
    pair: tuple[int, str] = (1, "x")
    color: Color = Color.RED
    when: dt.datetime | None = None
    box: Box[int] | None = None
    extra: JsonValue = None
    _hidden: int = 0
    other: int = attrs.field(default=7, alias="renamed")
    computed: int = attrs.field(default=1, init=False)


def faults(tp: Any, value: object) -> list[tuple[str, str]]:
    return [(fault.path, fault.message) for fault in compile_schema(tp).faults(value)]


def refused(tp: Any, *values: object) -> None:
    schema = compile_schema(tp)
    for value in values:
        assert schema.faults(value), f"{tp} took {value!r}"


def takes(tp: Any, *pairs: tuple[object, object]) -> None:
    schema = compile_schema(tp)
    for value, wanted in pairs:
        made = schema.parse(value)
        assert made == wanted
        assert type(made) is type(wanted)
        assert schema.parse(schema.dump(made)) == made


NAN, INF = float("nan"), float("inf")


def test_scalars_are_taken_by_kind_and_never_coerced():
    takes(int, (1, 1), (1.0, 1), (-0.0, 0), (BIG - 1, BIG - 1))
    refused(int, True, "5", 1.5, None, BIG, -BIG, NAN, INF, [1], 1e300)
    takes(float, (1, 1.0), (1.5, 1.5))
    refused(float, True, "1.5", NAN, INF, -INF, BIG, 2.0**53, None)
    takes(str, ("", ""), ("ü", "ü"))
    refused(str, 1, None, b"x", "\ud800", ["a"])
    takes(bool, (True, True), (False, False))
    refused(bool, 0, 1, "true", None)
    takes(None, (None, None))
    refused(None, False, 0, "", {})


def test_times_are_rfc_3339_and_canonical_in_utc():
    noon = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
    takes(
        dt.datetime,
        ("2026-01-31T12:00:00Z", noon),
        ("2026-01-31t14:00:00+02:00", noon),
        ("2026-01-31T12:00:00.1234567Z", noon.replace(microsecond=123456)),
    )
    assert compile_schema(dt.datetime).dump(noon.astimezone()) == "2026-01-31T12:00:00Z"
    refused(
        dt.datetime,
        "2026-01-31T12:00:00",
        "2026-01-31 12:00:00Z",
        "2026-01-31",
        "20260131T120000Z",
        "2026-02-30T12:00:00Z",
        "2026-01-31T25:00:00Z",
        "9999-12-31T23:59:59-23:00",
        "2026-01-31T12:00:00Z\n",
        1,
    )
    with pytest.raises(InvalidInput, match="time zone"):
        compile_schema(dt.datetime).dump(dt.datetime(2026, 1, 1))  # noqa: DTZ001
    takes(dt.date, ("2026-01-31", dt.date(2026, 1, 31)))
    refused(dt.date, "20260131", "2026-W05-6", "2026-1-31", "2026-02-30")
    text = "123e4567-e89b-12d3-a456-426614174000"
    takes(uuid.UUID, (text, uuid.UUID(text)), (text.upper(), uuid.UUID(text)))
    refused(uuid.UUID, text.replace("-", ""), "{" + text + "}", "urn:uuid:" + text)


def test_choices_tell_true_from_one():
    takes(Literal[1, "a", None], (1, 1), (1.0, 1), ("a", "a"), (None, None))  # noqa: PYI061
    refused(Literal[1, "a"], True, "1", None, [])
    refused(Literal[True], 1, "true")
    takes(Color, ("red", Color.RED))
    refused(Color, "RED", "green", None, [])
    takes(Level, (1, Level.LOW), (2.0, Level.HIGH))
    refused(Level, True, "1", 3)
    assert faults(Color, "green") == [("$", "expected one of 'red', 'blue'")]


def test_containers_are_taken_by_kind():
    takes(list[int], ([1, 2.0], [1, 2]))
    refused(list[int], (1, 2), "12", {}, {"0": 1}, None)
    takes(tuple[int, ...], ([1, 2], (1, 2)))
    takes(tuple[int, str], ([1, "a"], (1, "a")))
    refused(tuple[int, str], [1], [1, "a", 2], ["a", 1], (1, "a"))
    takes(tuple[()], ([], ()))
    takes(dict[str, int], ({"a": 1}, {"a": 1}))
    refused(dict[str, int], [], {1: 1}, {"a": "1"}, {"\ud800": 1}, [["a", 1]])
    takes(dict[Literal["a", "b"], int], ({"a": 1}, {"a": 1}))
    refused(dict[Literal["a", "b"], int], {"c": 1})
    takes(dict[Color, int], ({"red": 1}, {Color.RED: 1}))
    takes(Sequence[int], ([1], [1]))
    takes(Mapping[str, int], ({"a": 1}, {"a": 1}))
    takes(list, ([1, "a"], [1, "a"]))
    takes(dict, ({"a": None}, {"a": None}))


@pytest.mark.parametrize("tp", [object, Any, JsonValue])
def test_any_json_is_copied_and_nothing_else_taken(tp):
    value = {"a": [1, {"b": None}]}
    made = compile_schema(tp).parse(value)
    assert made == value
    assert made is not value
    assert made["a"] is not value["a"]
    assert faults(tp, {"a": [NAN, {1: 2}, (1,)]}) == [
        ("$.a[0]", f"expected a finite number between -{BIG - 1} and {BIG - 1}"),
        ("$.a[1]", "expected string keys, got int"),
        ("$.a[2]", "tuple is not JSON"),
    ]


def test_json_aliases_work_in_annotations():
    @attrs.frozen
    class Holder:
        one: JsonValue
        two: JsonValue | None
        three: JsonObject
        four: list[JsonValue]

    value = {"one": 1, "two": None, "three": {"a": [1]}, "four": ["x", {}]}
    schema = compile_schema(Holder)
    assert schema.dump(schema.parse(value)) == value


def test_unions_are_told_apart_by_kind():
    takes(int | str, (1, 1), ("1", "1"))
    takes(int | float, (1, 1), (1.0, 1), (1.5, 1.5))
    takes(int | None, (None, None), (1.0, 1))
    takes(bool | int, (True, True), (1, 1))
    takes(Literal["a", None] | None, (None, None), ("a", "a"))  # noqa: PYI061
    takes(list[int] | dict[str, int] | str, ([1], [1]), ({"a": 1}, {"a": 1}), ("x", "x"))
    refused(int | str, None, 1.5, [], True)
    assert faults(float | None, "x") == [("$", "expected null or number, got string")]
    takes(Literal["a"] | Literal["b"], ("a", "a"), ("b", "b"))  # noqa: PYI030
    refused(Literal["a"] | Literal["b"], "c")  # noqa: PYI030
    takes(Cat | list[Cat], ({"name": "x"}, Cat("x")), ([{"name": "x"}], [Cat("x")]))


def test_unions_of_classes_are_told_apart_by_their_tag():
    pets = Cat | Dog | None
    takes(pets, ({"kind": "cat", "name": "x"}, Cat("x")), (None, None))
    takes(pets, ({"kind": "wolf", "name": "x"}, Dog("x", "wolf")))
    assert faults(pets, {"name": "x"}) == [("$.kind", "required: one of 'cat', 'dog', 'wolf'")]
    assert faults(pets, {"kind": "cow", "name": 1}) == [
        ("$.kind", "expected one of 'cat', 'dog', 'wolf'")
    ]
    assert faults(pets, {"kind": "dog", "nam": "x"}) == [
        ("$.name", "required"),
        ("$.nam", "unknown key"),
    ]
    refused(pets, {"kind": ["cat"]}, [], "cat")


def test_classes_are_closed_and_use_aliases():
    schema = compile_schema(Everything)
    value = {"a": 1, "pet": {"kind": "cat", "name": "x"}, "hidden": 3, "renamed": 4}
    made = schema.parse(value)
    assert made == Everything(1, Cat("x"), hidden=3, renamed=4)
    dumped = schema.dump(made)
    assert isinstance(dumped, dict)
    assert (dumped["hidden"], dumped["renamed"]) == (3, 4)
    assert "computed" not in dumped
    assert schema.parse(dumped) == made
    for key in ("_hidden", "other", "computed", "zz"):
        assert faults(Everything, {**value, key: 1}) == [(f"$.{key}", "unknown key")]
    refused(Everything, [], [1], "x", None, {"a": 1, 1: 2})


def test_every_fault_is_told_at_once_with_its_path():
    value = {
        "b": "x",
        "c": 1,
        "pet": {"kind": "dog", "name": 1, "odd key": 2},
        "tags": ["a", 1, None],
        "pair": [1],
        "color": "green",
        "when": "yesterday",
        "box": {"item": "x", "others": {"k": 1.5}},
        "extra": {"deep": [NAN]},
        "zz": 1,
    }
    assert [path for path, _ in faults(Everything, value)] == [
        "$.a",
        "$.pet.name",
        "$.pet['odd key']",
        "$.b",
        "$.c",
        "$.tags[1]",
        "$.tags[2]",
        "$.pair",
        "$.color",
        "$.when",
        "$.box.item",
        "$.box.others.k",
        "$.extra.deep[0]",
        "$.zz",
    ]


def test_the_root_may_have_another_name():
    with pytest.raises(InvalidInput) as caught:
        compile_schema(list[Cat]).parse([{}], at="tools.pets.input")
    assert [str(fault) for fault in caught.value.faults] == ["tools.pets.input[0].name: required"]


def test_messages_do_not_repeat_values():
    @attrs.frozen
    class Guarded:
        a: int = attrs.field(default=1, validator=validators.lt(5))
        b: list[int] = attrs.field(
            factory=list, validator=validators.deep_iterable(validators.lt(5))
        )
        c: str = attrs.field(default="", validator=validators.not_(validators.matches_re("4242.*")))
        d: Annotated[str, at.MaxLen(3)] = ""

    value = {"a": 424242, "b": [424242], "c": "424242", "d": "424242"}
    told = [fault for key in value for fault in faults(Guarded, {key: value[key]})]
    assert [path for path, _ in told] == ["$.a", "$.b", "$.c", "$.d"]
    assert "424242" not in str(told)


def test_constraints_hold():
    takes(Annotated[int, at.Ge(1), at.Lt(5), at.MultipleOf(2)], (4, 4))
    assert faults(Annotated[int, at.Ge(1), at.MultipleOf(2)], -1) == [
        ("$", "must be >= 1"),
        ("$", "must be a multiple of 2"),
    ]
    refused(Annotated[float, at.Interval(gt=0, le=1)], 0, 1.5)
    takes(Annotated[float, at.MultipleOf(0.1)], (0.3, 0.3))
    takes(Annotated[str, at.Len(1, 2)], ("ab", "ab"))
    refused(Annotated[str, at.Len(1, 2)], "", "abc")
    refused(Annotated[list[int], at.MinLen(1)], [])
    refused(Annotated[dict[str, int], at.MaxLen(1)], {"a": 1, "b": 2})
    takes(Zip, ("12345", "12345"))
    refused(Zip, "1234", "x12345")
    takes(at.LowerCase[str], ("abc", "abc"))
    refused(at.LowerCase[str], "Abc")
    refused(Annotated[int, at.Not(lambda n: n == 3)], 3)
    takes(Annotated[int | str | None, at.Ge(1)], (None, None), ("", ""), (1, 1))
    refused(Annotated[int | str | None, at.Ge(1)], 0)
    refused(list[Annotated[str, at.MinLen(1)]], ["a", ""])
    takes(Annotated[int, "words", object()], (1, 1))


def test_validators_of_attrs_tell_their_field():
    @attrs.frozen
    class Order:
        amount: int = attrs.field(validator=[validators.ge(1), validators.le(9)])
        code: str | None = attrs.field(
            default=None, validator=validators.optional(validators.matches_re(r"[A-Z]+"))
        )
        size: str = attrs.field(default="s", validator=validators.in_(["s", "m"]))
        note: str = attrs.field(default="", converter=tidy)

        @note.validator
        def _short(self, attribute: object, value: str) -> None:
            if len(value) > self.amount:
                raise ValueError("longer than the amount")

    assert compile_schema(Order).parse({"amount": 3, "note": " abc "}).note == "abc"
    assert faults(Order, {"amount": 0, "code": "x", "size": "l", "note": "abc"}) == [
        ("$.amount", "must be >= 1"),
        ("$.code", "must match the pattern '[A-Z]+'"),
        ("$.size", "must be one of 's', 'm'"),
        ("$.note", "longer than the amount"),
    ]
    # Beside a fault of kind, what is understood of the validators is told as well.
    assert faults(Order, {"amount": 10, "code": 1}) == [
        ("$.code", "expected null or string, got integer"),
        ("$.amount", "must be <= 9"),
    ]


def test_what_init_raises_is_a_fault_of_the_object():
    @attrs.frozen
    class Span:
        start: int
        end: int

        def __attrs_post_init__(self) -> None:
            if self.end < self.start:
                raise ValueError("end before start")
            if self.end == 99:
                raise KeyError("end")

    assert faults(list[Span], [{"start": 2, "end": 1}]) == [("$[0]", "end before start")]
    assert faults(Span, {"start": 2, "end": 99}) == [("$", "refused (KeyError)")]


def test_default_factories_run_for_each_value():
    made = [compile_schema(Tree).parse({"value": 1}) for _ in range(2)]
    assert made[0].children is not made[1].children


def test_recursion_is_taken_to_a_limit():
    def nested(depth: int) -> dict[str, object]:
        value: dict[str, object] = {"value": 1}
        for _ in range(depth):
            value = {"value": 1, "parent": value}
        return value

    assert compile_schema(Tree).parse({"value": 1, "children": [{"value": 2}]}) == Tree(
        1, [Tree(2)]
    )
    assert compile_schema(Tree).parse(nested(63)).parent is not None
    for depth in (64, 100_000):
        assert faults(Tree, nested(depth)) == [("$", "nested too deeply")]
    assert faults(Tree, {"value": 1, "children": [{"value": 2, "children": [{}]}]}) == [
        ("$.children[0].children[0].value", "required")
    ]
    endless = attrs.evolve(Tree(1))
    endless.children.append(endless)
    with pytest.raises(InvalidInput, match="nested too deeply"):
        compile_schema(Tree).dump(endless)
    assert compile_schema(Tree).faults(endless)


def test_a_fault_deep_inside_is_found_quickly():
    value: dict[str, object] = {"value": "wrong"}
    for _ in range(60):
        value = (
            {"value": 1, "children": [value, value]} if _ > 57 else {"value": 1, "parent": value}
        )
    assert len(faults(Tree, value)) == 4


def test_generics_bind_their_variables():
    takes(Box[int], ({"item": 1, "others": {"a": 2}}, Box(1, {"a": 2})))
    refused(Box[int], {"item": "x"}, {"item": 1, "others": {"a": "b"}})
    takes(Box[Box[str]], ({"item": {"item": "x"}}, Box(Box("x"))))
    takes(Box[list[Cat] | None], ({"item": [{"name": "x"}]}, Box([Cat("x")])))
    takes(IntBox, ({"item": 1, "label": "x"}, IntBox(1, label="x")))
    refused(IntBox, {"item": "x"})


def test_typed_dicts_and_new_types():
    takes(
        Movie,
        ({"title": "x"}, {"title": "x"}),
        ({"title": "x", "year": 1.0}, {"title": "x", "year": 1}),
    )
    refused(Movie, {}, {"title": "x", "more": 1}, {"title": 1}, [])
    takes(Rated, ({"title": "x", "stars": 5}, {"title": "x", "stars": 5}))
    assert faults(Rated, {"stars": 6, "x": 1}) == [
        ("$.title", "required"),
        ("$.stars", "must be <= 5"),
        ("$.x", "unknown key"),
    ]
    takes(UserId, ("u", "u"))
    takes(list[UserId], (["u"], ["u"]))


def test_named_types_may_mention_themselves():
    if sys.version_info >= (3, 12):
        scope: dict[str, Any] = {}
        exec("type Nested = int | list[Nested]", scope)
        nested = scope["Nested"]
    else:

        class TypeAliasType:
            """As the statement ``type Nested = ...`` makes it from Python 3.12 on."""

            __name__ = "Nested"

            @property
            def __value__(self) -> object:
                return int | list[self]  # type: ignore[valid-type]

        nested = TypeAliasType()
    takes(nested, (1, 1), ([1, [2.0, []]], [1, [2, []]]))
    assert faults(nested, [1, [True]]) == [("$[1][0]", "expected array or integer, got boolean")]
    value: object = 1
    for _ in range(65):
        value = [value]
    assert faults(nested, value) == [("$", "nested too deeply")]
    assert compile_schema(nested).json_schema == {
        "$ref": "#/$defs/Nested",
        "$defs": {
            "Nested": {
                "anyOf": [
                    {"type": "integer"},
                    {"type": "array", "items": {"$ref": "#/$defs/Nested"}},
                ]
            }
        },
    }


def test_objects_of_the_class_are_taken_where_the_class_is():
    schema = compile_schema(Everything)
    made = Everything(1, Cat("x"), box=Box(3))
    assert schema.parse(made) == made
    assert schema.parse({"a": 1, "pet": Cat("x"), "box": {"item": 3}}) == made
    assert compile_schema(list[Cat | Dog]).parse([Cat("x")]) == [Cat("x")]
    # One that was built with wrong values is refused all the same.
    wrong: Any = Everything("1", Cat("x"))  # type: ignore[arg-type]
    assert [fault.path for fault in schema.faults(wrong)] == ["$.a"]


def test_a_field_may_be_null_and_nothing_else():
    # As without ``from __future__ import annotations``.
    nothing: Any = attrs.define(type("Nothing", (), {"__annotations__": {"a": None}}))
    takes(nothing, ({"a": None}, nothing(None)))
    refused(nothing, {"a": 0}, {})


def test_any_mapping_is_taken_at_the_root():
    from types import MappingProxyType

    assert compile_schema(Cat).parse(MappingProxyType({"name": "x"})) == Cat("x")


def test_dump_takes_plain_values_and_refuses_what_is_no_json():
    schema = compile_schema(list[Everything])
    assert schema.dump([{"a": 1, "pet": Cat("x")}]) == [  # type: ignore[list-item]
        {"a": 1, "pet": {"name": "x", "kind": "cat"}}
    ]
    with pytest.raises(InvalidInput) as caught:
        schema.dump([Everything(1, Cat("x"), when=3)])  # type: ignore[arg-type]
    assert [fault.path for fault in caught.value.faults] == ["$[0].when"]
    with pytest.raises(InvalidInput) as caught:
        compile_schema(object).dump({"a": [{1, 2}]})
    assert [fault.path for fault in caught.value.faults] == ["$.a[0]"]


def test_any_dumps_objects_by_their_own_class():
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    value = {"cat": Cat("x"), "list": [Color.RED, moment, Level.LOW], "box": Box(1)}
    with pytest.raises(InvalidInput, match="type variable"):
        compile_schema(object).dump(value)
    del value["box"]
    assert compile_schema(object).dump(value) == {
        "cat": {"name": "x", "kind": "cat"},
        "list": ["red", "2026-01-01T00:00:00Z", 1],
    }


def test_the_same_type_gives_the_same_schema():
    assert compile_schema(list[Cat]) is compile_schema(list[Cat])
    assert compile_schema(Literal[1]) is not compile_schema(Literal[True])
    # Their order shows in the JSON Schema, which may not depend on who came first.
    assert Literal["x", "y"] == Literal["y", "x"]
    for tp in (Literal["x", "y"], Literal["y", "x"], int | str, str | int):
        listed = compile_schema(tp).json_schema
        first = listed["enum"] if "enum" in listed else listed["anyOf"]
        wanted = get_args(tp)[0]
        assert isinstance(first, list)
        assert first[0] == (
            wanted if isinstance(wanted, str) else compile_schema(wanted).json_schema
        )
    assert compile_schema(Annotated[int, {"not": "hashable"}]).parse(1) == 1


def test_converters_run_after_the_kind_was_checked():
    @attrs.frozen
    class Tags:
        names: list[str] = attrs.field(factory=list, converter=in_order)

    assert compile_schema(Tags).parse({"names": ["b", "a"]}) == Tags(["a", "b"])
    refused(Tags, {"names": "ba"}, {"names": [1]})
