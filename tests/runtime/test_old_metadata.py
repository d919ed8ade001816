"""Metadata that was written under an older schema is read through the one of today (A-META-10)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import attrs
import pytest

from pai import (
    InvalidInput,
    MetadataPatch,
    MetadataSchemas,
    Pai,
    RunContext,
    RunPatch,
    ThreadRef,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
)
from pai.protocol import fold
from pai.testing import ScriptedModel

pytestmark = pytest.mark.anyio

MARK = "only-for-the-server"


@attrs.frozen
class OldHidden:
    secret: str = ""


@attrs.frozen
class OldShown:
    label: str = ""
    stars: str = "many"


@attrs.frozen
class NewHidden:
    secret: int = 0
    note: str = "new"


@attrs.frozen
class NewShown:
    label: str = ""
    stars: int = 1
    added: list[str] = attrs.field(factory=lambda: ["x"])


OLD = MetadataSchemas(private=OldHidden, public=OldShown)
NEW = MetadataSchemas(private=NewHidden, public=NewShown)
ADDED = MetadataSchemas(private=OldHidden, public=attrs.make_class(
    "More", {"label": attrs.field(default="", type=str), "stars": attrs.field(default="", type=str),
             "added": attrs.field(default=7, type=int)}, frozen=True,
))  # fmt: skip


class Marks:
    """Writes into all of it what must not be seen."""

    @hookimpl
    async def prepare_run(self, run: RunContext[Any]) -> RunPatch:
        patch = MetadataPatch(private={"secret": MARK}, public={"label": "kept"})
        return RunPatch(run_metadata=patch, thread_metadata=patch, message_metadata=patch)


def app_of(url: str, schemas: Any, *plugins: object, **options: Any) -> Pai:
    agent = define_agent(
        name="a",
        model=ScriptedModel(["hi"] * 3),
        run_metadata=schemas,
        thread_metadata=schemas,
        message_metadata=schemas,
        lifecycle=compose_lifecycle(*plugins),
    )
    return create_pai(agents={"a": agent}, store=url, plugins=(), **options)


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with a thread of the older schema: one run that has ended, one that waits."""
    made = f"sqlite:///{tmp_path / 'pai.db'}"
    if request.param == "postgresql":
        made = request.getfixturevalue("postgres")
    async with app_of(made, OLD, Marks()) as app:
        await (await app.thread("a", thread_id="t").send("one")).result()
    async with app_of(made, OLD, work=False) as app:
        await app.thread("a", thread_id="t").send("two", run_id="waits")
    return made


async def test_a_new_field_takes_its_default(url: str) -> None:
    """A-META-10"""
    async with app_of(url, ADDED, work=False) as app:
        state = await app.thread("a", thread_id="t").state()
        kept = {"label": "kept", "stars": "many", "added": 7}
        fresh = {"label": "", "stars": "many", "added": 7}
        assert state.thread.metadata == kept
        assert [run.metadata for run in state.runs] == [kept, fresh]
        assert [m.metadata for m in state.messages] == [fresh, kept, fresh]
        assert state.diagnostics == ()
        (summary,) = (await app.threads("a")).items
        assert summary.metadata == kept


async def test_what_does_not_fit_is_a_diagnostic(url: str) -> None:
    """A-META-10, A-META-6: never a failed read; nothing of the private bag is told."""
    async with app_of(url, NEW, work=False) as app:
        state = await app.thread("a", thread_id="t").state()
        kept = {"label": "kept", "stars": 1, "added": ["x"]}
        assert state.thread.metadata == kept
        assert state.runs[0].metadata == state.messages[1].metadata == kept
        told = [(item.of, item.path) for item in state.diagnostics]
        expected = [("thread", "metadata.stars")] + [("run", "metadata.stars")] * 2
        assert told == expected + [("message", "metadata.stars")] * 3
        assert state.diagnostics[0].id == "t"
        assert MARK not in f"{state}"
        assert "secret" not in f"{state.diagnostics}"
        (summary,) = (await app.threads("a")).items
        assert summary.metadata == kept


async def test_contexts_show_it_and_the_run_goes_on(url: str, caplog: Any) -> None:
    """A-META-10, R-25, R-40: claims and contexts; what is left out is reported whole, not logged."""
    seen: list[Any] = []
    errors: list[BaseException] = []

    class Look:
        @hookimpl
        async def prepare_run(self, run: RunContext[Any]) -> RunPatch:
            seen.append((run.metadata, run.thread.metadata, run.messages[1].metadata))
            return RunPatch(thread_metadata=MetadataPatch(public={"label": "again"}))

    async with app_of(url, NEW, work=False) as app:
        before = await app.thread("a", thread_id="t").state()
    with anyio.fail_after(20):
        async with app_of(url, NEW, Look(), on_runtime_error=errors.append) as app:
            thread = app.thread("a", thread_id="t")
            run = await thread.run("waits")
            result = await run.result()
            assert result.status == "completed"
            state = await thread.state()
            events = []
            async for event in thread.events(after=before.cursor):
                events.append(event)
                if event.seq == state.cursor:
                    break
    run_bags, thread_bags, message_bags = seen[0]
    new = {"secret": 0, "note": "new"}
    assert [dict(bags.private) for bags in seen[0]] == [new] * 3
    assert dict(run_bags.public) == {"label": "", "stars": 1, "added": ["x"]}
    for bags in (thread_bags, message_bags):
        assert dict(bags.public) == {"label": "kept", "stars": 1, "added": ["x"]}
    (error,) = errors
    assert isinstance(error, InvalidInput)
    paths = {fault.path for fault in error.faults}
    assert {"run_metadata.public.stars", "thread_metadata.private.secret"} <= paths
    assert MARK not in f"{error}{caplog.text}"
    # Whoever watched since then knows what is read now.
    assert state.thread.metadata == {"label": "again", "stars": 1, "added": ["x"]}
    assert fold(before, events) == state
    assert {item.id for item in state.diagnostics if item.of != "message"} == {state.runs[0].id}


async def test_a_patch_is_merged_into_what_is_read(url: str) -> None:
    """A-META-5, A-META-10: what does not fit any more goes with the next write of its bag."""
    async with app_of(url, NEW, work=False) as app:
        thread = app.thread("a", thread_id="t")
        await thread.update_metadata(public={"stars": 5})
        state = await thread.state()
        assert state.thread.metadata == {"label": "kept", "stars": 5, "added": ["x"]}
        assert "thread" not in {item.of for item in state.diagnostics}
        with pytest.raises(InvalidInput, match=r"public\.stars"):
            await thread.update_metadata(public={"stars": "many"})
        run = await thread.run(state.runs[0].id)
        await run.update_metadata(public={"label": "late"})
        assert (await thread.state()).runs[0].metadata["label"] == "late"


async def test_observers_of_a_deletion_are_shown_it(url: str) -> None:
    seen: list[Any] = []

    class Look:
        @hookimpl
        def thread_deleted(self, thread: ThreadRef) -> None:
            seen.append(dict(thread.metadata.public))

    async with app_of(url, NEW, Look(), work=False) as app:
        await app.thread("a", thread_id="t").delete()
    assert seen == [{"label": "kept", "stars": 1, "added": ["x"]}]
