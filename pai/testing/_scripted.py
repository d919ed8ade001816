"""A model that plays a script: :class:`ScriptedModel`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Literal

import anyio
import attrs

from pai.errors import IncompleteStream, ModelError
from pai.ports import ModelProfile, ModelRequest
from pai.protocol import (
    Data as DataEvent,
    FinishReason,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    StepFinish,
    StreamPart,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputStart,
    Usage,
    new_id,
)
from pai.schema import UNSET, JsonObject, JsonValue, Unset, dump_json

__all__ = (
    "Call",
    "Cut",
    "Data",
    "Fail",
    "Finish",
    "Hang",
    "Output",
    "Reason",
    "ScriptedModel",
    "Turn",
)


@attrs.frozen
class Call:
    """
    The model calls a tool.

    Args:
        name: The tool.
        input: Its input; a text is sent as it is, so that broken JSON can be played.
        call_id: The call's id; a fresh one if none is given.
        approval: The provider runs the tool itself, and asks before it does: what it says then.
    """

    name: str
    input: JsonValue = attrs.field(factory=dict)
    call_id: str | None = None
    approval: JsonObject | None = None


@attrs.frozen
class Reason:
    """The model shows what it thinks."""

    text: str


@attrs.frozen
class Data:
    """The stream carries a data part."""

    name: str
    value: JsonValue


@attrs.frozen
class Fail:
    """The model fails with this error, at this point of the stream."""

    error: Exception = attrs.field(
        factory=lambda: ModelError("the script says so", provider="scripted")
    )


@attrs.frozen
class Hang:
    """The stream never goes on."""


@attrs.frozen
class Cut:
    """The stream ends here, without a finish."""


@attrs.frozen
class Finish:
    """The turn finishes for this reason; without one it is ``stop``, or ``tool-calls``."""

    reason: FinishReason
    usage: Usage | None = None


@attrs.frozen
class Output:
    """
    The turn finishes with this structured output, as a value of its own.

    Give the model ``profile=ModelProfile(output_source="event")`` with it.
    """

    value: JsonValue


Item = str | Call | Reason | Data | Fail | Hang | Cut | Finish | Output
Turn = Item | Sequence[Item]


class ScriptedModel:
    """
    A model driver for tests: each model call plays the next turn.

    Args:
        turns: What it says, call by call: a text, or a list of texts, :class:`Call` and the
            others; or a function from the request to a turn, which is asked each time.
        chunk: Characters of each text delta; ``None``: one delta a text.
        provider: The provider it passes for.
        profile: What it can do.

    Attributes:
        requests: The requests it got, in order.
    """

    def __init__(
        self,
        turns: Sequence[Turn] | Callable[[ModelRequest], Turn] = (),
        chunk: int | None = None,
        *,
        provider: str = "scripted",
        profile: ModelProfile | None = None,
    ) -> None:
        self._turns = turns
        self._chunk = chunk
        self.provider = provider
        self.name = "script"
        self.profile = profile or ModelProfile()
        self.requests: list[ModelRequest] = []

    def _turn(self, request: ModelRequest) -> Sequence[Item]:
        index = len(self.requests)
        self.requests.append(request)
        if callable(self._turns):
            turn = self._turns(request)
        else:
            turns = [self._turns] if isinstance(self._turns, str) else self._turns
            if index >= len(turns):
                raise ModelError(
                    f"the script has {len(turns)} turns and was asked for one more",
                    provider=self.provider,
                    code="script_over",
                )
            turn = turns[index]
        if isinstance(turn, (list, tuple)):
            return turn
        return [turn]  # type: ignore[list-item]  # one item

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Play the next turn."""
        called = False
        output: JsonValue | Unset = UNSET
        for number, item in enumerate(self._turn(request), 1):
            if isinstance(item, str):
                id_ = f"t{number}"
                yield TextStart(id_)
                for text in self._chunks(item):
                    yield TextDelta(id_, text)
                yield TextEnd(id_)
            elif isinstance(item, Reason):
                id_ = f"r{number}"
                yield ReasoningStart(id_)
                for text in self._chunks(item.text):
                    yield ReasoningDelta(id_, text)
                yield ReasoningEnd(id_)
            elif isinstance(item, Call):
                called = True
                for part in self._call(item):
                    yield part
            elif isinstance(item, Data):
                yield DataEvent(item.name, item.value)
            elif isinstance(item, Fail):
                raise item.error
            elif isinstance(item, Hang):
                await anyio.sleep_forever()
            elif isinstance(item, Cut):
                raise IncompleteStream("the script was cut", provider=self.provider)
            elif isinstance(item, Output):
                output = item.value
            elif isinstance(item, Finish):
                yield StepFinish(item.reason, item.usage, output=output)
                return
            else:
                raise TypeError(f"a turn has no room for {type(item).__name__}")
        reason: Literal["tool-calls", "stop"] = "tool-calls" if called else "stop"
        yield StepFinish(reason, Usage(1, 1, 2), output=output)

    def _chunks(self, text: str) -> list[str]:
        if self._chunk is None:
            return [text] if text else []
        return [text[at : at + self._chunk] for at in range(0, len(text), self._chunk)]

    def _call(self, item: Call) -> list[StreamPart]:
        call_id = item.call_id or new_id()
        text = item.input if isinstance(item.input, str) else dump_json(item.input)
        parts: list[StreamPart] = [ToolInputStart(call_id, item.name)]
        parts += [ToolInputDelta(call_id, chunk) for chunk in self._chunks(text)]
        if isinstance(item.input, str):
            call = _from_text(call_id, item.name, item.input)
        else:
            call = ToolCall(call_id, item.name, item.input)
        if item.approval is not None:
            call.provider_executed, call.approval = True, item.approval
        return [*parts, call]


def _from_text(call_id: str, name: str, text: str) -> ToolCall:
    from pai.errors import InvalidInput
    from pai.schema import parse_json

    if not text.strip():
        return ToolCall(call_id, name, {})
    try:
        return ToolCall(call_id, name, parse_json(text))
    except InvalidInput:
        return ToolCall(call_id, name, None, raw=text)
