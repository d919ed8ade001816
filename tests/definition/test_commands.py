"""Commands where they are declared."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from pai import CommandContext, MetadataPatch, Signal, define_capability, define_command
from pai.definition import Capabilities

from .refusals import refused


@attrs.frozen
class Rate:
    stars: int


def rate(ctx: CommandContext[object], given: Rate) -> int:
    return given.stars


def made(**more: Any) -> Any:
    return define_command(
        **{
            "name": "rate",
            "description": "Rate an answer.",
            "input": Rate,
            "output": int,
            "execute": rate,
            **more,
        }
    )


def test_a_command_keeps_what_it_was_given():
    """A-DEF-2: for the server alone unless it is exposed."""
    db = define_capability("db", dict)

    async def execute(ctx, given) -> int:
        return 1

    command = made(execute=execute, exposed=True, capabilities={"db": db})
    assert (command.name, command.description) == ("rate", "Rate an answer.")
    assert command.input.type is Rate
    assert command.output.type is int
    assert command.is_async
    assert command.exposed
    assert command.capabilities == {"db": db}
    assert not made().exposed
    assert not made().is_async


def test_all_faults_of_a_command_are_one_error():
    """A-DEF-2."""
    faults = refused(
        made,
        name="1",
        description="",
        input=set[int],
        output=None,
        execute=lambda given: None,
        exposed="no",
        capabilities=["db"],
    )
    assert set(faults) == {
        "1.name",
        "1.description",
        "1.input",
        "1.output",
        "1.execute",
        "1.exposed",
        "1.capabilities",
    }


@pytest.mark.anyio
async def test_a_command_patches_metadata_through_its_context():
    """A-META-5: one of the doors."""
    asked: list[Any] = []

    class Host:
        async def update_metadata(self, run, thread, message) -> None:
            asked.append((run, thread, message))

    ctx = CommandContext(
        context=None,
        identity=None,
        client_data=None,
        thread_id="t1",
        capabilities=Capabilities({}),
        signal=Signal(),
        host=Host(),
    )
    patch = MetadataPatch(public={"stars": 5})
    await ctx.update_metadata(run=patch)
    await ctx.update_metadata(thread=patch, message=patch)
    assert asked == [(patch, None, None), (None, patch, patch)]


def test_an_alias_that_nobody_declared_is_named():
    """A-CAP-1."""
    bound = Capabilities({"db": 1})
    assert bound.db == 1
    with pytest.raises(AttributeError, match="'clock'; declared: db"):
        bound.clock
