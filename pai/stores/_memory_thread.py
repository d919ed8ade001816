"""A thread of the memory store: plain objects."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from datetime import UTC, datetime
from operator import attrgetter

import attrs

from pai.protocol import (
    Batch,
    CallOutcome,
    CallRecord,
    Claimed,
    Commit,
    Decision,
    Event,
    Message,
    NewLabel,
    NewTitle,
    PendingCall,
    RunEnd,
    RunRecord,
    Suspension,
    ThreadChange,
    ThreadRecord,
    TitleMark,
    ToolCallPart,
    compact,
    labelled,
)
from pai.stores._bags import Bags, Merged
from pai.stores._memory_jobs import ThreadJobs
from pai.stores._rules import (
    again,
    check_goes_on,
    compacted_to,
    ended_before,
    ended_calls,
    fence_before,
    finished_event,
    merge_call,
    plain,
    ruled,
    stamp,
)

__all__ = ("MemoryThread", "copied_head", "copied_run")

_RUN = attrgetter(*(field.name for field in attrs.fields(RunRecord)))
_HEAD = attrgetter(*(field.name for field in attrs.fields(ThreadRecord)))


def copied_run(run: RunRecord) -> RunRecord:
    # Nobody outside may hold what we change: a caller's change is none before it is committed.
    return RunRecord(*_RUN(run))


def copied_head(head: ThreadRecord) -> ThreadRecord:
    return ThreadRecord(*_HEAD(head))


class MemoryThread:
    """One thread. A run's *turn* is its place among the thread's runs, from 1."""

    __slots__ = (
        "active", "batches", "calls", "compacted", "deadlines", "events", "fence", "head", "jobs", "messages",
        "ordered", "places", "queue", "ready", "replaced", "runs", "starts", "takeovers", "turns", "where",
    )  # fmt: skip

    def __init__(self, head: ThreadRecord) -> None:
        self.head = head
        self.fence = fence_before(head.created_at)
        self.takeovers = 0
        self.events = 0
        self.batches: list[Batch] = []
        self.runs: dict[str, RunRecord] = {}
        # Ids of queued runs, oldest first; a dict, since one in the middle may be cancelled.
        self.queue: dict[str, None] = {}
        self.active: RunRecord | None = None
        # Since when there is a run to take: that of the queue, or the active one from then on.
        self.ready: float | None = None
        self.messages: list[Message] = []
        # The turn of each message, and whether none stands behind one of a later turn.
        self.turns: list[int] = []
        self.ordered = True
        # Run id to its turn, and the index before which it has no message.
        self.starts: dict[str, tuple[int, int]] = {}
        # Message id to index; (run id, call id) to the index of the message with that call.
        self.where: dict[str, int] = {}
        self.places: dict[tuple[str, str], int] = {}
        self.calls: dict[str, dict[str, CallRecord]] = {}
        # When pending calls of the active run expire, by the store's clock.
        self.deadlines: dict[str, float] = {}
        # Messages that a regenerate has replaced.
        self.replaced: list[Message] = []
        self.jobs = ThreadJobs()
        # The number up to which the log is compact.
        self.compacted = 0

    def log(self, run_id: str, events: list[Event]) -> Batch:
        batch = Batch(self.events + 1, run_id, events[:])
        if events:
            self.events += len(events)
            self.batches.append(batch)
        return batch

    def compact(self, before: datetime) -> None:
        """Make the log of runs that ended before a time short."""
        start = bisect_right(self.batches, self.compacted, key=lambda batch: batch.last)
        batches = self.batches[start:]
        ids = {batch.run_id for batch in batches if batch.run_id}
        ended = {run_id for run_id in ids if ended_before(self.runs[run_id], before)}
        place = {batch.last: index for index, batch in enumerate(batches)}
        for new, last in reversed(compact(batches, ended)):
            batches[place[last] : place[new.last] + 1] = [new]
        self.batches[start:] = batches
        self.compacted = compacted_to(batches, ended, self.compacted)

    def put(self, message: Message, turn: int) -> None:
        """Add a message, or replace the one of its id, whose metadata stays."""
        labels = self.jobs.labels.get(message.id)
        if labels:
            message = attrs.evolve(message, parts=labelled(message.parts, labels))
        index = self.where.setdefault(message.id, len(self.messages))
        if index < len(self.messages):
            metadata = self.messages[index].metadata
            if metadata is not message.metadata:
                message = attrs.evolve(message, metadata=metadata)
            self.messages[index] = message
        else:
            if index and turn < self.turns[-1]:
                self.ordered = False
            self.messages.append(message)
            self.turns.append(turn)
        for part in message.parts:
            if type(part) is ToolCallPart:
                self.places[message.run_id, part.call_id] = index
                call = self.calls.get(message.run_id, {}).get(part.call_id)
                if call is not None:
                    self.merge(message.run_id, call)

    def label(self, new: NewLabel) -> None:
        """Put a label on its part, if that is there."""
        labels = self.jobs.labels.setdefault(new.message_id, {})
        labels[new.ordinal] = new.text
        index = self.where.get(new.message_id)
        if index is not None:
            message = self.messages[index]
            parts = labelled(message.parts, labels)
            self.messages[index] = attrs.evolve(message, parts=parts)

    def retitle(self, new: NewTitle) -> bool:
        """Take a title, if it may replace the one that is there."""
        head = self.head
        if (head.title_source or "") not in new.replaces:
            return False
        head.title, head.title_source = plain(new.text), "generated"
        head.titled = TitleMark(new.at, new.messages, new.runs)
        return True

    def merge(self, run_id: str, call: CallRecord) -> None:
        index = self.places.get((run_id, call.call_id))
        if index is not None and (call.status == "settled" or call.rewritten):
            self.messages[index] = merge_call(self.messages[index], call)

    def history(self, turn: int) -> list[Message]:
        """What the run of *turn* has to know: messages of the runs up to it, run by run."""
        if self.ordered:
            if not self.turns or self.turns[-1] <= turn:
                return self.messages[:]
            return self.messages[: bisect_right(self.turns, turn)]
        pairs = [pair for pair in zip(self.turns, self.messages, strict=True) if pair[0] <= turn]
        pairs.sort(key=lambda pair: pair[0])
        return [message for _, message in pairs]

    def next_run(self) -> RunRecord:
        """The run that would be taken now."""
        return self.active or self.runs[next(iter(self.queue))]

    def take(self, now: float, lease: float, started: list[Event]) -> Claimed:
        """Start the oldest queued run, go on with the active one, or take that over."""
        run = self.active
        if run is None:
            run_id = next(iter(self.queue))
            del self.queue[run_id]
            run = self.active = self.runs[run_id]
            self.takeovers = 0
            if run.started_at is None:
                run.started_at = datetime.now(UTC)
                self._replace(run)
        elif run.status == "running":
            self.takeovers += 1
        elif run.status == "suspended":
            run.episode, run.attempt = run.episode + 1, 0
        run.status = "running"
        run.attempt += 1
        self.fence += 1
        self.ready = now + lease
        stamp(started, run)
        return Claimed(
            copied_run(run),
            self.fence,
            copied_head(self.head),
            self.history(self.starts[run.id][0]),
            tuple([self._told(call, now) for call in self.open_calls(run.id)]),
            self.log(run.id, started),
            self.takeovers,
            self.starts[run.id][0],
        )

    def _told(self, call: CallRecord, now: float) -> CallRecord:
        if call.status == "waiting" and self.deadlines.get(call.call_id, now + 1) <= now:
            return attrs.evolve(call, expired=True)
        return call

    def open_calls(self, run_id: str) -> list[CallRecord]:
        """Rows of calls that have not settled, by call id, and of questions."""
        calls = sorted(self.calls.get(run_id, {}).items())
        return [call for _, call in calls if call.status != "settled" or call.kind == "question"]

    def expect(self, call: CallRecord, now: float) -> None:
        """Note when a call expires, if it waits."""
        if call.status == "waiting" and call.expires_at is not None:
            left = call.expires_at - datetime.now(UTC)
            self.deadlines[call.call_id] = now + left.total_seconds()
        else:
            self.deadlines.pop(call.call_id, None)

    def join(self, first: Batch, second: Batch) -> None:
        """Make one batch of the last two."""
        first.add(second)
        self.batches.pop()

    def shows(self, message_id: str) -> bool:
        """Whether a run can go on from this message; empty is the beginning."""
        return not message_id or message_id in self.where

    def _replace(self, run: RunRecord) -> None:
        """Drop what stands behind the message that a regenerate goes on from."""
        after = run.after
        if after is None or not self.shows(after):
            return
        own, _ = self.starts[run.id]
        place = self.where[after] if after else -1
        turn = self.turns[place] if after else 0
        kept: list[tuple[int, Message]] = []
        for index, (at, message) in enumerate(zip(self.turns, self.messages, strict=True)):
            if turn < at < own or (at == turn and index > place):
                self.replaced.append(message)
            else:
                kept.append((at, message))
        self.turns = [at for at, _ in kept]
        self.messages = [message for _, message in kept]
        self.ordered = self.turns == sorted(self.turns)
        self.where = {message.id: index for index, message in enumerate(self.messages)}
        self.places = {
            (message.run_id, part.call_id): index
            for index, message in enumerate(self.messages)
            for part in message.parts
            if type(part) is ToolCallPart
        }
        # Where a run has its first message is only where to begin to look.
        self.starts = {run_id: (at, 0) for run_id, (at, _) in self.starts.items()}

    def suspend(self, run: RunRecord, how: Suspension, now: float) -> Batch | None:
        """Stop to wait, or queue the run again if an answer has come: then its event is returned."""
        run.usage, run.steps = how.usage, how.steps
        if any(call.status == "answered" for call in self.open_calls(run.id)):
            return self._queue_again(run, now, None)
        run.status = "suspended"
        self.ready = min(self.deadlines.values(), default=None)
        return None

    def _queue_again(self, run: RunRecord, now: float, answered: list[str] | None) -> Batch:
        if run.status == "suspended" or answered is None:
            run.status, run.attempt, run.episode = "queued", 0, run.episode + 1
            self.ready = now
        return self.log(run.id, [again(answered)])

    def release(self, run: RunRecord, ready: float) -> Batch:
        """Give the run back, to be taken from *ready* on."""
        run.status = "queued"
        self.ready = ready
        self.fence += 1
        return self.log(run.id, [again(None)])

    def answer(self, run: RunRecord, decisions: Iterable[Decision], now: float) -> Batch | None:
        """
        Store answers.

        Raises:
            AnswerConflict: One of them can't be; nothing is changed.
        """
        calls = self.calls.get(run.id, {})
        new: dict[str, CallRecord] = {}
        for decision in decisions:
            call = calls.get(decision.call_id)
            told = None if call is None else self._told(call, now)
            if (answered := ruled(told, decision)) is not None:
                new[decision.call_id] = answered
        if not new:
            return None
        check_goes_on(run, next(iter(new)))
        calls.update(new)
        for call_id in new:
            self.deadlines.pop(call_id, None)
        return self._queue_again(run, now, list(new))

    def end_idle(
        self, run: RunRecord, end: RunEnd, outcome: CallOutcome, error: str
    ) -> tuple[Batch, list[CallRecord]]:
        """End a run that no worker holds, with its open calls: the events, and the calls."""
        records, events = ended_calls(self.open_calls(run.id), outcome, error)
        for record in records:
            self.calls[run.id][record.call_id] = record
            self.merge(run.id, record)
        if run is self.active:
            self.active = None
            self.deadlines.clear()
        else:
            del self.queue[run.id]
        self.settle(run, end)
        return self.log(run.id, [*events, finished_event(end, run.metadata)]), records

    def pending(self) -> list[PendingCall]:
        """Calls of the active run that wait for an answer."""
        run = self.active
        if run is None:
            return []
        calls = self.calls.get(run.id, {}).values()
        return [call.pending(run.id) for call in calls if call.status == "waiting"]

    def merged(
        self, run: RunRecord | None, change: Commit | ThreadChange, new: Message | None = None
    ) -> Bags:
        """What a change makes of metadata, that of a *new* message included; nothing is changed yet."""
        bags = Bags()
        if run is not None and change.run_metadata is not None:
            bags.run = Merged(run.metadata, change.run_metadata(run.metadata))
        if change.thread_metadata is not None:
            old = self.head.metadata
            bags.thread = Merged(old, change.thread_metadata(old))
        for message_id, merge in change.message_metadata.items():
            at = self.where.get(message_id)
            if at is not None:
                old = self.messages[at].metadata
            elif new is not None:
                old = new.metadata
            bags.messages[message_id] = Merged(old, merge(old))
        return bags

    def keep(self, run: RunRecord | None, bags: Bags) -> None:
        """Take in what :meth:`merged` made."""
        if run is not None and bags.run is not None:
            run.metadata = bags.run.new
        if bags.thread is not None:
            self.head.metadata = bags.thread.new
        for message_id, merged in bags.messages.items():
            index = self.where[message_id]
            self.messages[index] = attrs.evolve(self.messages[index], metadata=merged.new)

    def settle(self, run: RunRecord, end: RunEnd) -> None:
        run.status = end.status
        run.finished_at = self.head.updated_at = end.finished_at
        run.outcome = end.outcome
        run.reason = end.reason
        run.stop_reason = end.stop_reason
        run.usage = end.usage
        run.error = end.error
