"""Metadata schemas where they are declared (A-META)."""

from __future__ import annotations

import datetime as dt
import uuid
from itertools import count
from typing import Any, Literal

import attrs
import pytest
from hypothesis import given, strategies as st

from pai import (
    InvalidInput,
    MetadataPatch,
    MetadataSchemaError,
    MetadataSchemas,
    define_agent,
    define_command,
)
from pai.definition import MetadataSchemas as FromRoom
from pai.protocol import Metadata

from .refusals import refused, refused_agent

FIELDS = ("run_metadata", "thread_metadata", "message_metadata")


@attrs.frozen
class Rating:
    rating: Literal["up", "down"] | None = None
    tags: list[str] = attrs.field(factory=list, converter=sorted)


@attrs.frozen
class Job:
    job_id: str | None = None
    opened: dt.datetime | None = None


def strip(text: str) -> str:
    return text.strip()


def fold(text: str) -> str:
    return text.casefold()


def cents(amount: float) -> float:
    return round(amount, 2)


@attrs.frozen
class Tidy:
    name: str = attrs.field(default=" Ann ", converter=strip)
    mail: str = attrs.field(default="", converter=fold)
    amount: float = attrs.field(default=0.005, converter=cents)
    tags: list[str] = attrs.field(factory=lambda: ["b", "a"], converter=sorted)


def pair(cls: type) -> MetadataSchemas[Any, Any]:
    return MetadataSchemas(private=cls, public=Rating)


@pytest.mark.parametrize("field", FIELDS)
def test_a_pair_of_schemas_that_take_nothing_is_taken(field):
    """A-META-1: classes and mappings alike."""
    for cls in (Job, Rating, Tidy, dict[str, str]):
        bags = MetadataSchemas(private=cls, public=cls)
        fields: dict[str, Any] = {field: bags}
        agent = define_agent(name="calc", model="demo", **fields)
        assert getattr(agent, field) is bags
    assert FromRoom is MetadataSchemas


@attrs.frozen
class Needy:
    name: str


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("bag", ["private", "public"])
def test_a_schema_must_take_an_empty_object(field, bag):
    """A-META-1: both of the pair, for runs, threads and messages."""
    bags = MetadataSchemas(**{"private": Rating, "public": Rating, bag: Needy})
    faults = refused_agent(MetadataSchemaError, **{field: bags})
    assert list(faults) == [f"{field}.{bag}.name"]
    assert "{}" in faults[f"{field}.{bag}.name"]


@pytest.mark.parametrize("cls", [int, list[str], str, Literal["a"]])
def test_a_schema_describes_an_object(cls):
    """A-META-1."""
    faults = refused_agent(MetadataSchemaError, run_metadata=pair(cls))
    assert "metadata is an object" in faults["run_metadata.private"]


@pytest.mark.parametrize("given", [Rating, (Rating, Rating), {"private": Rating, "public": Rating}])
def test_only_the_pair_is_taken(given):
    """A-META-1."""
    faults = refused_agent(MetadataSchemaError, run_metadata=given)
    assert "MetadataSchemas" in faults["run_metadata"]


@pytest.mark.parametrize("tp", [set[str], bytes, complex, tuple, object()])
def test_what_has_no_strict_json_is_no_schema(tp):
    """A-META-2, A-META-1."""
    cls = attrs.make_class("Bag", {"items": attrs.field(type=tp, default=None)})
    assert "run_metadata.private.items" in refused_agent(
        MetadataSchemaError, run_metadata=pair(cls)
    )


def grown(text: str) -> str:
    return text + "!"


def number(text: str) -> int:
    return len(text)


def halved(amount: float) -> float:
    return amount / 2


def backwards(items: list[str]) -> list[str]:
    return items[::-1]


@pytest.mark.parametrize(
    ("tp", "default", "converter"),
    [
        (str, "", grown),
        (float, 0.0, halved),
        (list[str], attrs.Factory(list), backwards),
    ],
)
def test_a_converter_that_is_not_stable_is_refused(tp, default, converter):
    """A-META-2: what is stored must stay as it is when it is read and written again."""
    field = attrs.field(type=tp, default=default, converter=converter)
    cls = attrs.make_class("Bag", {"value": field})
    faults = refused_agent(MetadataSchemaError, run_metadata=pair(cls))
    assert "stable" in faults["run_metadata.private.value"]


@pytest.mark.parametrize(("tp", "converter"), [(str, number), (str, str.split), (int, str)])
def test_a_converter_to_another_type_is_refused(tp, converter):
    """A-META-4: text in and number out, say."""
    field = attrs.field(type=tp, default=tp(), converter=converter)
    cls = attrs.make_class("Bag", {"value": field})
    faults = refused_agent(MetadataSchemaError, run_metadata=pair(cls))
    assert list(faults) == ["run_metadata.private.value"]


def test_canonical_coercions_are_fine_and_shape_the_initial_value():
    """A-META-3, A-META-4: strip, casefold, round, sort."""
    bags = MetadataSchemas(private=Tidy, public=Rating)
    define_agent(name="calc", model="demo", run_metadata=bags)
    assert bags.initial() == Metadata(
        {"name": "Ann", "mail": "", "amount": 0.01, "tags": ["a", "b"]},
        {"rating": None, "tags": []},
    )


def test_a_default_factory_runs_anew_each_time():
    """A-META-3."""
    numbers = count()
    cls = attrs.make_class("Bag", {"n": attrs.field(type=int, factory=lambda: next(numbers))})
    bags = MetadataSchemas(private=cls, public=Rating)
    define_agent(name="calc", model="demo", run_metadata=bags)
    defined = next(numbers)
    made: list[Any] = [bags.initial().private["n"] for _ in range(3)]
    assert len(set(made)) == 3
    assert min(made) > defined
    # Values of one bag are not shared with the next.
    first: Any = bags.initial()
    first.public["tags"].append("x")
    assert bags.initial().public["tags"] == []


def test_a_random_default_is_fine():
    """A-META-3."""
    cls = attrs.make_class("Bag", {"id": attrs.field(type=uuid.UUID, factory=uuid.uuid4)})
    bags = MetadataSchemas(private=cls, public=cls)
    define_agent(name="calc", model="demo", thread_metadata=bags)
    assert bags.initial().private != bags.initial().private


@attrs.frozen
class Reserving:
    pai: str = ""


def test_the_key_pai_is_reserved_in_message_metadata():
    """A-META-9: in both bags of messages, and nowhere else."""
    bags = MetadataSchemas(private=Reserving, public=Reserving)
    faults = refused_agent(MetadataSchemaError, message_metadata=bags)
    assert set(faults) == {"message_metadata.private.pai", "message_metadata.public.pai"}
    assert define_agent(name="calc", model="demo", run_metadata=bags, thread_metadata=bags)


def test_an_alias_is_the_key():
    """A-META-9: a field that is called otherwise inside is still the key."""
    cls = attrs.make_class("Bag", {"inner": attrs.field(type=str, default="", alias="pai")})
    faults = refused_agent(MetadataSchemaError, message_metadata=pair(cls))
    assert list(faults) == ["message_metadata.private.pai"]


def test_all_faults_of_all_bags_are_one_error():
    """A-META-1, A-DEF-2."""
    bad = MetadataSchemas(private=Needy, public=int)
    faults = refused_agent(MetadataSchemaError, **dict.fromkeys(FIELDS, bad))
    assert set(faults) == {
        f"{field}.{rest}" for field in FIELDS for rest in ("private.name", "public")
    }
    # Among faults of another kind they are ordinary ones.
    assert len(refused_agent(version="", run_metadata=bad)) == 3


# -------------------------------------------------------------------------------- commands


def rate(**more):
    return define_command(
        name="rate",
        description="Rate.",
        input=Rating,
        output=Rating,
        execute=lambda ctx, given: given,
        **more,
    )


def test_a_command_is_bound_to_the_very_object():
    """A-META-8: identity, not equality."""
    bags = MetadataSchemas(private=Job, public=Rating)
    same = MetadataSchemas(private=Job, public=Rating)
    assert define_agent(
        name="calc", model="demo", run_metadata=bags, commands={"rate": rate(run_metadata=bags)}
    )
    for other in (same, None):
        faults = refused_agent(run_metadata=other, commands={"rate": rate(run_metadata=bags)})
        assert list(faults) == ["commands.rate.run_metadata"]
    # One that does not touch it needs nothing.
    assert define_agent(name="calc", model="demo", run_metadata=bags, commands={"rate": rate()})


def test_a_command_checks_the_schemas_too():
    """A-META-8: both boundaries do."""
    bad = MetadataSchemas(private=Needy, public=Rating)
    faults = refused(rate, MetadataSchemaError, run_metadata=bad)
    assert list(faults) == ["rate.run_metadata.private.name"]
    assert list(refused(rate, MetadataSchemaError, run_metadata=Rating)) == ["rate.run_metadata"]


# -------------------------------------------------------------------------------- patches

BAGS = MetadataSchemas(private=Job, public=Rating)


def test_a_patch_is_merged_at_the_top_level_and_checked_whole():
    """A-META-5."""
    start = BAGS.initial()
    bags = BAGS.patched(
        start, MetadataPatch(private={"job_id": "j1"}, public={"tags": ["b", "a"]}), at="run"
    )
    assert bags.private == {"job_id": "j1", "opened": None}
    assert bags.public == {"rating": None, "tags": ["a", "b"]}
    again = BAGS.patched(bags, MetadataPatch(public={"rating": "up", "tags": []}), at="run")
    assert again.public == {"rating": "up", "tags": []}
    assert again.private == bags.private
    assert start == BAGS.initial()


@pytest.mark.parametrize(
    ("patch", "path"),
    [
        (MetadataPatch(public={"rating": "sideways"}), "run.public.rating"),
        (MetadataPatch(public={"stars": 5}), "run.public.stars"),
        (MetadataPatch(private={"job_id": 7}, public={"rating": "up"}), "run.private.job_id"),
        (MetadataPatch(private={"job_id": "j"}, public={"tags": [1]}), "run.public.tags[0]"),
        (MetadataPatch(private={"job_id": float("nan")}), "run.private.job_id"),
        (MetadataPatch(private={"job_id": {"a"}}), "run.private.job_id"),
    ],
)
def test_a_refused_patch_changes_neither_bag(patch, path):
    """A-META-5, A-META-2."""
    start = BAGS.initial()
    with pytest.raises(InvalidInput) as caught:
        BAGS.patched(start, patch, at="run")
    assert [fault.path for fault in caught.value.faults] == [path]
    assert start == BAGS.initial()


@given(st.text().map("planted {}".format))
def test_no_error_shows_a_private_value(secret):
    """A-META-6: whatever is wrong with it."""
    for value in (secret, [secret], {"k": secret}):
        with pytest.raises(InvalidInput) as caught:
            BAGS.patched(BAGS.initial(), MetadataPatch(private={"opened": value}), at="run")
        assert secret not in str(caught.value)


@attrs.frozen
class Secretive:
    tree: dict[str, list[str]] = attrs.field(factory=dict)
    count: int = 0


@given(st.text(min_size=1).map("planted {}".format))
def test_no_error_shows_a_private_key(key):
    """A-META-6, R-40: keys that the schema does not declare are content."""
    pair = MetadataSchemas(private=Secretive, public=Secretive)
    for patch, path in (
        ({key: 1}, "run.private"),
        ({"tree": {key: "no list"}}, "run.private.tree"),
        ({"count": [key]}, "run.private.count"),
    ):
        for write in (
            lambda patch=patch: pair.patched(
                pair.initial(), MetadataPatch(private=patch), at="run"
            ),
            lambda patch=patch: pair.replaced(pair.initial(), patch, None, at="run"),
        ):
            with pytest.raises(InvalidInput) as caught:
                write()
            assert [fault.path for fault in caught.value.faults] == [path]
            assert key not in f"{caught.value}{caught.value.__context__}"
    _, hidden, shown = pair.read(Metadata({key: 1}, {key: 1}))
    assert key not in str(hidden)
    assert len(hidden) == len(shown) == 1
