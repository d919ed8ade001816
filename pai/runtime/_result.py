"""What came of a run."""

from __future__ import annotations

from typing import Literal

import attrs

from pai.errors import PaiError, RunFailed, StructuredOutputError
from pai.protocol import MessageView, PendingCall, TextPart, Usage
from pai.schema import JsonObject

__all__ = ("RunResult",)


@attrs.frozen(eq=False)
class RunResult:
    """
    A run's end, or its suspension.

    Attributes:
        run_id: The run.
        status: ``completed``, ``failed``, ``cancelled``, ``blocked`` or ``suspended``.
        outcome: What a ``Respond`` said, else the status.
        reason: Why it was blocked or cancelled.
        stop_reason: Why the loop ended (O-2).
        output: The structured output, where one was asked for: an instance where a class of the
            agent's ``outputs`` was, else JSON.
        message: The last message of the assistant.
        usage: The sum over its model calls.
        pending: Calls that wait for an answer.
        error: ``{"code": ..., "message": ..., "id": ...}`` of a failed run.
    """

    run_id: str
    status: Literal["completed", "failed", "cancelled", "blocked", "suspended"]
    outcome: str | None
    reason: str | None
    stop_reason: str | None
    output: object
    message: MessageView | None
    usage: Usage | None
    pending: tuple[PendingCall, ...]
    error: JsonObject | None

    @property
    def text(self) -> str:
        """The text of the last step, or of the ``Respond``."""
        if self.message is None:
            return ""
        return "".join([part.text for part in self.message.parts if isinstance(part, TextPart)])

    def raise_for_status(self) -> None:
        """
        Raise unless the run completed or waits for an answer.

        Raises:
            RunFailed: With the error's code, the reason of a block, or ``"cancelled"``. Where the
                answer did not fit the output, it is a *StructuredOutputError* as well.
        """
        if self.status in ("completed", "suspended"):
            return
        code: object = self.status
        if self.error is not None:
            code = self.error.get("code") or code
        elif self.status == "blocked":
            code = self.reason or code
        if str(code).startswith("structured_output_"):
            raise OutputFailed(str(code), self.run_id, self.text)
        raise RunFailed(str(code), self.run_id)


class OutputFailed(RunFailed, StructuredOutputError):
    """A run that failed since its answer did not fit: whoever catches either has it."""

    def __init__(self, code: str, run_id: str, raw_text: str) -> None:
        PaiError.__init__(self, f"run {run_id} failed: {code}")
        self.code, self.run_id, self.raw_text = code, run_id, raw_text
