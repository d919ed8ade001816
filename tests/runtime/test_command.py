"""Commands run on a thread, with everything checked on both sides."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import attrs
import pytest

from pai import (
    CommandContext,
    CommandFailed,
    Fault,
    InvalidInput,
    MetadataPatch,
    MetadataSchemas,
    Pai,
    StoreError,
    ThreadNotFound,
    create_pai,
    define_agent,
    define_capability,
    define_command,
)
from pai.protocol import fold
from pai.testing import ScriptedModel

pytestmark = pytest.mark.anyio

MARK = "only-for-the-server"


@attrs.frozen
class Hidden:
    secret: str = ""


@attrs.frozen
class Shown:
    stars: int = 0
    label: str = ""


@attrs.frozen
class Rating:
    stars: int


@attrs.frozen
class Rated:
    total: int


@attrs.frozen
class Who:
    name: str


SCHEMAS = MetadataSchemas(private=Hidden, public=Shown)
CLOCK = define_capability("clock", int)


def command(execute: Any, **options: Any) -> Any:
    given: dict[str, Any] = {
        "input": Rating,
        "output": Rated,
        "name": "rate",
        "description": "Rate it.",
    }
    given |= options
    return define_command(execute=execute, run_metadata=SCHEMAS, **given)


def app_of(rate: Any, store: str = "memory:", **options: Any) -> Pai:
    made = options.pop("agent", {})
    agent = define_agent(
        name="a",
        model=ScriptedModel(["hi"] * 3),
        commands={"rate": rate},
        run_metadata=SCHEMAS,
        thread_metadata=SCHEMAS,
        message_metadata=SCHEMAS,
        **made,
    )
    return create_pai(agents={"a": agent, "b": agent}, store=store, plugins=(), **options)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "memory:"
    if request.param == "postgresql":
        return str(request.getfixturevalue("postgres"))
    return f"sqlite:///{tmp_path / 'pai.db'}"


async def begun(app: Pai, **options: Any) -> Any:
    thread = app.thread("a", thread_id="t", **options)
    await (await thread.send("go")).result()
    return thread


async def test_input_and_output_are_checked(store: str) -> None:
    """A-RUN-2, A-TOOL-6: an instance goes in, JSON comes out; client data is checked, too."""
    seen: list[Any] = []

    async def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        seen.append((input, ctx.client_data, ctx.thread_id))
        return Rated(input.stars * 2)

    async with app_of(command(rate), store, agent={"client_data": Who}) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go", client_data={"name": "n"})).result()
        before = await thread.state()
        assert await thread.command("rate", {"stars": 2}, client_data={"name": "n"}) == {"total": 4}
        assert await thread.command("rate", Rating(3), client_data={"name": "n"}) == {"total": 6}
        assert seen == [(Rating(n), Who("n"), "t") for n in (2, 3)]
        with pytest.raises(InvalidInput) as caught:
            await thread.command("rate", {"stars": "x"}, client_data={"name": 1})
        assert [fault.path for fault in caught.value.faults] == ["input.stars", "client_data.name"]
        with pytest.raises(InvalidInput, match=r"input\.stars"):
            await thread.command("rate", client_data={"name": "n"})
        assert len(seen) == 2
        assert await thread.state() == before


async def test_a_command_that_there_is_not() -> None:
    """What others there are is not told: some are for the server alone."""
    async with app_of(command(lambda *_: Rated(1))) as app:
        thread = await begun(app)
        with pytest.raises(InvalidInput, match="no command 'gone'") as caught:
            await thread.command("gone", {})
        assert "rate" not in str(caught.value)


async def test_only_on_one_s_own_threads(store: str) -> None:
    """R-7, A-RUN-5"""
    ran: list[object] = []

    def rate(ctx: Any, input: Rating) -> Rated:
        ran.append(input)
        return Rated(0)

    app = app_of(command(rate), store, scope_key=lambda identity: identity["p"])
    with pytest.raises(StoreError, match="not open"):
        await app.thread("a", thread_id="t").command("rate", {"stars": 1})
    async with app:
        await begun(app, identity={"p": "1"})
        for handle in (
            app.thread("b", thread_id="t", identity={"p": "1"}),
            app.thread("a", thread_id="t", identity={"p": "2"}),
            app.thread("a", identity={"p": "1"}),
        ):
            with pytest.raises(ThreadNotFound):
                await handle.command("rate", {"stars": 1})
    assert ran == []


async def test_what_a_command_is_handed() -> None:
    """A-CTX-1, A-CAP-1, A-CAP-2: context, identity and capabilities; a sync one in a thread."""
    seen: list[Any] = []

    async def build(given: Any) -> dict[str, object]:
        return {"for": given.identity.name, "data": given.client_data, "thread": given.thread_id}

    def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        seen.append((ctx.context, ctx.identity, ctx.capabilities.now, ctx.signal.is_set()))
        seen.append(threading.get_ident())
        return Rated(1)

    app = app_of(
        command(rate, capabilities={"now": CLOCK}),
        agent={"identity": Who, "runtime_context": build},
        capabilities={"clock": 7},
    )
    async with app:
        thread = await begun(app, identity={"name": "n"})
        await thread.command("rate", {"stars": 1}, client_data={"x": 1})
    context = {"for": "n", "data": {"x": 1}, "thread": "t"}
    assert seen[0] == (context, Who("n"), 7, False)
    assert seen[1] != threading.get_ident()


async def test_a_command_writes_metadata(store: str) -> None:
    """A-META-5, A-META-8, R-25: of the newest run, the thread, and its last message, all at once."""

    async def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        patch = MetadataPatch(private={"secret": MARK}, public={"stars": input.stars})
        await ctx.update_metadata(run=patch, thread=patch, message=patch)
        return Rated(input.stars)

    async with app_of(command(rate), store) as app:
        thread = await begun(app)
        await (await thread.send("again")).result()
        before = await thread.state()
        await thread.command("rate", {"stars": 5})
        state = await thread.state()
        assert [run.metadata["stars"] for run in state.runs] == [0, 5]
        assert state.thread.metadata["stars"] == 5
        assert [message.metadata["stars"] for message in state.messages] == [0, 0, 0, 5]
        events = []
        async for event in thread.events(after=before.cursor):
            events.append(event)
            if event.seq == state.cursor:
                break
        assert fold(before, events) == state
        assert MARK not in f"{state}{events}"


async def test_a_refused_patch_changes_nothing() -> None:
    """A-META-5: all three or none."""

    async def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        good = MetadataPatch(public={"stars": 1})
        bad = MetadataPatch(public={"stars": "many"})
        with pytest.raises(InvalidInput, match=r"message_metadata\.public\.stars"):
            await ctx.update_metadata(run=good, thread=good, message=bad)
        return Rated(1)

    async with app_of(command(rate)) as app:
        thread = await begun(app)
        before = await thread.state()
        await thread.command("rate", {"stars": 1})
        assert await thread.state() == before


async def test_run_metadata_needs_the_command_s_own_pair() -> None:
    """A-META-8"""

    async def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        await ctx.update_metadata(run=MetadataPatch(public={"stars": 1}))
        return Rated(1)

    made = define_command(
        name="rate", description="Rate.", input=Rating, output=Rated, execute=rate
    )
    async with app_of(made) as app:
        thread = await begun(app)
        with pytest.raises(CommandFailed) as caught:
            await thread.command("rate", {"stars": 1})
        assert "the command declares no schemas" in str(caught.value.__cause__)


async def test_a_sync_command_writes_from_its_thread() -> None:
    def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        patch = MetadataPatch(public={"stars": input.stars})
        anyio.from_thread.run(ctx.update_metadata, None, patch)
        return Rated(1)

    async with app_of(command(rate)) as app:
        thread = await begun(app)
        await thread.command("rate", {"stars": 3})
        assert (await thread.state()).thread.metadata["stars"] == 3


@pytest.mark.parametrize("kind", ["sync", "async", "output", "context"])
async def test_a_command_that_fails_is_reported(kind: str, caplog: Any) -> None:
    """A-RUN-3, R-40: whole to on_runtime_error; the caller and the log get no text of it."""
    errors: list[BaseException] = []

    def broken(*_: Any) -> Any:
        raise ValueError(MARK)

    def misfit(*_: Any) -> Any:
        return {"total": MARK}

    async def broken_later(ctx: Any, input: Any) -> Any:
        raise ValueError(MARK)

    execute: Any = broken_later if kind == "async" else broken
    if kind == "output":
        execute = misfit
    made: Any = {"runtime_context": lambda given: broken()} if kind == "context" else {}
    async with app_of(command(execute), on_runtime_error=errors.append) as app:
        await begun(app)
    async with app_of(command(execute), on_runtime_error=errors.append, agent=made) as app:
        thread = app.thread("a", thread_id="t")
        await (await thread.send("go")).result()
        errors.clear()
        with pytest.raises(CommandFailed) as caught:
            await thread.command("rate", {"stars": 1})
    assert caught.value.command == "rate"
    assert errors == [caught.value.__cause__]
    assert MARK not in f"{caught.value}{caplog.text}"


async def test_errors_of_pai_pass_as_they_are() -> None:
    errors: list[BaseException] = []

    def rate(ctx: Any, input: Rating) -> Rated:
        raise InvalidInput([Fault("input.stars", "nobody rates so badly")])

    async with app_of(command(rate), on_runtime_error=errors.append) as app:
        thread = await begun(app)
        with pytest.raises(InvalidInput, match="so badly"):
            await thread.command("rate", {"stars": 1})
    assert errors == []


@pytest.mark.parametrize("how", ["caller", "server"])
async def test_the_signal_tells_that_it_is_time_to_stop(how: str) -> None:
    """A-CTX-2"""
    begins, told = anyio.Event(), threading.Event()
    reasons: list[str | None] = []

    def rate(ctx: CommandContext[Any], input: Rating) -> Rated:
        anyio.from_thread.run_sync(begins.set)
        assert ctx.signal.wait(10)
        reasons.append(ctx.signal.reason)
        told.set()
        return Rated(1)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            async with app_of(command(rate)) as app:
                thread = await begun(app)
                group.start_soon(thread.command, "rate", {"stars": 1})
                await begins.wait()
                if how == "caller":
                    group.cancel_scope.cancel()
                    with anyio.CancelScope(shield=True):
                        await anyio.to_thread.run_sync(told.wait, 10)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(told.wait, 10)
    assert reasons == ["cancelled" if how == "caller" else "shutdown"]
