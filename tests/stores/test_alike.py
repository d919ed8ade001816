"""Whatever is done to them, a store in memory and one in SQLite show the same."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import attrs
from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pai.errors import Fault, InvalidInput, LeaseLost, PaiError
from pai.ports import RecordScope, RunHold, Store
from pai.protocol import (
    Batch,
    CallRecord,
    Commit,
    Event,
    Merge,
    Message,
    MessageMetadata,
    Metadata,
    RunEnd,
    RunFinished,
    RunQueued,
    RunRecord,
    RunStarted,
    TextDelta,
    TextPart,
    ThreadChange,
    ThreadKey,
    ThreadRecord,
    ThreadUpdated,
    ToolCallPart,
    Usage,
    child_id,
    event_to_json,
)
from pai.stores import MemoryStore, open_store

NOW = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
CHILD = child_id("t", "r1", "c1", 0)
GRANDCHILD = child_id(CHILD, CHILD, "c1", 0)
SUBAGENTS = [ThreadKey("p", CHILD), ThreadKey("p", GRANDCHILD), ThreadKey("q", CHILD)]
KEYS = [ThreadKey("p", "t"), ThreadKey("q", "t"), ThreadKey("p", "u")]

keys = st.sampled_from([*KEYS, *KEYS, *SUBAGENTS])
runs = st.sampled_from(["r1", "r1", "r2", "r3", "r4", CHILD, GRANDCHILD])
record_scopes = st.builds(
    RecordScope, st.just("p"), st.sampled_from(["one", "two"]), st.sampled_from(["", "t"])
)
record_keys = st.text("ab\uffff\U00010000", min_size=1, max_size=3)
agents = st.sampled_from(["main", "main", "main", "other"])
leases = st.sampled_from([0.0, 0.0, 1000.0])
fences = st.integers(-1, 0)
messages = st.none() | st.sampled_from(["m1", "m2", "m3", "m4", "m5"])
texts = st.text(max_size=5)
bags = st.none() | st.builds(
    Metadata,
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 9), max_size=1),
    st.dictionaries(st.sampled_from("ab"), texts, max_size=1),
)


def merging(patch: Metadata | None) -> Merge | None:
    """A patch of stored bags; one that names ``z`` is refused."""
    if patch is None:
        return None

    def merge(stored: Metadata) -> Metadata:
        if "z" in patch.private:
            raise InvalidInput([Fault("z", "is refused")])
        return Metadata({**stored.private, **patch.private}, {**stored.public, **patch.public})

    return merge


patches = st.none() | st.builds(
    Metadata,
    st.dictionaries(st.sampled_from("abccz"), st.integers(0, 9), max_size=1),
    st.dictionaries(st.sampled_from("abc"), texts, max_size=2),
)
values = st.none() | st.booleans() | st.integers(0, 9) | texts | st.lists(texts, max_size=2)
calls = st.builds(
    CallRecord,
    st.sampled_from(["c1", "c2"]),
    st.just("m1"),
    st.just("add"),
    st.sampled_from(["requested", "started", "settled"]),
    st.sampled_from([None, "completed", "failed", "interrupted"]),
    values,
    st.none() | texts,
    values,
    st.booleans(),
)
ends = st.none() | st.builds(
    RunEnd,
    st.sampled_from(["completed", "failed", "cancelled", "blocked"]),
    st.just(NOW),
    st.none() | texts,
    st.none() | texts,
    st.none() | st.just("max_steps"),
    st.none() | st.just(Usage(1, 2, 3)),
    st.none() | st.just({"code": "x"}),
)


def shown(value: Any) -> Any:
    """A result as something to compare: no objects, and no times that a clock has made."""
    if isinstance(value, Batch):
        return ("batch", value.first, value.run_id, untimed(value.events))
    if isinstance(value, Message):
        return ("message", value.id, value.role, value.parts, value.run_id, value.metadata)
    if isinstance(value, RunRecord):
        fields = attrs.asdict(value, recurse=False)
        fields["started_at"] = value.started_at is None
        fields["finished_at"] = value.finished_at is None
        return fields
    if isinstance(value, ThreadRecord):
        title = value.title, value.title_source
        return ("thread", value.key, value.agent, value.metadata, value.created_at, title)
    if isinstance(value, (list, tuple)):
        return [shown(item) for item in value]
    if attrs.has(type(value)):
        return {f.name: shown(getattr(value, f.name)) for f in attrs.fields(type(value))}
    return value


def untimed(events: list[Event]) -> list[Any]:
    """Events as JSON, without the times at which a store began a run, or ended a waiting one."""
    found = [event_to_json(event) for event in events]
    for event in found:
        event.pop("finishedAt", None)
        event.pop("startedAt", None)
    return found


class Alike(RuleBasedStateMachine):
    """Does everything twice."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.runner = asyncio.Runner()
        self.memory: Store = MemoryStore()
        self.sqlite = open_store(f"sqlite:///{self.folder / 'a.db'}")
        self.runner.run(self.sqlite.open())
        self.fences = dict.fromkeys([*KEYS, *SUBAGENTS], 0)
        self.touched = KEYS[0]
        self.ends = False
        self.ghosts: list[tuple[ThreadKey, int]] = []
        self.accepted = 0

    def teardown(self) -> None:
        self.runner.run(self.sqlite.close())
        self.runner.close()
        shutil.rmtree(self.folder)

    def both(self, work: Callable[[Store], Awaitable[Any]]) -> Any:
        async def outcome(store: Store) -> Any:
            try:
                return await work(store)
            except PaiError as error:
                return type(error)

        one = self.runner.run(outcome(self.memory))
        two = self.runner.run(outcome(self.sqlite))
        assert shown(one) == shown(two)
        return one

    def note(self, key: ThreadKey, claimed: Any) -> None:
        fence = getattr(claimed, "fence", None)
        if fence is not None:
            self.fences[key] = fence

    @rule(
        key=keys, agent=agents, run=runs, text=texts, message=messages, bag=bags,
        digest=st.sampled_from("xxxy"), reject=st.booleans(), lease=st.none() | leases,
    )  # fmt: skip
    def accept(
        self, key: ThreadKey, agent: str, run: str, text: str, message: str | None,
        bag: Metadata | None, digest: str, *, reject: bool, lease: float | None,
    ) -> None:  # fmt: skip
        def work(store: Store) -> Awaitable[Any]:
            record = RunRecord(run, agent, "1", "send", {"text": text}, digest, NOW)
            record.metadata = bag or Metadata()
            born = NOW + timedelta(seconds=self.accepted)
            head = ThreadRecord(key, agent, Metadata({}, {"new": text}), born, NOW, text)
            said = message and Message(message, "user", (TextPart(text),), run, NOW)
            started: list[Event] = [RunStarted(key.thread_id)]
            return store.accept(
                head, record, said or None, [RunQueued("send")],
                when_busy="reject" if reject else "queue",
                claim=None if lease is None else ("me", lease), started=started,
            )  # fmt: skip

        self.touched = key
        self.accepted += 1
        self.note(key, getattr(self.both(work), "claimed", None))

    @rule(which=st.sampled_from(SUBAGENTS))
    def subagent(self, which: ThreadKey) -> None:
        """A run as a call of another one starts it."""
        self.accept(
            which, "main", which.thread_id, "task", None, None, "x", reject=False, lease=None
        )

    @rule(deep=st.booleans(), busy=st.booleans(), outcome=st.sampled_from(["failed", "denied"]))
    def family(self, *, deep: bool, busy: bool, outcome: Any) -> None:
        """A call is cut short that has started a subagent, which waits, or is worked on."""
        top, child = KEYS[0], SUBAGENTS[0]
        self.accept(top, "main", "r1", "go", None, None, "x", reject=False, lease=1000.0)
        self.subagent(child)
        if busy:
            self.claim(child, 1000.0)
        if deep:
            self.subagent(SUBAGENTS[1])
            held = CallRecord("c1", "m1", "add", "held")
            self.commit(child, CHILD, 0, None, "", [held], None, None, None, None, None)
        cut = CallRecord("c1", "m1", "add", "settled", outcome)
        self.commit(top, "r1", 0, None, "", [cut], None, None, None, None, None)

    @rule(key=keys, lease=leases)
    def claim(self, key: ThreadKey, lease: float) -> None:
        self.touched = key
        claimed = self.both(lambda store: store.claim(key, "me", lease, [RunStarted("t")]))
        self.note(key, claimed)

    @rule(key=keys, run=runs, behind=fences, lease=leases)
    def renew(self, key: ThreadKey, run: str, behind: int, lease: float) -> None:
        fence = self.fences[key] + behind
        self.both(lambda store: store.renew(key, run, fence, lease))

    @rule(key=keys, run=runs, behind=fences, told=st.lists(texts, max_size=3))
    def append(self, key: ThreadKey, run: str, behind: int, told: list[str]) -> None:
        fence = self.fences[key] + behind
        self.touched = key
        self.both(
            lambda store: store.append(key, run, fence, [TextDelta("1", text) for text in told])
        )

    @rule(
        key=keys, run=runs, behind=st.sampled_from([0, 0, 0, -1]), message=messages, text=texts,
        told=st.lists(calls, max_size=2, unique_by=lambda call: call.call_id), of_run=patches,
        of_thread=patches, of_message=patches, which=messages, end=ends,
    )  # fmt: skip
    def commit(
        self, key: ThreadKey, run: str, behind: int, message: str | None, text: str,
        told: list[CallRecord], of_run: Metadata | None, of_thread: Metadata | None,
        of_message: Metadata | None, which: str | None, end: RunEnd | None,
    ) -> None:  # fmt: skip
        def work(store: Store) -> Awaitable[Any]:
            events: list[Event] = [ThreadUpdated(metadata={}), ThreadUpdated(run_metadata={})]
            if end is not None:
                events.append(RunFinished(end.status))
            change = Commit(events, None, tuple(told), merging(of_run), merging(of_thread), {}, end)
            if message is not None:
                parts = (TextPart(text), ToolCallPart("c1", "add", 1), ToolCallPart("c2", "add"))
                change.message = Message(message, "assistant", parts, run, NOW)
            merge = merging(of_message)
            if which is not None and merge is not None:
                change.message_metadata = {which: merge}
                change.events.insert(0, MessageMetadata(which, {}))
            return store.commit(key, run, self.fences[key] + behind, change)

        self.ends = bool(told)
        self.touched = key
        self.both(work)

    @rule(
        key=keys, agent=agents, title=st.none() | texts, run=st.none() | runs, of_run=patches,
        of_thread=patches, of_message=patches, which=messages,
    )  # fmt: skip
    def update(
        self, key: ThreadKey, agent: str, title: str | None, run: str | None,
        of_run: Metadata | None, of_thread: Metadata | None, of_message: Metadata | None,
        which: str | None,
    ) -> None:  # fmt: skip
        merge = merging(of_message)
        change = ThreadChange(
            title, "manual", merging(of_thread), run, merging(of_run),
            {} if which is None or merge is None else {which: merge},
        )  # fmt: skip
        self.touched = key
        self.both(lambda store: store.update(key, agent, change))

    @rule(key=keys, agent=agents)
    def delete(self, key: ThreadKey, agent: str) -> None:
        self.touched = key
        if not isinstance(self.both(lambda store: store.delete(key, agent)), ThreadRecord):
            return
        self.ghosts.append((key, self.fences[key]))

    @rule(which=st.integers(0, 9), run=runs)
    def haunt(self, which: int, run: str) -> None:
        """Whoever held a run of a thread that was deleted writes nothing, into none (R-16)."""
        if which < len(self.ghosts):
            key, fence = self.ghosts[which]
            told: list[Event] = [TextDelta("1", "boo")]
            assert self.both(lambda store: store.append(key, run, fence, told)) is LeaseLost

    @rule(key=keys, after=st.integers(0, 5), seconds=st.none() | st.integers(0, 9))
    def look(self, key: ThreadKey, after: int, seconds: int | None) -> None:
        born = None if seconds is None else NOW + timedelta(seconds=seconds)

        async def log(store: Store) -> Any:
            batches = await store.events(key, after, born=born)
            return [
                (event.seq, untimed([event]))
                for batch in batches
                for event in batch.numbered(after)
            ]

        self.both(lambda store: store.head(key))
        self.both(lambda store: store.latest(key))
        self.both(log)

    @rule(key=keys, run=runs, reason=texts)
    def cancel(self, key: ThreadKey, run: str, reason: str) -> None:
        async def work(store: Store) -> Any:
            return await store.cancel(key, run, reason)

        self.touched, self.ends = key, True
        self.both(work)

    @rule(
        scope=record_scopes, name=record_keys, value=st.none() | st.integers(0, 9), held=st.booleans(),
        key=keys, run=runs, behind=fences,
    )  # fmt: skip
    def record(
        self, scope: RecordScope, name: str, value: int | None, *, held: bool, key: ThreadKey, run: str,
        behind: int,
    ) -> None:  # fmt: skip
        hold = RunHold(key, run, self.fences[key] + behind) if held else None
        if value is None:
            self.both(lambda store: store.delete_record(scope, name, hold))
        else:
            self.both(lambda store: store.put_record(scope, name, str(value), hold))

    @rule(scope=record_scopes, prefix=record_keys | st.just(""), after=record_keys | st.just(""))
    def records(self, scope: RecordScope, prefix: str, after: str) -> None:
        self.both(lambda store: store.list_records(scope, prefix, after, 3))

    @invariant()
    def same(self) -> None:
        # What ends a call, or a run, ends runs of subagents.
        for key in {self.touched, *(SUBAGENTS if self.ends else ())}:
            self.compare(key)
        self.ends = False

    def compare(self, key: ThreadKey) -> None:

        async def events(store: Store) -> Any:
            batches = await store.events(key, 0)
            return [
                (event.seq, event.run_id, untimed([event]))
                for batch in batches
                for event in batch.numbered()
            ]

        async def waiting(store: Store) -> Any:
            return sorted(await store.waiting())

        self.both(lambda store: store.snapshot(key, "main"))
        self.both(events)
        self.both(waiting)
        self.both(lambda store: store.run_messages(key, "r1"))


Alike.TestCase.settings = settings(
    max_examples=settings().max_examples // 2, stateful_step_count=25
)
test_alike = Alike.TestCase
