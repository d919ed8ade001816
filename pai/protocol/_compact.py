"""Making the log of a run that has ended short: each text is one delta (R-25)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy

from pai.protocol._batch import Batch
from pai.protocol._events import (
    CallError,
    CallOutput,
    Event,
    MessageMetadata,
    ReasoningSummary,
    RunFinished,
    StepFinished,
    StepStarted,
    ToolProgress,
)
from pai.protocol._fold_step import StepFold
from pai.protocol._stream import (
    Data,
    File,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Source,
    StepReset,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
)

__all__ = ("compact",)


def compact(batches: Sequence[Batch], ended: Iterable[str]) -> list[tuple[Batch, int]]:
    """
    Shorter batches for those of runs that have ended; they tell the same state.

    Consecutive batches of a run become one, which has the place of all of them in the log. A step
    stands whole where it was committed: what it streamed before is left out, as are steps that were
    reset, progress and transient data. So whoever knows any part of a batch and is given all of it
    knows what the batch tells.

    Args:
        batches: A piece of the log, in order and without a gap.
        ended: Ids of the runs that have ended, all of whose events lie in the piece.

    Returns:
        New batches, each with the number of the first batch's last event it stands for. Those that
        stay as they are are left out.
    """
    shorteners = {run_id: _Run() for run_id in ended}
    found: list[tuple[Batch, int]] = []
    for piece in _pieces(batches):
        run = shorteners.get(piece[0].run_id)
        if run is None:
            continue
        first, last = piece[0], piece[-1]
        retold, events = run.shortened(
            [event for batch in piece for event in batch.events[batch.retold :]]
        )
        size = last.last - first.first + 1
        new = Batch(
            first.first, first.run_id, [*retold, *events], size=size, compact=1 + len(retold)
        )
        # One that stays as it is keeps its numbers.
        if len(piece) > 1 or new.body != first.body:
            found.append((new, first.last))
    return found


def _pieces(batches: Sequence[Batch]) -> list[list[Batch]]:
    """Consecutive batches of one run; the end of the run is the end of a piece."""
    pieces: list[list[Batch]] = []
    over = True
    for batch in batches:
        if over or pieces[-1][-1].run_id != batch.run_id:
            pieces.append([])
        pieces[-1].append(batch)
        over = bool(batch.events) and type(batch.events[-1]) is RunFinished
    return pieces


class _Run:
    """Shortens the events of one run, piece by piece."""

    def __init__(self) -> None:
        self._step: StepFold | None = None
        # What made the last message that is committed, and whether this piece has it.
        self._message: list[Event] = []
        self._here = False
        self._wanted = False
        self._out: list[Event] = []

    def shortened(self, events: list[Event]) -> tuple[list[Event], list[Event]]:
        """What is told again to who knows a part of the piece, and what is told to all."""
        before = self._message[:]
        self._out, self._here, self._wanted = [], False, False
        for event in events:
            self._add(event)
        return ([copy(event) for event in before] if self._wanted else []), self._out

    def _add(self, event: Event) -> None:
        kind = type(event)
        step = self._step
        if kind is ToolProgress or (isinstance(event, Data) and event.transient):
            return
        if isinstance(event, StepStarted):
            self._step = StepFold(event)
        elif kind is StepReset:
            if step is not None:
                step.clear()
        elif kind is StepFinished:
            made: list[Event] = [*step.events(), event] if step is not None else [event]  # type: ignore[list-item]  # they were events
            self._step, self._message, self._here = None, made, True
            self._out += made
        elif step is not None and _in_step(step, event):
            step.add(event)
        elif kind in _STREAMED:
            if isinstance(event, Data):
                self._say_of_message(event)
        else:
            if kind is RunFinished:
                self._step = None
            self._out.append(event)
            if kind in _OF_MESSAGE:
                self._message.append(event)

    def _say_of_message(self, data: Data) -> None:
        """Data of a tool, which is added to the message that is committed."""
        if not self._here:
            # Who has it already would add it twice, or to a later message: that one is told again.
            self._wanted = True
        self._out.append(data)
        self._message.append(data)


def _in_step(step: StepFold, event: Event) -> bool:
    """Whether the event tells of the step under way."""
    if isinstance(event, (MessageMetadata, ReasoningSummary)):
        return event.message_id == step.message_id
    if isinstance(event, (CallOutput, CallError)):
        return step.has_call(event.call_id)
    return type(event) in _STREAMED


_STREAMED = frozenset(
    {
        TextStart, TextDelta, TextEnd, ReasoningStart, ReasoningDelta, ReasoningEnd,
        ToolInputStart, ToolInputDelta, ToolCall, Source, File, Data,
    }
)  # fmt: skip
_OF_MESSAGE = frozenset({CallOutput, CallError, MessageMetadata, ReasoningSummary})
