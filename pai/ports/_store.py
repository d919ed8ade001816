"""Where threads live: the truth."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

if TYPE_CHECKING:
    from datetime import datetime

    from pai.protocol import (
        Accepted,
        Answered,
        Batch,
        CallRecord,
        Claimed,
        Commit,
        Committed,
        Decision,
        Event,
        JobRecord,
        Latest,
        Leaves,
        Message,
        NewLabel,
        NewTitle,
        RunRecord,
        RunSource,
        Stopped,
        ThreadChange,
        ThreadKey,
        ThreadRecord,
        ThreadSnapshot,
    )
    from pai.schema import JsonObject

__all__ = ("RecordScope", "RunHold", "Store", "TransactionalStore")

T = TypeVar("T")


class RecordScope(NamedTuple):
    """Whose records: a plugin's, in a partition, of one thread or, where it is ``""``, of none."""

    partition: str
    plugin: str
    thread_id: str = ""


class RunHold(NamedTuple):
    """A run that a worker holds, by the fence it was given."""

    key: ThreadKey
    run_id: str
    fence: int


class Store(Protocol):
    """
    The truth: threads, messages, runs, calls, events.

    Guarantees a store gives:

    * Each method is atomic: all of it is there, or nothing.
    * A thread has at most one active run (R-1), and runs start in the order they were accepted. One
      that was suspended stays the active one until it ends: it goes on before those that wait.
    * A write of a run carries its fence; a fence that is no longer the thread's raises
      :class:`~pai.errors.LeaseLost`, and nothing is written (R-4).
    * Events of a thread are numbered from 1 without a gap, in the order they were committed, until
      they are made compact.
    * The partition is part of every key: a thread of another one does not exist (R-7).
    * A call that settles as anything but completed takes the runs of its subagents with it, and
      they theirs: those that no worker holds end in the same transaction, the others are to be
      cancelled by theirs (O-20). Their ids are :func:`pai.protocol.child_id`.
    * Metadata is changed by :data:`~pai.protocol.Merge`, within the transaction: of writers at the
      same time, none loses what another wrote (A-META-5).
    * A thread that was deleted and one that is made later under its key share nothing: whoever
      held a run of the first can write nothing into the second (R-16).
    * What a finished method wrote survives the death of the process, if the store is ``durable``.
    * Nothing is held between two calls: no lock, no transaction, no connection of a caller.

    Methods may be called from any task; a cancelled call was done whole or not at all.
    """

    @property
    def durable(self) -> bool:
        """Whether what is written outlives the process, and whether a write has a price."""

    async def open(self) -> None:
        """
        Get ready.

        Raises:
            StoreError: It can't be reached, or is no database of ours.
            MigrationNeeded: It is of an older version.
        """

    async def close(self) -> None:
        """Finish what is under way and let go of everything."""

    async def accept(
        self,
        thread: ThreadRecord,
        run: RunRecord,
        message: Message | None,
        events: list[Event],
        *,
        when_busy: Literal["queue", "reject"] = "queue",
        when_pending: Literal["reject", "supersede"] = "reject",
        claim: tuple[str, float] | None = None,
        started: list[Event] | None = None,
        leaves: Leaves | None = None,
    ) -> Accepted:
        """
        Put a run in its thread's queue, with the message that came with it.

        What a *regenerate* replaces is replaced when it is claimed: messages of earlier runs behind
        ``run.after``.

        Args:
            thread: The head to make if there is no such thread yet. One that exists stays as it is.
            run: The new run, queued.
            message: The user's message.
            events: What goes into the log for it.
            when_busy: ``"reject"`` raises if the thread has an active or waiting run.
            when_pending: What happens where the active run is suspended (R-3a): ``"supersede"``
                settles its pending calls as denied and ends it as cancelled.
            claim: Owner and lease in seconds: claim it in the same transaction if the thread is free.
            started: The events of that claim.
            leaves: The side jobs that a superseded run leaves, and each that it stops.

        Raises:
            ThreadNotFound: The thread belongs to another agent (A-RUN-5).
            ThreadBusy: It is busy and the caller will not wait.
            CallsPending: Its active run is suspended, and *when_pending* is ``"reject"``.
            InvalidInput: The thread shows no message ``run.after``.
            AnswerConflict: The run's id is taken by a request with another digest (O-18).
        """

    async def claim(
        self,
        key: ThreadKey,
        owner: str,
        lease: float,
        started: list[Event],
        takes: Callable[[RunRecord], bool] | None = None,
    ) -> Claimed | None:
        """
        Take the thread's next run.

        That is its active one, if it was answered or given back, its lease has ended or a pending
        call of it has expired; else its oldest queued one.

        Args:
            key: The thread.
            owner: Who takes it.
            lease: Seconds until others may take it.
            started: The events of the claim.
            takes: Whether the caller can work on a run; one that it can't stays as it is (A-DEF-7).

        Returns:
            The run, or ``None`` if there is none to take.
        """

    async def waiting(self, limit: int = 100) -> list[ThreadKey]:
        """Threads with a run to take, those that wait longest first."""

    async def renew(self, key: ThreadKey, run_id: str, fence: int, lease: float) -> str | None:
        """
        Keep a run for another *lease* seconds.

        Returns:
            Why it shall be cancelled, if somebody asked.

        Raises:
            LeaseLost: It is not ours any more.
        """

    async def release(self, key: ThreadKey, run_id: str, fence: int, delay: float = 0.0) -> Batch:
        """
        Give a run back: anybody may take it after *delay* seconds, and that counts as no takeover.

        Returns:
            Its event: the run is queued again.

        Raises:
            LeaseLost: It is not ours any more.
        """

    async def answer(
        self,
        key: ThreadKey,
        run_id: str,
        decisions: Sequence[Decision],
        request: JsonObject | None = None,
    ) -> Answered:
        """
        Store answers to pending calls of a run, all or none (O-16).

        A suspended run is queued, before those that wait; one that is being worked on is queued when
        it suspends. Answers that were stored before are passed over, so that giving the same ones
        again is safe, also after the run's end.

        Args:
            key: The thread.
            run_id: The run.
            decisions: The answers.
            request: The run's request from now on, if it changes.

        Raises:
            ThreadNotFound: There is no such run.
            AnswerConflict: A call is not pending, has expired, waits for something else or for an
                answer to something else, or was answered otherwise (R-20).
        """

    async def calls(self, key: ThreadKey, run_id: str) -> list[CallRecord]:
        """The rows of a run's calls and questions."""

    async def append(
        self,
        key: ThreadKey,
        run_id: str,
        fence: int,
        events: list[Event],
        *,
        jobs: Sequence[JobRecord] = (),
        unlabelled: str | None = None,
    ) -> Batch:
        """
        Write events of a step under way into the log, as one batch.

        Args:
            key: The thread.
            run_id: The run.
            fence: The fence of its lease.
            events: The events.
            jobs: Side jobs that come with them (R-38).
            unlabelled: A message that is void: its label jobs and labels go first.

        Raises:
            LeaseLost: The run is not ours any more.
        """

    async def commit(
        self, key: ThreadKey, run_id: str, fence: int, change: Commit, leaves: Leaves | None = None
    ) -> Committed:
        """
        Write a step, the start or the end of calls, or the end of the run: one transaction.

        A run that suspends is queued at once if one of its calls was answered meanwhile.

        Args:
            key: The thread.
            run_id: The run.
            fence: The fence of its lease.
            change: What is written.
            leaves: The side jobs that each run leaves which is stopped with it.

        Raises:
            LeaseLost: The run is not ours any more.
            InvalidInput: A change of metadata does not fit what is stored by now.
        """

    async def cancel(
        self, key: ThreadKey, run_id: str, reason: str, leaves: Leaves | None = None
    ) -> Sequence[Stopped]:
        """
        Ask that a run be cancelled (R-8).

        One that no worker holds is cancelled at once, its open calls settled as interrupted (R-14).

        Args:
            key: The thread.
            run_id: The run.
            reason: Why.
            leaves: The side jobs that it leaves, if it is cancelled at once.

        Returns:
            The run, and then the runs of its subagents; empty if it had ended.
        """

    async def update(self, key: ThreadKey, agent: str, change: ThreadChange) -> Batch:
        """
        Change titles and metadata, whether a run is under way or not: one transaction.

        Returns:
            The events; of the run that is changed, else of the thread itself.

        Raises:
            ThreadNotFound: *agent* has no such thread, or the thread no such run or message.
            InvalidInput: A change of metadata does not fit what is stored.
        """

    async def delete(
        self, key: ThreadKey, agent: str, children: Sequence[tuple[ThreadKey, str]] = ()
    ) -> ThreadRecord | None:
        """
        Delete a thread and every row of it, plugins' records included (R-16, R-42).

        Args:
            key: The thread.
            agent: The agent that it must be of.
            children: Threads of its subagents and their agents, which go with it in one
                transaction, each behind that of its parent; those that are gone already are passed
                over.

        Returns:
            The head that it had; ``None`` if *agent* has no such thread.
        """

    async def head(self, key: ThreadKey) -> ThreadRecord | None:
        """The head of a thread, if there is such a thread."""

    async def latest(self, key: ThreadKey) -> Latest:
        """The newest run and message of a thread."""

    async def run(self, key: ThreadKey, run_id: str) -> RunRecord | None:
        """The run, if there is one of that id."""

    async def snapshot(self, key: ThreadKey, agent: str) -> ThreadSnapshot | None:
        """The whole thread, as of one moment; ``None`` if *agent* has no such thread."""

    async def run_messages(self, key: ThreadKey, run_id: str) -> list[Message]:
        """The messages that a run wrote, oldest first."""

    async def events(
        self, key: ThreadKey, after: int, limit: int = 500, *, born: datetime | None = None
    ) -> list[Batch]:
        """
        Batches with events numbered above *after*, oldest first.

        Args:
            key: The thread.
            after: The number of the last event that is known.
            limit: At most so many batches.
            born: Only of the thread that was made then; else it may be any of this key.

        Raises:
            ThreadNotFound: It was deleted.
        """

    async def threads(
        self, partition: str, agent: str, limit: int, after: str | None
    ) -> tuple[list[ThreadRecord], str | None]:
        """A page of an agent's threads, newest first, and the cursor of the next page."""

    async def due_jobs(self, limit: int = 100) -> list[tuple[ThreadKey, str]]:
        """Threads and ids of side jobs that nobody works on, those that wait longest first."""

    async def claim_job(self, key: ThreadKey, job_id: str, lease: float) -> JobRecord | None:
        """
        Take a side job that is due: it has a new attempt then, and who had the last one has lost it.

        Args:
            key: The thread.
            job_id: The job.
            lease: Seconds until others may take it.

        Returns:
            The job, or ``None`` if it is done, or others work on it.
        """

    async def postpone_job(self, key: ThreadKey, job_id: str, attempt: int, seconds: float) -> bool:
        """
        See that nobody takes a side job for *seconds*: to keep it, or to try again later.

        Returns:
            Whether it was ours.
        """

    async def finish_job(
        self, key: ThreadKey, job_id: str, attempt: int, result: NewTitle | NewLabel | None = None
    ) -> Batch | None:
        """
        Write what a side job made, with its event, and delete the job: one transaction.

        A title is left out where it may not replace the one that is there by now (A-TITLE-3). A
        label may come before its message is committed.

        Args:
            key: The thread.
            job_id: The job.
            attempt: The attempt that was made.
            result: What came of it; ``None``: nothing.

        Returns:
            The event; ``None`` if nothing was written, or the job is not ours any more.
        """

    async def compact(self, key: ThreadKey, before: datetime) -> None:
        """
        Make the log of runs that ended before a time short: one delta a text.

        Whoever watches from any number on is told what leads to the same state as ever (R-25); see
        :func:`pai.protocol.compact`.
        """

    async def long_logs(self, before: datetime, limit: int = 100) -> list[ThreadKey]:
        """Threads without an active run that changed last before a time, and may be made short."""

    async def run_source(self, key: ThreadKey, run_id: str) -> RunSource | None:
        """A run, its thread's head and the messages up to it, as of one moment."""

    async def get_record(self, scope: RecordScope, key: str) -> str | None:
        """A plugin's record, as JSON text."""

    async def list_records(
        self, scope: RecordScope, prefix: str, after: str, limit: int
    ) -> list[tuple[str, str]]:
        """
        Records whose keys begin with *prefix*: key and JSON text, by the code points of the key.

        Args:
            scope: Whose.
            prefix: What their keys begin with.
            after: Only keys behind this one.
            limit: At most so many.
        """

    async def put_record(
        self, scope: RecordScope, key: str, value: str, hold: RunHold | None = None
    ) -> None:
        """
        Write a record, or replace it.

        Args:
            scope: Whose.
            key: Text without NUL, surrogates and U+10FFFF.
            value: JSON text.
            hold: Only if this run is still held; in the same transaction (R-42).

        Raises:
            LeaseLost: It is not, and nothing is written.
        """

    async def delete_record(
        self, scope: RecordScope, key: str, hold: RunHold | None = None
    ) -> bool:
        """
        Delete a record, as :meth:`put_record` writes one; whether there was one.

        Raises:
            LeaseLost: The run is not held any more, and nothing is deleted.
        """


@runtime_checkable
class TransactionalStore(Protocol):
    """A store over a database, which lets an engine write in its transactions."""

    @property
    def dialect(self) -> str:
        """``"sqlite"`` or ``"postgresql"``."""

    @property
    def url(self) -> str:
        """The database, as its driver takes it. It may hold a password: for connecting only."""

    def join(self, wake: Callable[[object, ThreadKey], None]) -> None:
        """
        Have *wake* called in every transaction that leaves a run to take.

        It gets the driver's connection and the thread, in the transaction's own thread, and may
        write there; what it raises rolls all of it back.
        """

    async def tx(self, fn: Callable[..., T], *args: Any) -> T:
        """Run ``fn(connection, *args)`` as one transaction."""
