"""Answers at the door: checked against what they are to, and made what is stored (O-16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pai.errors import Fault, InvalidInput
from pai.loop import BoundAgent
from pai.protocol import (
    UNEDITED,
    Answer,
    Approve,
    CallRecord,
    Cancel,
    Decision,
    Deny,
    PendingKind,
    Provide,
)
from pai.schema import JsonObject, JsonValue, ValueSchema, check_json, compile_client_schema

__all__ = ("GivenAnswer", "decisions")

GivenAnswer = Approve | Deny | Provide | Cancel | Answer

_TEXT = 10_000
"""Characters of a reason."""

_KINDS: Mapping[type, tuple[PendingKind, ...]] = {
    Approve: ("approval",),
    Deny: ("approval",),
    Provide: ("client", "suspend"),
    Cancel: ("approval", "client", "suspend"),
    Answer: ("question",),
}


def decisions(
    agent: BoundAgent,
    rows: Sequence[CallRecord],
    answers: Sequence[GivenAnswer],
    actor: str | None,
) -> list[Decision]:
    """
    The answers as they are stored, all of them or none.

    Args:
        agent: The agent of the run.
        rows: The run's calls.
        answers: What was given.
        actor: Who gave it.

    Raises:
        InvalidInput: With all that is wrong with their values.
    """
    known = {row.call_id: row for row in rows}
    faults: list[Fault] = []
    found: list[Decision] = []
    seen: set[str] = set()
    if not answers:
        faults.append(Fault("answers", "is empty"))
    for index, answer in enumerate(answers):
        at = f"answers[{index}]"
        if type(answer) not in _KINDS:
            words = "expected Approve, Deny, Provide, Cancel or Answer"
            faults.append(Fault(at, f"{words}, got {type(answer).__name__}"))
            continue
        name = answer.question_id if isinstance(answer, Answer) else answer.call_id
        if name in seen:
            faults.append(Fault(at, f"{name!r} is answered twice"))
        seen.add(name)
        value: JsonObject = {"type": type(answer).__name__.lower()}
        try:
            value |= _value(agent, known.get(name), answer, at)
        except InvalidInput as error:
            faults += error.faults
        if actor is not None:
            value["actor"] = actor
        found.append(Decision(name, _KINDS[type(answer)], value, answer.digest))
    if faults:
        raise InvalidInput(faults, subject="resume")
    return found


def _value(agent: BoundAgent, row: CallRecord | None, answer: Any, at: str) -> JsonObject:
    """What comes with an answer; where nothing waits for it, the store will say so."""
    if isinstance(answer, Deny):
        reason: object = answer.reason
        if reason is not None and not (isinstance(reason, str) and len(reason) <= _TEXT):
            raise InvalidInput([Fault(f"{at}.reason", f"expected at most {_TEXT} characters")])
        return {} if answer.reason is None else {"reason": answer.reason}
    if isinstance(answer, Cancel):
        return {}
    tool = None if row is None else agent.definition.tools.get(row.tool)
    schema: ValueSchema | None = None
    if isinstance(answer, Approve):
        if answer.input is UNEDITED:
            return {}
        schema = None if tool is None else tool.tool.input
        return {"input": _parsed(schema, answer.input, f"{at}.input")}
    if isinstance(answer, Answer):
        if row is not None and isinstance(row.payload, dict):
            described = row.payload.get("schema")
            schema = compile_client_schema(described if isinstance(described, dict) else {})
    elif tool is not None and row is not None:
        if row.kind == "client":
            schema = tool.tool.output
        elif tool.tool.suspend is not None:
            schema = tool.tool.suspend.answer_schema
    return {"value": _parsed(schema, answer.value, f"{at}.value")}


def _parsed(schema: ValueSchema | None, value: object, at: str) -> JsonValue:
    if schema is not None:
        return schema.dump(schema.parse(value, at=at))
    if faults := check_json(value, at=at):
        raise InvalidInput(faults)
    return value  # type: ignore[return-value]  # checked just above
