"""Answers to pending calls, and what is stored of them (R-20, R-21)."""

from __future__ import annotations

from typing import Final, Literal

import attrs

from pai.schema import JsonObject, JsonValue

__all__ = (
    "UNEDITED",
    "Answer",
    "Approve",
    "Cancel",
    "Decision",
    "Deny",
    "PendingKind",
    "Provide",
)

PendingKind = Literal["approval", "client", "suspend", "question"]
"""What a pending call waits for: a yes, a client's result, an answer to its payload or a question."""


class _Unedited:
    """The type of the default of :attr:`Approve.input`, since ``None`` can be an input."""

    def __repr__(self) -> str:
        return "UNEDITED"


UNEDITED: Final = _Unedited()
"""The call runs with the input it has."""


@attrs.frozen
class Approve:
    """
    Let a call run.

    Args:
        call_id: The call.
        input: Run it with this input instead; it is checked against the tool's schema.
        digest: The digest of the pending call that was looked at: one of another input is a
            conflict.
    """

    call_id: str
    input: object = UNEDITED
    digest: str | None = None


@attrs.frozen
class Deny:
    """
    Refuse a call: the model is told so.

    Args:
        call_id: The call.
        reason: Why; the model reads it.
        digest: As for :class:`Approve`.
    """

    call_id: str
    reason: str | None = None
    digest: str | None = None


@attrs.frozen
class Provide:
    """
    Give a client tool its output, or a suspended call what it waits for.

    Args:
        call_id: The call.
        value: As the tool's output class, or the ``answer`` class of its ``Suspend``, describes it.
        digest: As for :class:`Approve`.
    """

    call_id: str
    value: object
    digest: str | None = None


@attrs.frozen
class Cancel:
    """Give a pending call up: the model is told that it was cancelled."""

    call_id: str
    digest: str | None = None


@attrs.frozen
class Answer:
    """
    Answer a question that a hook asked.

    Args:
        question_id: The question.
        value: What its schema describes.
        digest: As for :class:`Approve`.
    """

    question_id: str
    value: object
    digest: str | None = None


@attrs.frozen(eq=False)
class Decision:
    """
    One answer, checked and ready to be stored.

    Args:
        call_id: The pending call, or the question.
        kinds: What the call may wait for, for this answer to be one.
        value: The answer as JSON: ``type`` and what came with it.
        digest: See :class:`Approve`.
    """

    call_id: str
    kinds: tuple[PendingKind, ...]
    value: JsonObject
    digest: str | None = None

    def same(self, stored: JsonValue) -> bool:
        """Whether this is the answer that was stored; who gave it does not matter."""
        if not isinstance(stored, dict):
            return False
        return {**stored, "actor": None} == {**self.value, "actor": None}
