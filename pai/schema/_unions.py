"""Unions: how the members are told apart, or why they cannot be."""

from __future__ import annotations

from collections.abc import Iterable

from ._shapes import AnyJson, Choice, Leaf, Record, Shape, Union, strip

__all__ = ("Ambiguous", "is_plain_integer", "make_union", "merge_choices")


class Ambiguous(Exception):
    """A union whose members some JSON value cannot be told apart by; the text says why."""


def merge_choices(members: Iterable[Shape]) -> list[Shape]:
    """*members* with all ``Literal``s made into one: ``Literal["a"] | Literal["b"]``."""
    merged: list[Shape] = []
    first: Choice | None = None
    for member in members:
        if isinstance(member, Choice) and member.cls is None:
            if first is not None:
                first.values = (*first.values, *member.values)
                continue
            first = Choice(member.values)
            merged.append(first)
        else:
            merged.append(member)
    return merged


def is_plain_integer(shape: Shape) -> bool:
    """Is *shape* an integer without bounds? Only such a one can stand beside a float."""
    bare = strip(shape)
    return isinstance(bare, Leaf) and bare.name == "integer"


def _flat(union: Union, seen: frozenset[int] = frozenset()) -> list[Shape]:
    inside = seen | {id(union)}
    result: list[Shape] = []
    for member in union.members:
        bare = strip(member)
        if not isinstance(bare, Union):
            result.append(member)
        elif id(bare) not in inside:
            result.extend(_flat(bare, inside))
    return result


def _one_null(members: list[Shape]) -> list[Shape]:
    """*members* without those that only repeat that None is taken."""
    kept: list[Shape] = []
    for index, member in enumerate(members):
        others = [*kept, *members[index + 1 :]]
        if member.kinds != {"null"} or not any("null" in other.kinds for other in others):
            kept.append(member)
    return kept


def make_union(union: Union) -> Union:
    """
    *union* with its members taken apart and its tag found; every shape in it is complete.

    Raises:
        Ambiguous: If a JSON value could belong to two members.
    """
    flat = _one_null(merge_choices(_flat(union)))
    others = [member for member in flat if not isinstance(strip(member), AnyJson)]
    if len(others) != len(flat):
        # Any other member would give some values two meanings; None alone adds nothing.
        if any(member.kinds != {"null"} for member in others):
            raise Ambiguous("Any takes every value already")
        return Union((AnyJson(),))
    objects = [member for member in flat if "object" in member.kinds]
    _by_kind(flat, {id(member) for member in objects} if len(objects) > 1 else set())
    if len(objects) < 2:
        return Union(tuple(flat))
    records = [strip(member) for member in objects]
    if not all(isinstance(record, Record) for record in records):
        raise Ambiguous("more than one member takes an object, and one of those has open keys")
    tag, table = _tag([record for record in records if isinstance(record, Record)])
    return Union(tuple(flat), tag, table)


def _by_kind(members: Iterable[Shape], tagged: set[int]) -> None:
    taken: dict[str, Shape] = {}
    for member in members:
        for kind in sorted(member.kinds):
            if kind == "object" and id(member) in tagged:
                continue
            other = taken.get(kind)
            if other is None or _integer_beside_number(other, member):
                taken[kind] = member
            elif not _integer_beside_number(member, other):
                raise Ambiguous(
                    f"more than one member takes a JSON {kind}, so they cannot be told apart;"
                    " use classes with a Literal field of different values"
                )


def _integer_beside_number(number: Shape, integer: Shape) -> bool:
    return "number" in number.kinds and is_plain_integer(integer)


def _constants(record: Record, key: str) -> tuple[str, ...] | None:
    field = record.fields.get(key)
    bare = strip(field.shape) if field is not None else None
    if not isinstance(bare, Choice) or bare.cls is not None:
        return None
    strings = tuple(value for value in bare.values if isinstance(value, str))
    return strings if len(strings) == len(bare.values) else None


def _tag(records: list[Record]) -> tuple[str, dict[str, Record]]:
    for key in sorted(records[0].fields):
        table: dict[str, Record] = {}
        total = 0
        for record in records:
            constants = _constants(record, key)
            if constants is None:
                break
            total += len(constants)
            table.update(dict.fromkeys(constants, record))
        else:
            if len(table) == total:
                return key, table
    names = ", ".join(record.name for record in records)
    raise Ambiguous(
        f"{names} share no field that tells them apart: give each a field of the same name,"
        ' annotated Literal["..."], with a value of its own'
    )
