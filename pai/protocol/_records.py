"""What lies in a store, as values: threads, runs, calls, and what one transaction changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import attrs

from pai.protocol._answers import PendingKind
from pai.protocol._batch import Batch
from pai.protocol._events import Event
from pai.protocol._jobs import JobRecord
from pai.protocol._messages import Message, Metadata
from pai.protocol._parts import CallOutcome
from pai.protocol._state import PendingCall, RunStatus
from pai.protocol._usage import Usage
from pai.schema import JsonObject, JsonValue

__all__ = (
    "Accepted",
    "Answered",
    "CallRecord",
    "Changed",
    "Claimed",
    "Commit",
    "Committed",
    "Latest",
    "Leaves",
    "Merge",
    "RunEnd",
    "RunRecord",
    "RunSource",
    "Stopped",
    "Suspension",
    "ThreadChange",
    "ThreadKey",
    "ThreadRecord",
    "ThreadSnapshot",
    "TitleMark",
)

Merge = Callable[[Metadata], Metadata]
"""
Makes the new bags from those that are stored, within the transaction that writes them: whoever
patches at the same time, no patch is lost (A-META-5). It is quick, touches nothing else, and raises
:class:`~pai.errors.InvalidInput` where the result does not fit: then nothing is written.
"""


class ThreadKey(NamedTuple):
    """A thread's address: its id can repeat in another partition (A-CTX-3, R-7)."""

    partition: str
    thread_id: str


class TitleMark(NamedTuple):
    """When the thread's title was last generated, and what it had seen."""

    at: datetime
    messages: int
    runs: int


@attrs.define(eq=False)
class ThreadRecord:
    """
    The head of a thread.

    By *created_at* it is told from one of the same key that was deleted before (R-16).
    """

    key: ThreadKey
    agent: str
    """The key the agent has in the runtime (A-RUN-5)."""
    metadata: Metadata
    created_at: datetime
    updated_at: datetime
    title: str | None = None
    title_source: str | None = None
    titled: TitleMark | None = None


@attrs.define(eq=False)
class RunRecord:
    """
    A run.

    Args:
        id: Unique within the thread.
        agent: The key the agent has in the runtime.
        version: The agent's version when the run was accepted (A-DEF-7).
        operation: ``send``, ``trigger``, ``regenerate`` or ``resume``.
        request: What any worker needs to rebuild the run's context (R-6): JSON with
            ``identity``, ``clientData``, ``actor``, ``options``, ``metadata``, and ``respond`` where
            ``accept_message`` has answered already.
        digest: Digest of the request: the same id with another digest is a conflict (O-18).
        attempt: How often a worker has taken its present episode.
        episode: 1, and one more for each resume.
        after: The message that a *regenerate* goes on from; empty: from the beginning.
        steps: Assistant messages that it had when its present episode began.
        patch: What ``prepare_run`` decided, with its episode, as far as it is JSON (A-DEF-8).
    """

    id: str
    agent: str
    version: str
    operation: str
    request: JsonObject
    digest: str
    created_at: datetime
    metadata: Metadata = attrs.field(factory=Metadata)
    status: RunStatus = "queued"
    parent_run_id: str | None = None
    attempt: int = 0
    episode: int = 1
    outcome: str | None = None
    reason: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    error: JsonObject | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    cancel: str | None = None
    """Somebody asked to cancel it, and why; ``None`` if nobody did."""
    after: str | None = None
    steps: int = 0
    patch: JsonObject | None = None


CallStatus = Literal["requested", "waiting", "answered", "started", "held", "settled"]


@attrs.frozen(eq=False)
class CallRecord:
    """
    A tool call's row: *started* is committed before the body runs (R-12).

    One that is *waiting* is pending: it waits for an answer from outside (R-22). A hook's question
    has a row too, under the question's id, and so have pending calls of subagents, with the call of
    the subagent *held* meanwhile; they are in no message.

    Args:
        kind: What it waits for, or has waited for.
        payload: What is shown to whoever shall answer.
        digest: Of what an answer is given to (R-20).
        decisions: The answers so far, oldest first.
        expires_at: When an unanswered one fails.
        expired: That time has come; the store says it at a claim.
    """

    call_id: str
    message_id: str
    tool: str
    status: CallStatus
    outcome: CallOutcome | None = None
    output: JsonValue = None
    error: str | None = None
    input: JsonValue = None
    """What was executed, where that differs from what the message says; with *rewritten*."""
    rewritten: bool = False
    kind: PendingKind | None = None
    payload: JsonValue = None
    digest: str | None = None
    decisions: tuple[JsonObject, ...] = ()
    expires_at: datetime | None = None
    expired: bool = False

    @property
    def surfaced(self) -> bool:
        """Whether it is a pending call of a subagent, shown where its parent waits."""
        return not self.message_id and bool(self.tool)

    def pending(self, run_id: str) -> PendingCall:
        """What is shown of it while it waits."""
        assert self.kind is not None
        return PendingCall(
            self.call_id, self.kind, self.tool or None, self.input, self.payload,
            self.expires_at, run_id, self.digest,
        )  # fmt: skip


Leaves = Callable[[RunRecord], Sequence[JobRecord]]
"""
The side jobs that a run leaves which ends without a worker. It is asked within the transaction that
ends the run: it is quick, and touches nothing else.
"""


class Stopped(NamedTuple):
    """
    A run that was cancelled, or that another one's end stopped: a subagent's (O-20).

    Args:
        key: Its thread.
        run_id: It.
        reason: Why.
        batch: The events of its end; ``None`` if a worker holds it, which has to end it.
        jobs: The side jobs that it left.
    """

    key: ThreadKey
    run_id: str
    reason: str
    batch: Batch | None = None
    jobs: Sequence[JobRecord] = ()


@attrs.frozen(eq=False)
class RunEnd:
    """How a run ended."""

    status: Literal["completed", "failed", "cancelled", "blocked"]
    finished_at: datetime
    outcome: str | None = None
    reason: str | None = None
    stop_reason: str | None = None
    usage: Usage | None = None
    error: JsonObject | None = None


@attrs.frozen(eq=False)
class Suspension:
    """
    How a run stops to wait.

    Args:
        usage: What it used so far.
        steps: Its assistant messages so far.
        expires_at: When the first of its pending calls expires.
    """

    usage: Usage | None
    steps: int
    expires_at: datetime | None = None


@attrs.define(eq=False)
class Commit:
    """
    What one transaction of a run writes, all or nothing.

    Args:
        events: They go into the log, in order.
        message: A new message of the thread; one whose id is there already takes its place, and
            keeps its metadata.
        calls: Rows of tool calls, new or changed.
        run_metadata: Changes the run's metadata.
        thread_metadata: Changes the thread's metadata.
        message_metadata: Changes the metadata of messages, by message id.
        end: The run settles with this commit.
        suspend: The run stops with this commit, to wait for answers.
        patch: What ``prepare_run`` decided; see :class:`RunRecord`.
        jobs: Side jobs that it leaves. One whose id is there already is not written again.
        unlabelled: A message that is void: its label jobs and labels go first.
        labelled: The message may have labels that came before it.

    Where *events* show metadata that this changes, the store puts in what became of it; and into
    the terminal event what the run's metadata is by then.
    """

    events: list[Event] = attrs.field(factory=list)
    message: Message | None = None
    calls: tuple[CallRecord, ...] = ()
    run_metadata: Merge | None = None
    thread_metadata: Merge | None = None
    message_metadata: dict[str, Merge] = attrs.field(factory=dict)
    end: RunEnd | None = None
    suspend: Suspension | None = None
    patch: JsonObject | None = None
    jobs: tuple[JobRecord, ...] = ()
    unlabelled: str | None = None
    labelled: bool = False


class Changed(NamedTuple):
    """What became of metadata: that of the run, of the thread, and of messages by their ids."""

    run: Metadata | None
    thread: Metadata | None
    messages: dict[str, Metadata]


@attrs.frozen(eq=False)
class ThreadChange:
    """
    What is written into a thread beside its runs, all or nothing.

    The store tells of it in the log: titles as they are given, and public metadata that became
    another.

    Args:
        title: The new title.
        title_source: Who gave it: ``manual`` for a rename (A-TITLE-3).
        thread_metadata: Changes the thread's metadata.
        run_id: The run that *run_metadata* is for.
        run_metadata: Changes that run's metadata.
        message_metadata: Changes the metadata of messages, by message id.
    """

    title: str | None = None
    title_source: str | None = None
    thread_metadata: Merge | None = None
    run_id: str | None = None
    run_metadata: Merge | None = None
    message_metadata: dict[str, Merge] = attrs.field(factory=dict)


class Latest(NamedTuple):
    """
    The newest run of a thread, and the last of its messages, run by run; both by id.

    ``None`` where there is none.
    """

    run_id: str | None
    message_id: str | None


@attrs.frozen(eq=False)
class Claimed:
    """
    A run that is ours until the lease ends.

    Args:
        run: Its record, with the new attempt.
        fence: The number that every write of it must carry (R-4).
        thread: The head of its thread.
        messages: The thread's messages, oldest first, calls settled where they have.
        calls: Calls of this run that a former worker left open.
        batch: The events of the claim.
        takeovers: How often it was taken from a worker since its last commit (R-3b).
        turn: Its place among the thread's runs, from 1.
    """

    run: RunRecord
    fence: int
    thread: ThreadRecord
    messages: list[Message]
    calls: tuple[CallRecord, ...]
    batch: Batch
    takeovers: int = 0
    turn: int = 1


@attrs.frozen(eq=False)
class Accepted:
    """
    A run is in the queue.

    Args:
        run: Its record; an earlier one's where this request had come before (*known*).
        batch: The events of it; ``None`` if it was known.
        claimed: It is ours already, as the thread was free and a claim was asked for.
        known: The same request was accepted before.
        active: The run that it waits behind, if there is one.
        stopped: A suspended run that made place for it, and then the runs of its subagents.
        born: When the thread was made.
    """

    run: RunRecord
    batch: Batch | None
    claimed: Claimed | None
    known: bool = False
    active: str | None = None
    stopped: Sequence[Stopped] = ()
    born: datetime = attrs.field(kw_only=True)


@attrs.frozen(eq=False)
class Answered:
    """
    Answers are stored.

    Args:
        run: The run's record.
        batch: The events of it; ``None`` if all of them were stored before.
    """

    run: RunRecord
    batch: Batch | None


@attrs.frozen(eq=False)
class Committed:
    """
    A commit is written.

    Args:
        batch: Its events, numbered.
        more: A run of the thread waits: another one, or this one if it was answered while it
            suspended; only told when the run settled or suspended.
        cancel: Somebody asked to cancel the run, and why.
        jobs: Those of its side jobs that were written.
        changed: What became of metadata; ``None`` where the commit changed none.
        stopped: Runs of subagents of calls that it has settled as not completed.
    """

    batch: Batch
    more: bool = False
    cancel: str | None = None
    jobs: tuple[JobRecord, ...] = ()
    changed: Changed | None = None
    stopped: Sequence[Stopped] = ()


@attrs.frozen(eq=False)
class ThreadSnapshot:
    """A thread, read in one transaction."""

    thread: ThreadRecord
    messages: list[Message]
    runs: list[RunRecord]
    cursor: int
    pending: list[PendingCall] = attrs.field(factory=list)


@attrs.frozen(eq=False)
class RunSource:
    """
    A run and what it knew, for jobs after it.

    Args:
        thread: The head of its thread, as of now.
        run: Its record.
        messages: The messages of the runs up to it, oldest first.
        turn: Its place among the thread's runs, from 1.
    """

    thread: ThreadRecord
    run: RunRecord
    messages: list[Message]
    turn: int
