"""`pai.limits`: time limits on a stream (R-35)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from pai import limits
from pai.testing import Fail, Hang, ScriptedModel

from ..lifecycle.streams import Model, Wrap, agent
from ..played import play


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("options", "turn", "code"),
    [
        ({"first": 0.01}, [Hang()], "model_timeout"),
        ({"between": 0.01}, [Hang()], "model_timeout"),
        ({"between": 0.01}, ["some", Hang()], "model_timeout"),
        ({"first": 0.01}, ["some"], None),
        ({"total": 0.01}, ["some", Hang()], "model_timeout"),
        ({"first": 5, "between": 5, "total": 5}, ["some"], None),
        ({}, ["some"], None),
    ],
)
async def test_limits_stand_around_each_wait(options: Any, turn: Any, code: str | None) -> None:
    """R-35"""

    async def limited(step: Any, call_model: Any) -> AsyncIterator[Any]:
        async for part in limits(call_model(step.request), **options):
            yield part

    model = Model([turn])
    played = await play(agent(model, Wrap(limited)))
    assert (played.result.error or {}).get("code") == code
    assert model.open == 0


@pytest.mark.anyio
async def test_a_timeout_of_the_stream_itself_is_its_own() -> None:
    error = TimeoutError("mine")

    async def limited(step: Any, call_model: Any) -> AsyncIterator[Any]:
        async for part in limits(call_model(step.request), first=5):
            yield part

    assert (await play(agent(Model([Fail(error)]), Wrap(limited)))).errors == [error]


@pytest.mark.anyio
async def test_limits_do_not_count_the_time_of_the_reader() -> None:
    async def limited(step: Any, call_model: Any) -> AsyncIterator[Any]:
        async for part in limits(call_model(step.request), between=0.05):
            yield part
            await anyio.sleep(0.1)

    model = ScriptedModel(["hi"])
    assert (await play(agent(model, Wrap(limited)))).result.status == "completed"
