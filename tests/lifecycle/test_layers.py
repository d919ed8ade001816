"""The layers that plugins put around a step's stream: order, faults, closing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    ModelError,
    ModelRequest,
    PluginError,
    RateLimited,
    StepFinish,
    StepReset,
    TextDelta,
    TextEnd,
    TextStart,
)
from pai.testing import Cut, Fail, Hang, ScriptedModel

from ..played import Played, play
from .streams import (
    Model,
    Plain,
    PlainIterator,
    Transform,
    Wrap,
    agent,
    from_inner,
    passing,
    text,
)


def blamed(played: Played) -> PluginError:
    assert played.result.status == "failed"
    (told,) = played.errors
    assert isinstance(told, PluginError)
    return told


# ------------------------------------------------------------------------ what comes out


@pytest.mark.anyio
async def test_what_a_transform_yields_is_canonical() -> None:
    """A-LIFE-6: streamed, stored, sent to later steps; what it removed is nowhere."""

    async def mask(step: Any, stream: Any) -> AsyncIterator[Any]:
        async for part in stream:
            if isinstance(part, TextDelta):
                part = TextDelta(part.id, part.text.replace("4111", "****"))
            yield part

    model = Model(["card 4111"])
    played = await play(agent(model, Transform(mask)))
    assert played.result.text == "card ****"
    assert "4111" not in played.seen
    assert played.types == [
        "run-queued", "run-started", "step-started", "text-start", "text-delta", "text-end",
        "step-finished", "run-finished",
    ]  # fmt: skip


@pytest.mark.anyio
async def test_transforms_are_chained_and_wraps_nest() -> None:
    """A-LIFE-2: the leftmost transform is nearest the model, the leftmost wrap outermost."""

    def marking(mark: str) -> Any:
        async def change(step: Any, inner: Any) -> AsyncIterator[Any]:
            async for part in from_inner(step, inner):
                if isinstance(part, TextDelta):
                    part = TextDelta(part.id, f"{part.text}{mark}")
                yield part

        return change

    plugins = (
        Transform(marking("C")), Wrap(marking("B")), Transform(marking("D")), Wrap(marking("A")),
    )  # fmt: skip
    played = await play(agent(Model(["."]), *plugins))
    assert played.result.text == ".ABCD"


@pytest.mark.anyio
@pytest.mark.parametrize("wrapped", [False, True])
async def test_a_driver_without_aclose_is_fine(wrapped: bool) -> None:
    plugins = [Wrap(passing), Transform(passing)] if wrapped else []
    assert (await play(agent(Plain(), *plugins))).result.text == "hi"


@pytest.mark.anyio
async def test_a_layer_may_be_any_async_iterator() -> None:
    async def later(step: Any, call_model: Any) -> Any:
        return PlainIterator([*text("own"), StepFinish("stop")])

    model = Model(["model"])
    played = await play(agent(model, Wrap(later), Transform(lambda step, stream: stream)))
    assert (played.result.text, model.requests) == ("own", [])


@pytest.mark.anyio
async def test_an_inner_layer_sees_what_the_outer_one_asks_for() -> None:
    seen: list[str] = []

    async def outer(step: Any, call_model: Any) -> AsyncIterator[Any]:
        async for part in call_model(attrs.evolve(step.request, provider_options={"x": {}})):
            yield part

    async def inner(step: Any, call_model: Any) -> AsyncIterator[Any]:
        seen.extend(step.request.provider_options)
        async for part in call_model(step.request):
            yield part

    model = Model(["hi"])
    await play(agent(model, Wrap(outer), Wrap(inner)))
    assert seen == ["x"]
    assert model.requests[0].provider_options == {"x": {}}


# ------------------------------------------------------------------------ several calls


@pytest.mark.anyio
async def test_a_second_call_after_a_step_reset() -> None:
    """R-37: the lost parts vanish live, in replay and from history."""

    async def fallback(step: Any, call_model: Any) -> AsyncIterator[Any]:
        try:
            async for part in call_model(step.request):
                yield part
        except ModelError:
            yield StepReset("fallback")
            async for part in call_model(step.request):
                yield part

    model = Model([["lost", Fail()], "kept"])
    played = await play(agent(model, Wrap(fallback), Transform(passing)))
    assert (played.result.text, played.result.status) == ("kept", "completed")
    assert [message.parts[0].text for message in played.state.messages] == ["go", "kept"]
    at = played.types.index("step-reset")
    assert "lost" in str(played.events[:at])
    assert "lost" not in str(played.events[at:])
    assert model.open == 0


@pytest.mark.anyio
async def test_a_call_given_up_is_closed_at_once_or_with_the_step() -> None:
    """R-28"""
    opened: list[int] = []

    async def race(step: Any, call_model: Any) -> AsyncIterator[Any]:
        async with aclosing(call_model(step.request)) as first:
            await anext(first)
            opened.append(model.open)
        opened.append(model.open)
        second = call_model(step.request)
        await anext(second)
        call_model(step.request)  # never read
        async for part in call_model(step.request):
            yield part
        opened.append(model.open)

    model = Model(["one", "two", "three"])
    played = await play(agent(model, Wrap(passing), Wrap(race), Wrap(passing)))
    assert played.result.text == "three"
    assert opened == [1, 0, 1]
    assert (model.open, model.closed) == (0, 3)


@pytest.mark.anyio
async def test_a_layer_that_stops_early_closes_what_it_holds() -> None:
    """R-28: an early exit of an outer layer."""
    closed: list[str] = []

    async def inner(step: Any, stream: Any) -> AsyncIterator[Any]:
        try:
            async for part in stream:
                yield part
        finally:
            await anyio.lowlevel.checkpoint()
            closed.append("inner")

    async def first_only(step: Any, stream: Any) -> AsyncIterator[Any]:
        async for part in stream:
            yield part
            if isinstance(part, TextEnd):
                break
        yield StepFinish("stop")
        closed.append("outer")

    model = Model([["one", "two"]])
    played = await play(agent(model, Transform(inner), Transform(first_only)))
    assert played.result.text == "one"
    assert closed == ["outer", "inner"]
    assert model.open == 0


@pytest.mark.anyio
async def test_a_layer_that_never_reads_its_stream() -> None:
    async def own(step: Any, stream: Any) -> AsyncIterator[Any]:
        for part in (*text("mine"), StepFinish("stop")):
            yield part

    model = Model(["model"])
    played = await play(agent(model, Wrap(passing), Transform(passing), Transform(own)))
    assert played.result.text == "mine"
    assert model.requests == []


# ------------------------------------------------------------------------ faults


@pytest.mark.anyio
async def test_a_model_s_error_passes_through_layers_unchanged() -> None:
    error = RateLimited("slow down", provider="p", status=429)
    plugins = Wrap(passing), Wrap(passing), Transform(passing), Transform(passing)
    played = await play(agent(Model([["some", Fail(error)]]), *plugins))
    assert played.errors == [error]
    assert (played.result.error or {})["code"] == "rate_limited"
    assert played.result.text == "some"


@pytest.mark.anyio
async def test_a_driver_s_bug_is_not_a_plugin_s() -> None:
    error = KeyError("bug")
    played = await play(agent(Model([["some", Fail(error)]]), Wrap(passing), Transform(passing)))
    assert played.errors == [error]
    assert (played.result.error or {})["code"] == "internal_error"


@pytest.mark.anyio
async def test_the_first_error_raised_again_after_a_second_call_is_the_model_s() -> None:
    first = KeyError("first")

    async def twice(step: Any, call_model: Any) -> AsyncIterator[Any]:
        try:
            async for part in call_model(step.request):
                yield part
        except KeyError as error:
            try:
                async for part in call_model(step.request):
                    yield part
            except KeyError:
                raise error from None

    played = await play(agent(Model([Fail(first), Fail(KeyError("second"))]), Wrap(twice)))
    assert played.errors == [first]


@pytest.mark.anyio
@pytest.mark.parametrize("at", ["start", "middle", "end", "close"])
@pytest.mark.parametrize("kind", [Wrap, Transform])
async def test_a_layer_that_raises_is_the_one_blamed(kind: Any, at: str) -> None:
    """R-33"""

    async def bad(step: Any, inner: Any) -> AsyncIterator[Any]:
        if at == "start":
            raise ValueError
        try:
            async for part in from_inner(step, inner):
                yield part
                if at == "middle":
                    raise ValueError
            if at == "end":
                raise ValueError
        finally:
            if at == "close":
                raise ValueError

    plugins = [kind(passing, "left"), kind(bad, "bad"), kind(passing, "right")]
    told = blamed(await play(agent(Model(["hi"]), *plugins)))
    assert told.plugin == "bad"
    assert isinstance(told.__cause__, ValueError)


@pytest.mark.anyio
async def test_all_layers_are_closed_though_one_raises_as_it_is_closed() -> None:
    closed: list[str] = []

    def closing(name: str) -> Any:
        async def layer(step: Any, stream: Any) -> AsyncIterator[Any]:
            try:
                async for part in stream:
                    yield part
            finally:
                closed.append(name)
                if name == "bad":
                    raise ValueError

        return layer

    async def stops(step: Any, stream: Any) -> AsyncIterator[Any]:
        await anext(stream)
        for part in (*text("mine"), StepFinish("stop")):
            yield part

    plugins = [Transform(closing(name), name) for name in ("inner", "bad")]
    model = Model(["hi"])
    told = blamed(await play(agent(model, *plugins, Transform(stops))))
    assert told.plugin == "bad"
    assert closed == ["bad", "inner"]
    assert model.open == 0


@pytest.mark.anyio
async def test_who_ends_a_stream_without_a_finish_is_blamed() -> None:
    async def swallowing(step: Any, inner: Any) -> AsyncIterator[Any]:
        async for part in from_inner(step, inner):
            if not isinstance(part, StepFinish):
                yield part

    async def nothing(step: Any, inner: Any) -> AsyncIterator[Any]:
        return
        yield

    def around(kind: Any, function: Any) -> Any:
        return agent(
            Model(["hi"]),
            *[kind(passing, "left"), kind(function, "bad"), kind(passing, "right")],
        )

    for kind in (Wrap, Transform):
        for function in (swallowing, nothing):
            told = blamed(await play(around(kind, function)))
            assert (told.plugin, told.__cause__) == ("bad", None)
            assert "without a StepFinish" in str(told)


@pytest.mark.anyio
async def test_a_driver_that_ends_without_a_finish_is_blamed_through_layers() -> None:
    class Short(Plain):
        def stream(self, request: ModelRequest) -> Any:
            return PlainIterator(text("hi"))

    for plugins in ([], [Wrap(passing), Transform(passing)]):
        for model in (Short(), ScriptedModel([["hi", Cut()]])):
            played = await play(agent(model, *plugins))
            assert (played.result.error or {})["code"] == "incomplete_stream"
            assert played.result.text == "hi"


@pytest.mark.anyio
@pytest.mark.parametrize(
    "parts",
    [
        [TextDelta("nobody", "x")],
        [StepFinish("stop"), TextStart("x")],
        [TextStart("x"), StepFinish("stop"), TextDelta("x", "late")],
        [*text("x"), TextEnd("x")],
        [TextStart("x"), TextStart("x")],
        ["no part"],
    ],
)
async def test_a_stream_that_is_not_well_formed_fails_the_run(parts: list[Any]) -> None:
    class Odd(Plain):
        def stream(self, request: ModelRequest) -> Any:
            return PlainIterator([parts])

    played = await play(agent(Odd()))
    assert (played.result.error or {})["code"] == "malformed_stream"


@pytest.mark.anyio
async def test_call_model_takes_a_request() -> None:
    async def wrong(step: Any, call_model: Any) -> AsyncIterator[Any]:
        async for part in call_model(step):
            yield part

    told = blamed(await play(agent(Model(["hi"]), Wrap(wrong))))
    assert "call_model takes a request" in str(told.__cause__)


# ------------------------------------------------------------------------ cancellation


@pytest.mark.anyio
@pytest.mark.parametrize("kind", [Wrap, Transform])
async def test_cancelling_while_layers_wait_closes_them(kind: Any) -> None:
    """R-28, R-14, R-35"""
    closed: list[str] = []

    async def layer(step: Any, inner: Any) -> AsyncIterator[Any]:
        try:
            async for part in from_inner(step, inner):
                yield part
        finally:
            closed.append("layer")

    async def cancel(run: Any) -> None:
        async for _ in run.text():
            await run.cancel("enough")

    model = Model([["partial", Hang()]])
    played = await play(agent(model, kind(layer), kind(layer)), during=cancel)
    assert (played.result.status, played.result.text) == ("cancelled", "partial")
    assert closed == ["layer", "layer"]
    assert model.open == 0
    assert played.errors == []


@pytest.mark.anyio
async def test_a_layer_cannot_swallow_a_cancellation() -> None:
    """R-35"""

    async def swallows(step: Any, stream: Any) -> AsyncIterator[Any]:
        try:
            async for part in stream:
                yield part
        except anyio.get_cancelled_exc_class():
            yield StepFinish("stop")

    async def cancel(run: Any) -> None:
        async for _ in run.text():
            await run.cancel("enough")

    model = Model([["partial", Hang()]])
    played = await play(agent(model, Transform(swallows)), during=cancel)
    assert (played.result.status, played.result.text) == ("cancelled", "partial")


@pytest.mark.anyio
async def test_a_layer_that_will_not_close_does_not_hold_up_the_end(monkeypatch) -> None:
    monkeypatch.setattr("pai.loop._step._LETTING_GO", 0.01)

    async def clings(step: Any, stream: Any) -> AsyncIterator[Any]:
        try:
            yield TextEnd("out of place")
        finally:
            await anyio.sleep_forever()

    played = await play(agent(Model(["hi"]), Transform(clings)))
    assert (played.result.error or {})["code"] == "malformed_stream"
