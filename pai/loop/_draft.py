"""The assistant message of a step, as it is written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final, Protocol

import attrs

from pai.loop._assemble import Assembly
from pai.protocol import (
    CallOutcome,
    Data,
    DataPart,
    Event,
    Message,
    MessageMetadata,
    MessagePart,
    Metadata,
    RunQueued,
    StepFinished,
    StepStarted,
    ToolCallPart,
    fold,
    new_id,
)
from pai.schema import JsonValue

__all__ = ("Draft", "Ending")

_ANY_RUN = RunQueued("send")
"""What a fold of one step begins with."""


class Ending(Protocol):
    """How a call ended."""

    @property
    def outcome(self) -> CallOutcome: ...

    @property
    def output(self) -> JsonValue: ...

    @property
    def error(self) -> str | None: ...


class Draft:
    """
    The message of one step.

    The first thing in it begins it: a part of the step's stream, or data that a hook writes before.
    What is written beside the stream stands where it was shown. Once the step is committed, the
    message still takes the results of its calls, and data that tools write.

    Args:
        run_id: The run.
        index: The step.
        bags: The message's metadata.

    Attributes:
        id: The message's id.
        begun: The log knows of it.
        assembly: What the stream has brought, while it is under way.
        message: The message, once the step is committed.
        earlier: It is a step of an earlier episode.
        changed: Data was written since; the store does not have it yet.
    """

    __slots__ = (
        "_created_at", "_run_id", "assembly", "bags", "begun", "changed", "data", "earlier", "id",
        "index", "message",
    )  # fmt: skip

    def __init__(self, run_id: str, index: int, bags: Metadata) -> None:
        self._run_id: Final = run_id
        self.index: Final = index
        self.earlier = False
        self.id = new_id()
        self.bags = bags
        self.begun = False
        self._created_at = datetime.now(UTC)
        self.assembly: Assembly | None = None
        self.data: list[Data] = []
        self.message: Message | None = None
        self.changed = False

    @classmethod
    def of(cls, message: Message, index: int, *, earlier: bool = False) -> Draft:
        """
        The draft of a step that is committed, whose calls have not all settled.

        Args:
            message: What is committed of it.
            index: Its place among the steps of the run.
            earlier: It is a step of an earlier episode.
        """
        draft = cls(message.run_id, index, message.metadata)
        draft.earlier = earlier
        draft.id, draft.message, draft.begun = message.id, message, True
        return draft

    def recover(self, events: Sequence[Event]) -> None:
        """
        Take in data that tools wrote after the step was committed, and no commit has taken along.

        Args:
            events: The run's last step, as the log has it.
        """
        first = events[0] if events else None
        if (
            self.message is None
            or not isinstance(first, StepStarted)
            or first.message_id != self.id
        ):
            return
        kinds = [type(event) for event in events]
        if StepFinished not in kinds:
            return
        end = kinds.index(StepFinished)
        streamed = fold(None, [_ANY_RUN, *events[: end + 1]]).messages[-1]
        left = sum([type(part) is DataPart for part in streamed.parts])
        parts: list[MessagePart] = []
        for part in self.message.parts:
            if type(part) is DataPart:
                left -= 1
                if left < 0:
                    continue
            parts.append(part)
        message = attrs.evolve(self.message, parts=tuple(parts))
        for event in events[end + 1 :]:
            if isinstance(event, Data) and not event.transient:
                message = _with_data(message, event)
        if message.parts != self.message.parts:
            self.message, self.changed = message, True

    def begin(self) -> list[Event]:
        """What the log is told of it first; nothing the second time."""
        if self.begun:
            return []
        self.begun = True
        self._created_at = datetime.now(UTC)
        started: list[Event] = [StepStarted(self.index, self.id, self._created_at)]
        if self.bags.public:
            started.append(MessageMetadata(self.id, self.bags.shown()))
        return started

    def open(self, provider: str, used: set[str], check: Callable[[Data], None]) -> Assembly:
        """Take in a stream; see :class:`Assembly`."""
        self.assembly = Assembly(provider, used, self.data, check)
        return self.assembly

    def add(self, data: Data) -> None:
        """Keep a data part; it replaces one of the same name and id (A-UI-1)."""
        if self.message is not None:
            self.message = _with_data(self.message, data)
            self.changed = True
        elif self.assembly is not None:
            self.assembly.write(data)
        else:
            self.data.append(data)

    def parts(self) -> list[MessagePart]:
        """What it holds so far, while the step is not committed."""
        if self.assembly is not None:
            return self.assembly.parts()
        return Assembly("", set(), self.data).parts() if self.data else []

    def as_message(self, parts: list[MessagePart]) -> Message:
        """The message, of these parts."""
        return Message(
            self.id, "assistant", tuple(parts), self._run_id, self._created_at, self.bags
        )

    def committed(self, message: Message) -> None:
        """The step is in the store, with this message."""
        self.message = message
        self.assembly = None

    def edit(self, call_id: str, value: JsonValue) -> None:
        """Put in another input of a call, with which it was approved."""
        assert self.message is not None
        parts = [
            attrs.evolve(part, input=value)
            if type(part) is ToolCallPart and part.call_id == call_id
            else part
            for part in self.message.parts
        ]
        self.message = attrs.evolve(self.message, parts=tuple(parts))

    def settle(self, call_id: str, end: Ending) -> None:
        """Put the end of a call into the committed message."""
        assert self.message is not None
        parts = [
            attrs.evolve(part, outcome=end.outcome, output=end.output, error=end.error)
            if type(part) is ToolCallPart and part.call_id == call_id
            else part
            for part in self.message.parts
        ]
        self.message = attrs.evolve(self.message, parts=tuple(parts))

    def take(self) -> Message | None:
        """The message as it is to be stored again, if it has changed."""
        if not self.changed or self.message is None:
            return None
        self.changed = False
        return attrs.evolve(self.message, metadata=self.bags)


def _with_data(message: Message, data: Data) -> Message:
    new = DataPart(data.name, data.value, data.id)
    parts = list(message.parts)
    if data.id is not None:
        for index, part in enumerate(parts):
            if type(part) is DataPart and (part.name, part.id) == (data.name, data.id):
                parts[index] = new
                return attrs.evolve(message, parts=tuple(parts))
    return attrs.evolve(message, parts=(*parts, new))
