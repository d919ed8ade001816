"""A structured output as it is written, as objects of a type (O-11)."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, Literal, TypedDict

import anyio
import attrs
import pytest

from pai import (
    UNSET,
    DefinitionError,
    InvalidInput,
    RunPatch,
    RunResult,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.testing import ScriptedModel

pytestmark = pytest.mark.anyio


@attrs.frozen
class Bug:
    kind: Literal["bug"]
    line: int


@attrs.frozen
class Praise:
    kind: Literal["praise"]
    words: str


def tidy(text: str) -> str:
    return text.strip()


@attrs.frozen
class Report:
    title: str = attrs.field(converter=tidy)
    found: list[Bug | Praise] = attrs.field(factory=list)
    when: dt.date | None = None
    made: list[str] = attrs.field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        self.made.append("whole")


class Note(TypedDict):
    text: str
    stars: int


TEXT = (
    '{"title": " Good", "when": "2026-01-31", "found": '
    '[{"kind": "bug", "line": 12}, {"kind": "praise", "words": "Nice"}]}'
)


async def written(
    as_type: Any, *turns: str, asked: Any = None, chunk: int = 1, lifecycle: Any = None
) -> tuple[list[Any], RunResult]:
    """What a run gave of its output, which *asked* says, else *as_type*; and its result."""
    outputs = {"it": as_type if asked is None else asked}
    agent = define_agent(
        name="a", model=ScriptedModel(turns, chunk), outputs=outputs, lifecycle=lifecycle
    )
    options = {"output": "it"} if lifecycle is None else None
    with anyio.fail_after(20):
        async with create_pai(agents={"a": agent}) as app:
            run = await app.thread("a").send("go", options=options)
            return [value async for value in run.partial_output(as_type)], await run.result()


def different(values: Iterable[Any]) -> list[Any]:
    """*values* without those that only repeat the one before."""
    found: list[Any] = []
    for value in values:
        if not found or value != found[-1]:
            found.append(value)
    return found


async def test_instances_of_a_class() -> None:
    """Each has more; the last is made by the class itself, and is that of the result."""
    (*values, last), result = await written(Report, TEXT)
    assert last == result.output == Report("Good", [Bug("bug", 12), Praise("praise", "Nice")],
                                           dt.date(2026, 1, 31))  # fmt: skip
    assert last.made == ["whole"]
    assert all(type(value) is Report for value in values)
    assert all(value.made is UNSET for value in values)
    titles = different(value.title for value in values)
    assert titles == [UNSET, " ", " G", " Go", " Goo", " Good"]
    assert {value.when for value in values} == {UNSET, dt.date(2026, 1, 31)}
    found = different(value.found for value in values)
    assert found[:4] == [UNSET, [], [Bug("bug", UNSET)], [Bug("bug", 12)]]  # type: ignore[arg-type]
    words = [each[1].words for each in found[4:]]
    assert words == [UNSET, "N", "Ni", "Nic", "Nice"]


@pytest.mark.parametrize(
    ("type_", "text", "first", "last"),
    [
        (list[int], '{"value": [1, 22]}', [], [1, 22]),
        (list[Note], '{"value": [{"text": "a", "stars": 5}]}', [], [{"text": "a", "stars": 5}]),
        (Note, '{"text": "a", "stars": 5}', {}, {"text": "a", "stars": 5}),
        (dict[str, int], '{"a": 1}', {}, {"a": 1}),
        (Bug | Praise, '{"value": {"line": 5, "kind": "bug"}}', Bug("bug", 5), Bug("bug", 5)),
        (int | None, '{"value": null}', None, None),
        (int | None, '{"value": 5}', 5, 5),
        (str, '{"value": "ab"}', "a", "ab"),
        (Literal["yes", "no"], '{"value": "no"}', "no", "no"),
    ],
)
async def test_other_types(type_, text: str, first, last) -> None:
    values, result = await written(type_, text)
    assert values[0] == first
    assert values[-1] == last == result.output


async def test_nulls_of_the_strict_form() -> None:
    """A null that stands for an absent key sets nothing."""
    values, _ = await written(Report, '{"found": null, "title": "T", "when": null}')
    assert {value.found is UNSET for value in values[:-1]} == {True}
    assert values[-1] == Report("T")


async def test_it_begins_anew_where_the_answer_is_asked_for_again() -> None:
    values, result = await written(Report, '{"title": 5, "when": null}', '{"title": "T"}')
    titles = [value.title for value in values]
    assert set(titles[:-2]) == {UNSET}
    assert titles[-2:] == ["T", "T"]
    assert values[-1] == result.output


async def test_an_output_that_a_hook_asked_for() -> None:
    class Chooses:
        @hookimpl
        def prepare_run(self):
            return RunPatch(output=list[str])

    values, _ = await written(list[str], '{"value": ["ab"]}', lifecycle=Chooses())
    assert different(values) == [[], ["a"], ["ab"]]


async def test_prose_is_no_output() -> None:
    class Nothing:
        @hookimpl
        def prepare_run(self):
            return None

    assert (await written(Report, "Hello there.", lifecycle=Nothing()))[0] == []


async def test_the_output_is_of_another_type() -> None:
    schema = {"type": "object", "properties": {"title": {"type": "integer"}}}
    agent = define_agent(name="a", model=ScriptedModel(['{"title": 5}']), outputs={"it": schema})
    async with create_pai(agents={"a": agent}) as app:
        run = await app.thread("a").send("go", options={"output": "it"})
        with pytest.raises(InvalidInput, match=r"output\.title: expected string"):
            [value async for value in run.partial_output(Report)]
        assert [value async for value in run.partial_output()] == [{"title": 5}]
        assert (await run.result()).output == {"title": 5}


@pytest.mark.parametrize("type_", [set[int], "report", {"type": "object"}, 5])
async def test_a_type_that_no_schema_is_made_from(type_) -> None:
    """At the call, not when the first value is awaited."""
    agent = define_agent(name="a", model=ScriptedModel(["Hi."]))
    async with create_pai(agents={"a": agent}) as app:
        run = await app.thread("a").send("go")
        with pytest.raises(DefinitionError):
            run.partial_output(type_)
