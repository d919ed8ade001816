"""Threads and runs through the runtime's own door, on memory and on SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import anyio
import anyio.lowlevel
import anyio.to_thread
import attrs
import pytest

from pai import (
    AnswerConflict,
    DefinitionError,
    InvalidInput,
    Message,
    Pai,
    Respond,
    RunFailed,
    StoreError,
    TextPart,
    ThreadBusy,
    ThreadNotFound,
    ToolContext,
    UnknownOptionError,
    create_agent_runtime,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    run_once_sync,
    tool,
)
from pai.errors import PaiError
from pai.protocol import ThreadKey
from pai.stores import MemoryStore, open_store
from pai.testing import Call, Fail, Hang, ScriptedModel

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return "memory:" if request.param == "memory" else f"sqlite:///{tmp_path / 'pai.db'}"


def app_of(model: ScriptedModel, store: str | MemoryStore = "memory:", **options: Any) -> Pai:
    agent = define_agent(name="a", model=model)
    return create_pai(agents={"main": agent}, store=store, **options)


async def test_a_send_streams_and_is_found_again(store: str) -> None:
    """R-25: a snapshot plus the later events is everything; replay and live are one sequence."""
    async with app_of(ScriptedModel(["Hello, ", "again"], chunk=3), store) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send("one")
        live = [event async for event in run.events()]
        replay = [event async for event in run.events(after=0)]
        assert [e.seq for e in live] == list(range(1, len(live) + 1))
        assert live == replay
        assert "".join([delta async for delta in run.text()]) == "Hello, "
        cursor = (await thread.state()).cursor
        second = await thread.send("two")
        result = await second.result()
        assert result.text == "again"
        assert result.stop_reason == "stop"
        late = [event async for event in second.events()]
        assert late[0].seq == cursor + 1
        assert [e async for e in second.events(after=late[-1].seq)] == []
        found = await thread.run(run.id)
        assert [event async for event in found.events()] == live
        state = await thread.state()
        assert [m.role for m in state.messages] == ["user", "assistant"] * 2
        assert [r.status for r in state.runs] == ["completed", "completed"]
        assert state.cursor == late[-1].seq


async def test_it_is_there_in_the_next_runtime(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    async with app_of(ScriptedModel(["first"]), url) as app:
        await (await app.thread("main", thread_id="t").send("one")).result()
    model = ScriptedModel(["second"])
    async with app_of(model, url) as app:
        await (await app.thread("main", thread_id="t").send("two")).result()
        state = await app.thread("main", thread_id="t").state()
    assert [m.parts[0].text for m in state.messages] == ["one", "first", "two", "second"]
    assert [m.text for m in model.requests[0].messages] == ["one", "first", "two"]


async def test_any_number_of_watchers_see_one_sequence(store: str) -> None:
    """R-25, R-27: joining at any time, from any offset."""
    async with app_of(ScriptedModel(["abcdefghij" * 20], chunk=1), store) as app:
        run = await app.thread("main").send("go")
        seen: dict[int, list[Any]] = {}

        async def watch(after: int) -> None:
            seen[after] = [event async for event in run.events(after=after)]

        async with anyio.create_task_group() as group:
            for after in (0, 1, 7, 50, 150):
                group.start_soon(watch, after)
        whole = seen[0]
        assert len(whole) > 200
        for after, events in seen.items():
            assert events == whole[after:]
            assert [e.seq for e in events] == [e.seq for e in whole[after:]]


async def test_a_watcher_may_leave_at_any_point(store: str) -> None:
    """R-8: the run goes on."""
    async with app_of(ScriptedModel(["abcdef"], chunk=1), store) as app:
        run = await app.thread("main").send("go")
        async for _ in run.events():
            break
        async for _ in run.text():
            break
        assert (await run.result()).text == "abcdef"


async def test_a_thread_is_watched_over_many_runs(store: str) -> None:
    async with app_of(ScriptedModel(["one", "two"]), store) as app:
        thread = app.thread("main", thread_id="t")
        ends = 0
        types: list[str] = []

        async def watch() -> None:
            nonlocal ends
            async for event in app.thread("main", thread_id="t").events():
                types.append(event.type)
                ends += event.type == "run-finished"
                if ends == 2:
                    return

        async with anyio.create_task_group() as group:
            group.start_soon(watch)
            await (await thread.send("1")).result()
            await (await thread.send("2")).result()
        assert types.count("run-queued") == types.count("run-finished") == 2


async def test_runs_of_a_thread_wait_in_order(store: str) -> None:
    """R-1, R-2: one at a time, first in, first out."""
    order: list[str] = []
    active = 0

    class Watch:
        @hookimpl
        def run_started(self, run: Any) -> None:
            nonlocal active
            active += 1
            assert active == 1
            order.append(run.input.text)

        @hookimpl
        def run_settled(self, run: Any) -> None:
            nonlocal active
            active -= 1

    async with app_of(ScriptedModel(lambda _: "ok"), store, plugins=[Watch()]) as app:
        thread = app.thread("main", thread_id="t")
        runs = [await thread.send(str(n)) for n in range(5)]
        for run in runs:
            assert (await run.result()).status == "completed"
    assert order == ["0", "1", "2", "3", "4"]


async def test_a_busy_thread_can_be_refused(store: str) -> None:
    """R-2."""
    async with app_of(ScriptedModel([[Hang()]]), store) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send("one")
        with pytest.raises(ThreadBusy):
            await thread.send("two", when_busy="reject")
        await run.cancel("enough")
        assert (await run.result()).status == "cancelled"
        assert len((await thread.state()).messages) == 1


async def test_the_same_run_id_is_the_same_run(store: str) -> None:
    """O-18: idempotent by id and digest."""
    async with app_of(ScriptedModel(["once"]), store) as app:
        thread = app.thread("main", thread_id="t")
        first = await thread.send("hello", run_id="r1")
        assert (await first.result()).text == "once"
        again = await thread.send("hello", run_id="r1")
        assert again.id == "r1"
        assert (await again.result()).text == "once"
        with pytest.raises(AnswerConflict):
            await thread.send("something else", run_id="r1")
        assert len((await thread.state()).runs) == 1


async def test_cancelling_keeps_what_there_is(store: str) -> None:
    """R-14, R-29, O-1."""
    async with app_of(ScriptedModel([["Half of it", Hang()]]), store) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send("go")
        async for delta in run.text():
            assert delta == "Half of it"
            break
        await run.cancel("changed my mind")
        await run.cancel("twice does no harm")
        result = await run.result()
        assert (result.status, result.reason, result.text) == (
            "cancelled", "changed my mind", "Half of it",
        )  # fmt: skip
        with pytest.raises(RunFailed, match="cancelled"):
            result.raise_for_status()
        events = [event async for event in run.events()]
        assert [e.type for e in events][-3:] == ["text-end", "step-finished", "run-finished"]
        state = await thread.state()
        assert state.messages[-1].parts == (TextPart("Half of it"),)
        assert state.runs[0].reason == "changed my mind"


async def test_a_wish_is_kept_while_the_run_has_not_ended(store: str) -> None:
    """R-8: a process that dies after ``cancel`` has returned leaves it to the next."""
    begun, gate = anyio.Event(), anyio.Event()

    @tool
    async def stubborn(ctx: ToolContext[object]) -> str:
        """Work on, whatever is wanted."""
        with anyio.CancelScope(shield=True):
            begun.set()
            await gate.wait()
        return "done"

    agent = define_agent(
        name="a", model=ScriptedModel([[Call("stubborn")]]), tools={"stubborn": stubborn}
    )
    opened = open_store(store)
    async with create_pai(agents={"main": agent}, store=opened, plugins=()) as app:
        run = await app.thread("main").send("go")
        await begun.wait()
        await run.cancel("enough")
        record = await opened.run(ThreadKey("default", run.thread_id), run.id)
        assert record is not None
        assert (record.status, record.cancel) == ("running", "enough")
        gate.set()
        assert (await run.result()).reason == "enough"


async def test_a_run_is_cancelled_before_it_begins(store: str) -> None:
    """R-8: between the claim and the first step nobody but the run itself can be told."""
    model = ScriptedModel([])
    async with app_of(model, store) as app:
        run = await app.thread("main").send("one")
        await run.cancel("never mind")
        with anyio.fail_after(20):
            assert (await run.result()).reason == "never mind"
    assert model.requests == []


class Late(MemoryStore):
    """Tells of the first run that was accepted when the second one's caller knows already."""

    def __init__(self) -> None:
        super().__init__()
        self.second = anyio.Event()
        self.accepted = 0

    async def accept(self, *args: Any, **options: Any) -> Any:
        accepted = await super().accept(*args, **options)
        self.accepted += 1
        if self.accepted == 1:
            await self.second.wait()
        return accepted


async def test_a_run_that_was_claimed_as_it_was_accepted_is_worked_on() -> None:
    """R-1, R-8: whichever of two callers at once is told first."""
    store = Late()
    async with app_of(ScriptedModel(["one", "two"]), store) as app:
        thread = app.thread("main", thread_id="t")
        texts: list[str] = []

        async def send(text: str) -> None:
            run = await thread.send(text)
            store.second.set()
            texts.append((await run.result()).text)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(send, "a")
                await anyio.wait_all_tasks_blocked()
                group.start_soon(send, "b")
        assert sorted(texts) == ["one", "two"]


async def test_a_caller_who_is_cancelled_leaves_a_run_that_is_worked_on(tmp_path: Path) -> None:
    """R-8: also where that happens when the run is accepted, and nothing of it has begun."""
    async with app_of(ScriptedModel(["fine"]), f"sqlite:///{tmp_path / 'pai.db'}") as app:
        store: Any = app._core.store
        accept, scope = store.accept, anyio.CancelScope()

        async def accepted(*args: Any, **options: Any) -> Any:
            done = await accept(*args, **options)
            scope.cancel()
            await anyio.lowlevel.checkpoint()
            return done

        store.accept = accepted
        thread = app.thread("main", thread_id="t")
        with scope:
            await thread.send("go", run_id="r")
        with anyio.fail_after(10):
            assert (await (await thread.run("r")).result()).text == "fine"
        (run,) = (await thread.state()).runs
        assert run.status == "completed"


class Failing(MemoryStore):
    """Fails at its first claim, when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.gate = anyio.Event(), anyio.Event()

    async def claim(self, *args: Any) -> Any:
        if not self.asked.is_set():
            self.asked.set()
            await self.gate.wait()
            raise StoreError("not now")
        return await super().claim(*args)


async def test_a_store_that_fails_leaves_no_run_that_came_meanwhile() -> None:
    """R-1: what was queued while it failed is looked for."""
    store = Failing()
    errors: list[BaseException] = []
    model = ScriptedModel(["one", "two", "three"])
    async with app_of(model, store, on_runtime_error=errors.append) as app:
        thread = app.thread("main", thread_id="t")
        runs = [await thread.send("a"), await thread.send("b")]
        with anyio.fail_after(20):
            await store.asked.wait()
            runs.append(await thread.send("c"))
            store.gate.set()
            assert [(await run.result()).text for run in runs] == ["one", "two", "three"]
    assert [type(error) for error in errors] == [StoreError]


async def test_a_queued_run_is_cancelled_at_once(store: str) -> None:
    """R-3, R-8."""
    model = ScriptedModel([[Hang()], "next"])
    async with app_of(model, store) as app:
        thread = app.thread("main", thread_id="t")
        first = await thread.send("one")
        with anyio.fail_after(20):
            while not model.requests:
                await anyio.lowlevel.checkpoint()
        second = await thread.send("two")
        third = await thread.send("three")
        await second.cancel("no need")
        assert (await second.result()).status == "cancelled"
        await first.cancel("stop")
        assert (await third.result()).text == "next"


async def test_a_tool_in_a_thread_is_told_and_not_waited_for() -> None:
    """R-17, A-CTX-2: cancelling settles the run though the body has not returned."""
    import threading

    started, told = threading.Event(), threading.Event()

    @tool
    def stubborn(ctx: ToolContext[object]) -> str:
        """Work until told to stop."""
        started.set()
        if ctx.signal.wait(20):
            told.set()
        return str(ctx.signal.reason)

    agent = define_agent(
        name="a", model=ScriptedModel([[Call("stubborn")]]), tools={"stubborn": stubborn}
    )
    async with create_pai(agents={"main": agent}) as app:
        run = await app.thread("main").send("go")
        await anyio.to_thread.run_sync(started.wait, 20)
        await run.cancel("enough")
        assert (await run.result()).status == "cancelled"
        state = await app.thread("main", thread_id=run.thread_id).state()
        part = state.messages[-1].parts[0]
        assert part.outcome == "interrupted"
    assert await anyio.to_thread.run_sync(told.wait, 20)


async def test_partitions_and_agents_keep_apart(store: str) -> None:
    """R-7, A-CTX-3, A-RUN-5: a thread id can repeat; a foreign thread is not found."""

    @attrs.frozen
    class Identity:
        workspace: str
        user: str

    one = define_agent(name="one", model=ScriptedModel(lambda _: "1"), identity=Identity)
    two = define_agent(name="two", model=ScriptedModel(lambda _: "2"), identity=Identity)
    async with create_pai(
        agents={"one": one, "two": two},
        store=store,
        scope_key=lambda identity: identity.workspace,
        actor_key=lambda identity: identity.user,
    ) as app:
        ada = {"workspace": "w1", "user": "ada"}
        await (await app.thread("one", identity=ada, thread_id="t").send("hi")).result()
        with pytest.raises(ThreadNotFound):
            await app.thread("one", identity=Identity("w2", "ada"), thread_id="t").state()
        with pytest.raises(ThreadNotFound):
            await app.thread("two", identity=ada, thread_id="t").state()
        with pytest.raises(ThreadNotFound):
            await app.thread("two", identity=ada, thread_id="t").send("hi")
        same = app.thread("one", identity=Identity("w1", "bob"), thread_id="t")
        assert len((await same.state()).messages) == 2
        with pytest.raises(InvalidInput, match=r"identity\.user"):
            app.thread("one", identity={"workspace": "w1"}, thread_id="t")
        page = await app.threads("one", identity=ada)
        assert [item.id for item in page.items] == ["t"]
        assert (await app.threads("one", identity=Identity("w2", "x"))).items == ()


async def test_what_does_not_fit_is_refused_and_nothing_is_written(store: str) -> None:
    """R-39, O-18."""
    async with app_of(ScriptedModel(), store) as app:
        thread = app.thread("main", thread_id="t")
        for content in ("x" * 1_000_001, [], [3], "lone \ud800 surrogate", None):
            with pytest.raises(InvalidInput, match="content"):
                await thread.send(content)  # type: ignore[arg-type]  # wrong on purpose
        with pytest.raises(InvalidInput, match="run_id"):
            await thread.send("hi", run_id="")
        with pytest.raises(InvalidInput, match="metadata"):
            await thread.send("hi", metadata={"x": {1, 2}})
        with pytest.raises(UnknownOptionError, match="bogus"):
            await thread.send("hi", bogus=1)
        with pytest.raises(UnknownOptionError, match="maxSteps"):
            await thread.send("hi", options={"maxSteps": 3})
        with pytest.raises(ThreadNotFound):
            await thread.state()
        with pytest.raises(ThreadNotFound):
            await thread.run("nobody")
        with pytest.raises(InvalidInput, match="no agent"):
            app.thread("nobody")


async def test_a_failed_run_tells_the_client_a_code_and_the_application_all(store: str) -> None:
    """A-RUN-3, R-40."""
    errors: list[BaseException] = []
    secret = "s3cr3t"
    async with app_of(
        ScriptedModel([["Some", Fail(RuntimeError(secret))]]),
        store,
        on_runtime_error=errors.append,
    ) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send("go")
        result = await run.result()
        assert result.status == "failed"
        assert result.error == {
            "code": "internal_error", "message": "Something failed on the server.", "id": run.id,
        }  # fmt: skip
        assert [str(error) for error in errors] == [secret]
        state = await thread.state()
        events = [event async for event in run.events()]
        assert secret not in repr((state, events))
        assert state.messages[-1].parts == (TextPart("Some"),)


async def test_an_error_handler_that_fails_changes_nothing() -> None:
    def broken(error: BaseException) -> None:
        raise ZeroDivisionError

    async with app_of(ScriptedModel([[Fail()]]), on_runtime_error=broken) as app:
        assert (await (await app.thread("main").send("go")).result()).status == "failed"


async def test_accept_message_changes_or_answers(store: str) -> None:
    """A-LIFE-1: before the first write."""

    class Gate:
        @hookimpl
        async def accept_message(self, message: Message) -> Message | Respond | None:
            if "secret" in message.text:
                return Respond("Not here.", outcome="blocked", reason="policy")
            return attrs.evolve(message, parts=(TextPart(message.text.upper()),))

    model = ScriptedModel(lambda _: "ok")
    async with app_of(model, store, plugins=[Gate()]) as app:
        thread = app.thread("main", thread_id="t")
        assert (await (await thread.send("hello")).result()).text == "ok"
        blocked = await (await thread.send("my secret")).result()
        assert (blocked.status, blocked.outcome, blocked.reason, blocked.text) == (
            "blocked", "blocked", "policy", "Not here.",
        )  # fmt: skip
        with pytest.raises(RunFailed, match="policy"):
            blocked.raise_for_status()
        assert len(model.requests) == 1
        assert (await thread.state()).messages[0].parts == (TextPart("HELLO"),)


async def test_trigger_brings_no_message(store: str) -> None:
    """A-RUN-2."""
    model = ScriptedModel(["Good morning."])
    async with app_of(model, store) as app:
        thread = app.thread("main", thread_id="t")
        assert (await (await thread.trigger()).result()).text == "Good morning."
        state = await thread.state()
        assert [m.role for m in state.messages] == ["assistant"]
        assert state.runs[0].operation == "trigger"


async def test_a_runtime_without_work_accepts_and_another_runs(tmp_path: Path) -> None:
    """R-5, R-6: what a run needs is in the store; watchers follow from another runtime."""

    @attrs.frozen
    class Identity:
        user: str

    def agent(model: ScriptedModel) -> Any:
        return define_agent(
            name="a",
            model=model,
            identity=Identity,
            instructions=lambda i: cast("Identity", i.identity).user,
        )

    url = f"sqlite:///{tmp_path / 'pai.db'}"
    front = create_pai(agents={"main": agent(ScriptedModel())}, store=url, work=False)
    model = ScriptedModel(["worked"])
    back = create_pai(agents={"main": agent(model)}, store=url)
    async with front, back:
        run = await front.thread("main", identity={"user": "ada"}, thread_id="t").send("go")
        with anyio.fail_after(20):
            assert (await run.result()).text == "worked"
        assert model.requests[0].instructions[0].content == "ada"


async def test_at_most_so_many_runs_at_once() -> None:
    running = most = 0
    gate = anyio.Event()

    class Count:
        @hookimpl
        async def prepare_run(self, run: Any) -> None:
            nonlocal running, most
            running += 1
            most = max(most, running)
            if running == 2:
                gate.set()
            await gate.wait()

        @hookimpl
        def run_settled(self, run: Any) -> None:
            nonlocal running
            running -= 1

    async with app_of(ScriptedModel(lambda _: "ok"), plugins=[Count()], max_runs=2) as app:
        runs = [await app.thread("main").send(str(n)) for n in range(6)]
        for run in runs:
            await run.result()
    assert most == 2


async def test_closing_ends_what_runs_in_memory() -> None:
    async with app_of(ScriptedModel([["Half", Hang()]])) as app:
        thread = app.thread("main", thread_id="t")
        run = await thread.send("go")
        async for _ in run.text():
            break
    assert (await run.result()).reason == "shutdown"
    with pytest.raises(StoreError, match="not open"):
        await thread.send("too late")


async def test_closing_leaves_a_durable_run_to_the_next(tmp_path: Path) -> None:
    """R-3, R-13: drained; the step is made again, and the log says that its first try is void."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    async with app_of(ScriptedModel([["Half", Hang()]]), url) as app:
        run = await app.thread("main", thread_id="t").send("go")
        async for _ in run.text():
            break
    async with app_of(ScriptedModel(["Whole."]), url) as app:
        thread = app.thread("main", thread_id="t")
        with anyio.fail_after(20):
            assert (await (await thread.run(run.id)).result()).text == "Whole."
        types = [event.type async for event in (await thread.run(run.id)).events()]
        assert types.count("run-started") == 2
        assert types.count("run-finished") == 1
        assert "step-reset" in types
        assert len((await thread.state()).messages) == 2


async def test_closing_at_once_leaves_the_run_without_its_lease(tmp_path: Path) -> None:
    """R-3: what was claimed and has not begun is handed back; nobody waits for the lease to end."""
    url = f"sqlite:///{tmp_path / 'pai.db'}"
    async with app_of(ScriptedModel(["never"]), url, lease=3600) as app:
        await app.thread("main", thread_id="t").send("go", run_id="r")
    async with app_of(ScriptedModel(["Done."]), url) as app:
        thread = app.thread("main", thread_id="t")
        with anyio.fail_after(20):
            assert (await (await thread.run("r")).result()).text == "Done."


async def test_a_body_that_raises_is_not_held_up() -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012  # the body is what raises
        async with app_of(ScriptedModel([[Hang()]])) as app:
            await app.thread("main").send("go")
            raise ZeroDivisionError


async def test_conversation_id_is_an_old_name() -> None:
    """O-5."""
    async with app_of(ScriptedModel(["x"])) as app:
        with pytest.warns(DeprecationWarning, match="thread_id"):
            thread = app.thread("main", conversation_id="c")
        assert thread.id == "c"
        with pytest.warns(DeprecationWarning, match="thread_id"):
            assert app.thread("main", conversation_id="c", thread_id="t").id == "t"


async def test_run_once_is_the_same_engine() -> None:
    """A-RUN-1, O-8."""
    agent = define_agent(name="a", model=ScriptedModel(["Hi."]))
    assert (await run_once(agent, "hello")).text == "Hi."
    with pytest.raises(UnknownOptionError, match="nonsense"):
        await run_once(agent, "hello", nonsense=1)
    with pytest.raises(PaiError, match="await run_once"):
        run_once_sync(agent, "hello")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "magic"}, "engine"),
        ({"stream": "magic"}, "stream"),
        ({"lease": 0}, "lease"),
        ({"max_runs": 0}, "max_runs"),
        ({"plugins": ["no-such-plugin"]}, r"plugins\[0\]"),
        ({"telemetry": object()}, "telemetry.object: has no @hookimpl"),
        ({"store": "carrier-pigeon:"}, "carrier-pigeon"),
    ],
)
def test_a_runtime_that_cannot_be(options: dict[str, Any], message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        app_of(ScriptedModel(), **options)


def test_unknown_options_of_a_runtime() -> None:
    with pytest.raises(UnknownOptionError, match="bogus"):
        app_of(ScriptedModel(), bogus=1)


async def test_one_agent_is_known_by_its_name() -> None:
    """A-RUN-1."""
    agent = define_agent(name="solo", model=ScriptedModel(["Hi."]))
    async with create_agent_runtime(agent=agent) as app:
        assert (await (await app.thread("solo").send("x")).result()).text == "Hi."
