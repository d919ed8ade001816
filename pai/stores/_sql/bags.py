"""Metadata that changes within a transaction: the thread's head is locked by then (A-META-5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pai.errors import ThreadNotFound
from pai.protocol import Commit, Latest, Merge, ThreadChange, ThreadKey, ThreadRecord
from pai.stores._bags import Bags, Merged, change_events
from pai.stores._rules import no_message, plain
from pai.stores._sql.log import Log, write_log
from pai.stores._sql.queries import Queries
from pai.stores._sql.rows import (
    body_of,
    head_from_row,
    metadata_from_text,
    metadata_text,
)
from pai.stores._sql.statement import Connection, Statement

__all__ = ("delete", "head", "latest", "merge_bags", "update")

# Places in the row of a thread's head.
_AGENT, _TITLE, _SOURCE, _METADATA = 0, 1, 2, 3


def _merge(
    c: Connection, select: Statement, put: Statement, merge: Merge, **place: object
) -> Merged | None:
    row = select(c, **place).fetchone()
    if row is None:
        return None
    merged = _merged(row[0], merge)
    put(c, **place, new_metadata=metadata_text(merged.new))
    return merged


def _merged(text: str, merge: Merge) -> Merged:
    old = metadata_from_text(text)
    return Merged(old, merge(old))


def merge_bags(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    run_id: str | None,
    change: Commit | ThreadChange,
    *,
    thread: bool = True,
) -> Bags:
    """
    Merge and write; the events are the caller's.

    Args:
        c: The transaction.
        q: The statements.
        key: The thread.
        run_id: The run whose metadata changes.
        change: What changes.
        thread: The thread's own, too.

    Raises:
        InvalidInput: The result does not fit.
        StoreError: There is no such message.
        ThreadNotFound: There is no such run.
    """
    scope = {"scope": key.partition, "thread": key.thread_id}
    bags = Bags()
    if change.run_metadata is not None and run_id is not None:
        bags.run = _merge(
            c, q.run_metadata, q.set_run_metadata, change.run_metadata, **scope, run=run_id
        )
        if bags.run is None:
            raise ThreadNotFound(key.thread_id)
    if thread and change.thread_metadata is not None:
        bags.thread = _merge(
            c, q.thread_metadata, q.set_thread_metadata, change.thread_metadata, **scope
        )
    for message_id, merge in change.message_metadata.items():
        merged = _merge(
            c, q.message_metadata, q.set_message_metadata, merge, **scope, message=message_id
        )
        if merged is None:
            raise no_message(message_id)
        bags.messages[message_id] = merged
    return bags


def update(
    c: Connection, q: Queries, key: ThreadKey, agent: str, change: ThreadChange
) -> tuple[int, Log]:
    """Write a change; returned are the number of the thread's last event, and the events."""
    scope = {"scope": key.partition, "thread": key.thread_id}
    head = q.lock(c, **scope).fetchone()
    if head is None or head[_AGENT] != agent:
        raise ThreadNotFound(key.thread_id)
    if (
        change.run_id is not None
        and q.run_metadata(c, **scope, run=change.run_id).fetchone() is None
    ):
        raise ThreadNotFound(key.thread_id)
    for message_id in change.message_metadata:
        if q.message_metadata(c, **scope, message=message_id).fetchone() is None:
            raise ThreadNotFound(key.thread_id)
    bags = merge_bags(c, q, key, change.run_id, change, thread=False)
    text = head[_METADATA]
    if change.thread_metadata is not None:
        bags.thread = _merged(text, change.thread_metadata)
        text = metadata_text(bags.thread.new)
    title, source = head[_TITLE], head[_SOURCE]
    if change.title is not None:
        title, source = plain(change.title), change.title_source
    events = change_events(change, bags)
    log = Log(events, body_of(events))
    last: int = q.tell(
        c, **scope, new_title=title, new_source=source, new_metadata=text, n_events=log.size
    ).fetchone()[0]
    write_log(c, q, key, change.run_id or "", last, log.size, log.body)
    return last, log


def delete(
    c: Connection,
    q: Queries,
    key: ThreadKey,
    agent: str,
    children: Sequence[tuple[ThreadKey, str]] = (),
) -> ThreadRecord | None:
    scope = {"scope": key.partition, "thread": key.thread_id}
    row = q.delete(c, **scope, of_agent=agent).fetchone()
    if row is None:
        return None
    # Records have no foreign key, since some are of no thread.
    q.forget_records(c, **scope)
    for child, of_agent in children:
        delete(c, q, child, of_agent)
    return head_from_row(key, row)


def head(c: Connection, q: Queries, key: ThreadKey) -> ThreadRecord | None:
    row = q.head(c, scope=key.partition, thread=key.thread_id).fetchone()
    return None if row is None else head_from_row(key, row)


def latest(c: Connection, q: Queries, key: ThreadKey) -> Latest:
    def id_of(statement: Statement) -> Any:
        row = statement(c, scope=key.partition, thread=key.thread_id).fetchone()
        return None if row is None else row[0]

    return Latest(id_of(q.latest_run), id_of(q.latest_message))
