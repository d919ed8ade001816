"""From records to rows and back; JSON is encoded here, before a transaction begins."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from operator import itemgetter
from typing import Any

from pai.protocol import (
    Batch,
    CallRecord,
    Message,
    MessagePart,
    Metadata,
    RunEnd,
    RunRecord,
    Suspension,
    TextPart,
    ThreadKey,
    ThreadRecord,
    TitleMark,
    Usage,
    encode_events,
    labelled,
    part_from_json,
    parts_to_text,
)
from pai.schema import dump_json
from pai.stores._rules import fence_before, plain
from pai.stores._sql.packing import unpacked

__all__ = (
    "Row",
    "batch_from_row",
    "body_of",
    "call_from_row",
    "call_row",
    "end_values",
    "head_from_row",
    "head_row",
    "json_text",
    "message_row",
    "messages_from_rows",
    "metadata_from_text",
    "metadata_text",
    "moment",
    "run_from_row",
    "run_row",
    "suspension_row",
)

Row = dict[str, object]

_SURROGATE = re.compile("[\ud800-\udfff]")
_NONE = Metadata()

_PARSED = 64
"""
Messages parsed at once: the parser's start costs more than a short message, but what it makes of
too many lives long enough to keep the garbage collector busy.
"""
_seq: Callable[[Sequence[Any]], Any] = itemgetter(0)


def _safe(text: str) -> str:
    """
    JSON text that any database takes.

    A model may stream half a surrogate pair, which has no UTF-8; in JSON it has an escape, and a
    raw character outside ASCII only stands within a string.
    """
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    return text


def json_text(value: object) -> str:
    return _safe(dump_json(value))


def _maybe_json(value: object) -> str | None:
    return None if value is None else json_text(value)


def _loaded(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _seconds(value: datetime | None) -> float | None:
    return None if value is None else value.timestamp()


def moment(value: float) -> datetime:
    return datetime.fromtimestamp(value, UTC)


def _time(value: float | None) -> Any:
    return None if value is None else moment(value)


def body_of(events: list[Any]) -> str:
    return _safe(encode_events(events))


def metadata_text(value: Metadata) -> str:
    if not value.private and not value.public:
        return "{}"
    return json_text({"private": dict(value.private), "public": dict(value.public)})


def metadata_from_text(text: str) -> Metadata:
    if text == "{}":
        return Metadata()
    value = json.loads(text)
    return Metadata(value["private"], value["public"])


def head_row(head: ThreadRecord) -> Row:
    return {
        "partition": head.key.partition,
        "id": head.key.thread_id,
        "agent": head.agent,
        "title": plain(head.title),
        "title_source": head.title_source,
        "metadata": metadata_text(head.metadata),
        "created_at": head.created_at.timestamp(),
        "fences": fence_before(head.created_at),
    }


def head_from_row(key: ThreadKey, row: Sequence[Any]) -> ThreadRecord:
    return ThreadRecord(
        key,
        row[0],
        metadata_from_text(row[3]),
        _time(row[4]),
        _time(row[5]),
        row[1],
        row[2],
        None if row[14] is None else TitleMark(_time(row[14]), row[15], row[16]),
    )


def run_row(key: ThreadKey, run: RunRecord) -> Row:
    return {
        "partition": key.partition,
        "thread_id": key.thread_id,
        "id": run.id,
        "agent": run.agent,
        "version": run.version,
        "operation": run.operation,
        "request": json_text(run.request),
        "digest": run.digest,
        "metadata": metadata_text(run.metadata),
        "status": run.status,
        "parent_run_id": run.parent_run_id,
        "attempt": run.attempt,
        "episode": run.episode,
        "outcome": plain(run.outcome),
        "reason": plain(run.reason),
        "stop_reason": run.stop_reason,
        "usage": _usage_text(run.usage),
        "error": _maybe_json(run.error),
        "cancel": plain(run.cancel),
        "created_at": run.created_at.timestamp(),
        "started_at": _seconds(run.started_at),
        "finished_at": _seconds(run.finished_at),
        "after": run.after,
        "steps": run.steps,
        "patch": _maybe_json(run.patch),
    }


def run_from_row(row: Sequence[Any]) -> RunRecord:
    usage = row[15]
    return RunRecord(
        row[0],
        row[1],
        row[2],
        row[3],
        json.loads(row[4]),
        row[5],
        _time(row[6]),
        metadata_from_text(row[7]),
        row[8],
        row[9],
        row[10],
        row[11],
        row[12],
        row[13],
        row[14],
        None if usage is None else Usage(*json.loads(usage)),
        _loaded(row[16]),
        _time(row[17]),
        _time(row[18]),
        row[19],
        row[20],
        row[21],
        _loaded(row[22]),
    )


def _usage_text(usage: Usage | None) -> str | None:
    if usage is None:
        return None
    numbers = (
        usage.input_tokens,
        usage.output_tokens,
        usage.total_tokens,
        usage.reasoning_tokens,
        usage.cached_input_tokens,
        usage.cache_write_tokens,
    )
    return dump_json(numbers)


def end_values(end: RunEnd) -> Row:
    return {
        "end_status": end.status,
        "end_outcome": plain(end.outcome),
        "end_reason": plain(end.reason),
        "end_stop_reason": end.stop_reason,
        "end_usage": _usage_text(end.usage),
        "end_error": _maybe_json(end.error),
        "end_finished_at": end.finished_at.timestamp(),
    }


def suspension_row(how: Suspension) -> Row:
    return {
        "usage": _usage_text(how.usage),
        "steps": how.steps,
        "expires_at": _seconds(how.expires_at),
    }


def message_row(key: ThreadKey, message: Message) -> Row:
    return {
        "partition": key.partition,
        "thread_id": key.thread_id,
        "id": message.id,
        "run_id": message.run_id,
        "role": message.role,
        "parts": _safe(parts_to_text(message.parts)),
        "metadata": metadata_text(message.metadata),
        "created_at": message.created_at.timestamp(),
        "replaced": None,
    }


def messages_from_rows(rows: list[Any], ended: list[Any], *, by_run: bool) -> list[Message]:
    """
    The messages, with the ends of their calls in them.

    Args:
        rows: Rows of messages, ordered by run.
        ended: Rows of calls that have settled; those of other messages do not matter.
        by_run: Keep that order; else that in which the messages came.
    """
    if not by_run:
        rows.sort(key=_seq)
    ends = {(row[0], row[1]): row for row in ended}
    messages: list[Message] = []
    for start in range(0, len(rows), _PARSED):
        some = rows[start : start + _PARSED]
        bodies = json.loads("[" + ",".join([row[3] for row in some]) + "]")
        for row, body in zip(some, bodies, strict=True):
            _, message_id, role, _, run_id, created_at, bags, labels = row
            parts = _parts(body, run_id, ends)
            if labels is not None:
                parts = labelled(
                    parts, {int(place): text for place, text in json.loads(labels).items()}
                )
            messages.append(
                Message(
                    message_id,
                    role,
                    parts,
                    run_id,
                    datetime.fromtimestamp(created_at, UTC),
                    _NONE if bags == "{}" else metadata_from_text(bags),
                )
            )
    return messages


def _parts(
    body: list[dict[str, Any]], run_id: str, ends: dict[tuple[str, str], Any]
) -> tuple[MessagePart, ...]:
    if len(body) == 1:
        (part,) = body
        # Most messages are this one part, and this is half the price.
        if part["type"] == "text" and len(part) == 2:
            return (TextPart(part["text"]),)
    if ends:
        for part in body:
            if part["type"] == "tool-call":
                end = ends.get((run_id, part["callId"]))
                if end is not None:
                    _merge(part, end)
    return tuple([part_from_json(part) for part in body])


def _merge(part: dict[str, Any], end: Sequence[Any]) -> None:
    _, _, outcome, output, error, rewritten_input, rewritten = end
    part["outcome"] = outcome
    part["output"] = _loaded(output)
    part["error"] = _loaded(error)
    if rewritten:
        part["input"] = _loaded(rewritten_input)


def call_row(key: ThreadKey, run_id: str, call: CallRecord) -> Row:
    return {
        "partition": key.partition,
        "thread_id": key.thread_id,
        "run_id": run_id,
        "call_id": call.call_id,
        "message_id": call.message_id,
        "tool": call.tool,
        "status": call.status,
        "outcome": call.outcome,
        "output": _maybe_json(call.output),
        # As JSON: a tool's words may hold what plain text cannot.
        "error": _maybe_json(call.error),
        "input": _maybe_json(call.input),
        "rewritten": int(call.rewritten),
        "kind": call.kind,
        "payload": _maybe_json(call.payload),
        "digest": call.digest,
        "decision": json_text(call.decisions) if call.decisions else None,
        "expires_at": _seconds(call.expires_at),
    }


def call_from_row(row: Sequence[Any]) -> CallRecord:
    return CallRecord(
        row[0],
        row[1],
        row[2],
        row[3],
        row[4],
        _loaded(row[5]),
        _loaded(row[6]),
        _loaded(row[7]),
        bool(row[8]),
        row[9],
        _loaded(row[10]),
        row[11],
        () if row[12] is None else tuple(json.loads(row[12])),
        _time(row[13]),
        bool(row[14]),
    )


def batch_from_row(row: Sequence[Any]) -> Batch:
    last, size, run_id, body, compact = row
    if compact:
        body = unpacked(body)
    return Batch(last - size + 1, run_id, body=body, size=size, compact=compact or 0)
