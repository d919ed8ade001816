"""What a transaction does with side jobs: one plain function each."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from pai.protocol import JobRecord, RunSource, ThreadKey
from pai.stores._sql import reads
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import Row, head_from_row, json_text, run_from_row
from pai.stores._sql.statement import Connection

__all__ = (
    "JobRows",
    "NotOurs",
    "claim",
    "due",
    "finish",
    "job_rows",
    "keep_labels",
    "label",
    "postpone",
    "retitle",
    "source",
    "write",
)


class JobRows(NamedTuple):
    """
    What a write of a run says of side jobs.

    Args:
        new: Rows of new ones.
        unlabelled: The message whose jobs and labels go first.
    """

    new: list[Row]
    unlabelled: str | None


def job_rows(jobs: Sequence[JobRecord], unlabelled: str | None) -> JobRows | None:
    """The rows; ``None`` if there is nothing to write."""
    if not jobs and unlabelled is None:
        return None
    rows: list[Row] = [
        {
            "job": job.id,
            "kind": job.kind,
            "run": job.run_id,
            "payload": json_text(job.payload),
            "at_attempt": job.attempt,
            "lease": float(job.lease),
        }
        for job in jobs
    ]
    return JobRows(rows, unlabelled)


def _scope(key: ThreadKey) -> Row:
    return {"scope": key.partition, "thread": key.thread_id}


def _of_message(key: ThreadKey, message_id: str) -> Row:
    # Ids of its label jobs begin with it and a colon, and ";" is the next character.
    return {**_scope(key), "first": f"{message_id}:", "end": f"{message_id};"}


def write(c: Connection, q: Queries, key: ThreadKey, rows: JobRows, now: float) -> list[bool]:
    """Write what a run says of side jobs; whether each is new is returned."""
    if rows.unlabelled is not None:
        q.jobs.drop(c, **_of_message(key, rows.unlabelled))
    return [q.jobs.add(c, **_scope(key), **row, now=now).rowcount > 0 for row in rows.new]


def keep_labels(c: Connection, q: Queries, key: ThreadKey, message_id: str) -> None:
    """Put labels that waited for their message into its row."""
    found = q.jobs.kept_labels(c, **_of_message(key, message_id)).fetchall()
    if found:
        _put_labels(c, q, key, message_id, [json.loads(row[0]) for row in found])


def _put_labels(
    c: Connection, q: Queries, key: ThreadKey, message_id: str, new: list[list[Any]]
) -> bool:
    scope = _scope(key)
    row = q.jobs.labels(c, **scope, message=message_id).fetchone()
    if row is None:
        return False
    labels = json.loads(row[0] or "{}")
    labels.update({str(ordinal): text for ordinal, text in new})
    q.jobs.set_labels(c, **scope, message=message_id, text=json_text(labels))
    return True


def due(c: Connection, q: Queries, limit: int, now: float) -> list[tuple[ThreadKey, str]]:
    rows = q.jobs.due(c, most=limit, now=now).fetchall()
    return [(ThreadKey(row[0], row[1]), row[2]) for row in rows]


def claim(
    c: Connection, q: Queries, key: ThreadKey, job_id: str, lease: float, now: float
) -> JobRecord | None:
    row = q.jobs.claim(c, **_scope(key), job=job_id, lease=lease, now=now).fetchone()
    if row is None:
        return None
    kind, run_id, payload, attempt = row
    return JobRecord(job_id, kind, run_id, json.loads(payload), attempt)


def postpone(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    job_id: str,
    attempt: int,
    seconds: float,
    now: float,
) -> bool:
    done = q.jobs.postpone(c, **_scope(key), job=job_id, at_attempt=attempt, lease=seconds, now=now)
    return done.rowcount > 0


def finish(c: Connection, q: Queries, key: ThreadKey, job_id: str, attempt: int) -> None:
    q.jobs.finish(c, **_scope(key), job=job_id, at_attempt=attempt)


class NotOurs(Exception):
    """The job is gone, or another worker has it: rolls back what was counted for its event."""


def label(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    job_id: str,
    attempt: int,
    message_id: str,
    label: list[Any],
    body: str,
) -> tuple[int, str]:
    """
    Write a label; the number of its event and the run are returned.

    Raises:
        NotOurs: Nothing was written.
    """
    scope = _scope(key)
    # First the thread's lock, as everywhere: a commit of the message waits, or was before.
    last = _counted(q.jobs.count_event(c, **scope).fetchone())
    ours = {**scope, "job": job_id, "at_attempt": attempt}
    if _put_labels(c, q, key, message_id, [label]):
        row = q.jobs.finish(c, **ours).fetchone()
    else:
        row = q.jobs.keep_label(c, **ours, payload=json_text(label)).fetchone()
    if row is None:
        raise NotOurs
    _log(c, q, key, row[0], last, body)
    return last, row[0]


def retitle(
    c: Connection, q: Queries, key: ThreadKey, job_id: str, attempt: int, values: Row, body: str
) -> int | None:
    """
    Write a title, if it may replace what is there; the number of its event is returned.

    Raises:
        NotOurs: Nothing was written.
    """
    scope = _scope(key)
    row = q.jobs.retitle(c, **scope, **values).fetchone()
    if q.jobs.finish(c, **scope, job=job_id, at_attempt=attempt).fetchone() is None:
        raise NotOurs
    if row is None:
        return None
    _log(c, q, key, "", row[0], body)
    return int(row[0])


def _counted(row: Any) -> int:
    if row is None:
        raise NotOurs
    return int(row[0])


def _log(c: Connection, q: Queries, key: ThreadKey, run_id: str, last: int, body: str) -> None:
    q.add_events(
        c,
        partition=key.partition,
        thread_id=key.thread_id,
        last=last,
        size=1,
        run_id=run_id,
        body=body,
    )


def source(c: Connection, q: Queries, key: ThreadKey, run_id: str) -> RunSource | None:
    scope = _scope(key)
    head = q.head(c, **scope).fetchone()
    run = q.run(c, **scope, run=run_id).fetchone()
    if head is None or run is None:
        return None
    turn = q.jobs.turn(c, **scope, run=run_id).fetchone()[0]
    messages = reads.history(c, q, key, turn)
    return RunSource(head_from_row(key, head), run_from_row(run), messages, turn)
