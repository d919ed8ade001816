"""From events to the state of a thread: what a watcher knows is what the store knows (R-25)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs

from pai.errors import Fault, InvalidInput
from pai.protocol._events import (
    CallError,
    CallOutput,
    Event,
    MessageMetadata,
    QuestionAsked,
    ReasoningSummary,
    RunFinished,
    RunQueued,
    RunStarted,
    RunSuspended,
    StepFinished,
    StepStarted,
    ThreadUpdated,
    ToolApprovalRequested,
    ToolSuspended,
)
from pai.protocol._fold_step import EPOCH, StepFold
from pai.protocol._labels import labelled
from pai.protocol._parts import DataPart, MessagePart, ToolCallPart
from pai.protocol._state import (
    Diagnostic,
    MessageView,
    PendingCall,
    RunView,
    ThreadState,
    ThreadView,
)
from pai.protocol._stream import Data, StepReset, ToolCall

__all__ = ("fold",)


def fold(state: ThreadState | None, events: Iterable[Event]) -> ThreadState:
    """
    The state after *events*: a snapshot and what comes after its cursor is all there is (R-25).

    A step under way shows as the last message, as far as it came; once it is committed, that
    message is the one in the store. Events that *state* holds already are passed over.

    Args:
        state: Where to begin; ``None`` for the beginning of the thread.
        events: The events after its cursor, in order and numbered, as a thread or a run gives them.

    Raises:
        InvalidInput: There is no state, and the first event is not the one that made the thread.
    """
    folding = _Fold(state)
    for event in events:
        folding.add(event)
    return folding.state()


class _Fold:
    """A state that takes events in."""

    def __init__(self, state: ThreadState | None) -> None:
        self._thread: ThreadView | None = None
        self._messages: dict[str, MessageView] = {}
        self._runs: dict[str, RunView] = {}
        self._step: StepFold | None = None
        self._pending: dict[tuple[str, str], PendingCall] = {}
        self._cursor = 0
        self._diagnostics: tuple[Diagnostic, ...] = ()
        # The message that each run committed last: what its tools write belongs to that.
        self._last: dict[str, str] = {}
        if state is None:
            return
        self._diagnostics = state.diagnostics
        self._thread, self._cursor = state.thread, state.cursor
        self._pending = {(call.run_id, call.call_id): call for call in state.pending}
        self._messages = {message.id: message for message in state.messages}
        self._runs = {run.id: run for run in state.runs}
        if state.open_step:
            self._step = StepFold.of(state.open_step)
            if state.messages and state.messages[-1].id == self._step.message_id:
                del self._messages[self._step.message_id]

    def add(self, event: Event) -> None:
        if event.seq:
            if event.seq <= self._cursor:
                return
            self._cursor = event.seq
        take = _TAKES.get(type(event))
        if take is not None:
            take(self, event)
        elif self._step is not None:
            self._step.add(event)

    def state(self) -> ThreadState:
        if self._thread is None:
            raise InvalidInput(
                [Fault("events", "begin with event 1 of the thread, or with a state of it")],
                subject="fold",
            )
        messages = list(self._messages.values())
        open_step: tuple[Any, ...] = ()
        if self._step is not None:
            open_step = self._step.events()
            view = self._step.view()
            # One that is committed is being told again, and has its place.
            if view.parts and view.id not in self._messages:
                messages.append(view)
        return ThreadState(
            self._thread,
            tuple(messages),
            tuple(self._runs.values()),
            tuple(self._pending.values()),
            self._cursor,
            open_step,
            self._diagnostics,
        )

    def _told(self, of: str, id_: str) -> None:
        """What it has by now was checked: nothing is left out of that."""
        if self._diagnostics:
            self._diagnostics = tuple(
                [item for item in self._diagnostics if (item.of, item.id) != (of, id_)]
            )

    # ------------------------------------------------------------------ thread and runs

    def run_queued(self, event: RunQueued) -> None:
        if event.run_id in self._runs:
            self._queued_again(event)
            return
        at = event.created_at or EPOCH
        if self._thread is None:
            self._thread = ThreadView(event.thread_id, None, None, event.thread_metadata, at, at)
        self._thread = attrs.evolve(self._thread, updated_at=at)
        self._runs[event.run_id] = RunView(
            event.run_id, "queued", None, None, None, event.operation, event.metadata, None, None,
            event.parent_run_id, at, None, None, event.after,
        )  # fmt: skip
        if event.message is not None:
            self._messages[event.message.id] = event.message

    def _queued_again(self, event: RunQueued) -> None:
        run = self._runs[event.run_id]
        for call_id in event.answered or ():
            self._pending.pop((run.id, call_id), None)
        if not (event.answered and run.status == "running"):
            self._runs[run.id] = attrs.evolve(run, status="queued")

    def run_started(self, event: RunStarted) -> None:
        run = self._runs.get(event.run_id)
        if run is not None:
            if run.after is not None and run.started_at is None:
                self._replace_after(run, run.after)
            self._runs[run.id] = attrs.evolve(
                run, status="running", started_at=run.started_at or event.started_at
            )

    def _replace_after(self, run: RunView, after: str) -> None:
        """Drop what stands behind the message that *run* goes on from, as the store does."""
        turns = {run_id: turn for turn, run_id in enumerate(self._runs)}
        kept = self._messages.get(after)
        if after and kept is None:
            return  # it was itself replaced: the run fails
        start = turns.get(kept.run_id, -1) if kept is not None else -1
        behind = kept is None
        for message in list(self._messages.values()):
            if message is kept:
                behind = True
                continue
            turn = turns.get(message.run_id, -1)
            if start < turn < turns[run.id] or (turn == start and behind):
                del self._messages[message.id]

    def run_suspended(self, event: RunSuspended) -> None:
        run = self._runs.get(event.run_id)
        if run is not None:
            self._runs[run.id] = attrs.evolve(run, status="suspended", usage=event.usage)

    def run_finished(self, event: RunFinished) -> None:
        for key in [key for key in self._pending if key[0] == event.run_id]:
            del self._pending[key]
        if self._step is not None and self._step.run_id == event.run_id:
            self._step = None  # nothing of it was kept
        run = self._runs.get(event.run_id)
        if run is not None:
            self._runs[run.id] = attrs.evolve(
                run,
                status=event.status,
                outcome=event.outcome,
                reason=event.reason,
                stop_reason=event.stop_reason,
                metadata=event.metadata,
                usage=event.usage,
                error=event.error,
                finished_at=event.finished_at,
            )
        if self._thread is not None and event.finished_at is not None:
            self._thread = attrs.evolve(self._thread, updated_at=event.finished_at)

    def thread_updated(self, event: ThreadUpdated) -> None:
        changes: dict[str, Any] = {
            name: value
            for name in ("title", "title_source", "metadata")
            if (value := getattr(event, name)) is not None
        }
        if self._thread is not None and changes:
            self._thread = attrs.evolve(self._thread, **changes)
            if event.metadata is not None:
                self._told("thread", self._thread.id)
        run = self._runs.get(event.run_id)
        if run is not None and event.run_metadata is not None:
            self._runs[run.id] = attrs.evolve(run, metadata=event.run_metadata)
            self._told("run", run.id)

    # ------------------------------------------------------------------ messages

    def step_started(self, event: StepStarted) -> None:
        self._step = StepFold(event)

    def step_reset(self, event: StepReset) -> None:
        if self._step is not None:
            self._step.clear()

    def step_finished(self, event: StepFinished) -> None:
        step, self._step = self._step, None
        if step is not None:
            # A message takes its place in the thread when it is committed.
            view = step.view()
            if event.output is not None:
                view = attrs.evolve(view, parts=(*view.parts, event.output))
            self._messages[step.message_id] = view
            self._last[step.run_id] = step.message_id

    def message_metadata(self, event: MessageMetadata) -> None:
        if self._step is not None and self._step.message_id == event.message_id:
            self._step.add(event)
            return
        message = self._messages.get(event.message_id)
        if message is not None:
            self._messages[message.id] = attrs.evolve(message, metadata=event.metadata)
            self._told("message", message.id)

    def call_waits(self, event: ToolApprovalRequested | ToolSuspended) -> None:
        kind = event.kind if isinstance(event, ToolSuspended) else "approval"
        self._wait(
            PendingCall(
                event.call_id, kind, event.tool, event.input, event.payload, event.expires_at,
                event.run_id, event.digest,
            )
        )  # fmt: skip

    def question_asked(self, event: QuestionAsked) -> None:
        self._wait(
            PendingCall(
                event.question_id, "question", event.tool, event.input, event.payload, None,
                event.run_id, event.digest,
            )
        )  # fmt: skip

    def _wait(self, call: PendingCall) -> None:
        self._pending[call.run_id, call.call_id] = call

    def reasoning_summary(self, event: ReasoningSummary) -> None:
        if self._step is not None and self._step.message_id == event.message_id:
            self._step.add(event)
            return
        message = self._messages.get(event.message_id)
        if message is not None:
            parts = labelled(message.parts, {event.ordinal: event.summary})
            self._messages[message.id] = attrs.evolve(message, parts=parts)

    def tool_call(self, event: ToolCall) -> None:
        if self._step is not None:
            self._step.add(event)
            return
        # It was approved with another input, after its step.
        if found := self._call(event):
            message, index, part = found
            self._put_part(message, index, attrs.evolve(part, input=event.input))

    def call_ended(self, event: CallOutput | CallError) -> None:
        self._pending.pop((event.run_id, event.call_id), None)
        if self._step is not None and self._step.has_call(event.call_id):
            self._step.add(event)
        elif found := self._call(event):
            message, index, part = found
            self._put_part(message, index, StepFold.ended(part, event))

    def _call(
        self, event: ToolCall | CallOutput | CallError
    ) -> tuple[MessageView, int, ToolCallPart] | None:
        """The part of a call whose step is committed, and where it stands."""
        for message in reversed(self._messages.values()):
            if message.run_id != event.run_id:
                continue
            for index, part in enumerate(message.parts):
                if type(part) is ToolCallPart and part.call_id == event.call_id:
                    return message, index, part
        return None

    def data(self, event: Data) -> None:
        if event.transient:
            return
        if self._step is not None:
            self._step.add(event)
            return
        message = self._messages.get(self._last.get(event.run_id, ""))
        if message is None:
            own = [m for m in self._messages.values() if m.run_id == event.run_id]
            message = next((m for m in reversed(own) if m.role == "assistant"), None)
        if message is None:
            return
        new = DataPart(event.name, event.value, event.id)
        for index, part in enumerate(message.parts):
            if (
                type(part) is DataPart
                and event.id is not None
                and (part.name, part.id) == (event.name, event.id)
            ):
                self._put_part(message, index, new)
                return
        self._put_part(message, len(message.parts), new)

    def _put_part(self, message: MessageView, index: int, part: MessagePart) -> None:
        parts = (*message.parts[:index], part, *message.parts[index + 1 :])
        self._messages[message.id] = attrs.evolve(message, parts=parts)


_TAKES: dict[type, Callable[[_Fold, Any], None]] = {
    RunQueued: _Fold.run_queued,
    RunStarted: _Fold.run_started,
    RunSuspended: _Fold.run_suspended,
    RunFinished: _Fold.run_finished,
    ToolApprovalRequested: _Fold.call_waits,
    ToolSuspended: _Fold.call_waits,
    QuestionAsked: _Fold.question_asked,
    ThreadUpdated: _Fold.thread_updated,
    StepStarted: _Fold.step_started,
    StepReset: _Fold.step_reset,
    StepFinished: _Fold.step_finished,
    MessageMetadata: _Fold.message_metadata,
    ReasoningSummary: _Fold.reasoning_summary,
    ToolCall: _Fold.tool_call,
    CallOutput: _Fold.call_ended,
    CallError: _Fold.call_ended,
    Data: _Fold.data,
}
