"""PostgreSQL: full-text search by tsvector, in a schema of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pai import StoreError
from pai_rag._document import Change, Document, Gone, Known, Seen, Stamp
from pai_rag._passage import Passage

__all__ = ("PostgresSearcher",)

_VERSION = 1
_LOCK = 0x7061695F726167
"""Held while the tables are made: two that make them at once would clash."""

_TABLES = (
    "CREATE SCHEMA IF NOT EXISTS pai_rag",
    f"CREATE TABLE pai_rag.version AS SELECT {_VERSION} AS number",
    """
    CREATE TABLE pai_rag.document (
        partition text NOT NULL,
        folder text NOT NULL,
        id text NOT NULL,
        digest text NOT NULL,
        size bigint NOT NULL,
        modified bigint NOT NULL,
        read bigint NOT NULL,
        media_type text NOT NULL,
        url text,
        PRIMARY KEY (partition, folder, id)
    )
    """,
    """
    CREATE TABLE pai_rag.passage (
        partition text NOT NULL,
        folder text NOT NULL,
        document text NOT NULL,
        number integer NOT NULL,
        title text NOT NULL,
        text text NOT NULL,
        words tsvector NOT NULL GENERATED ALWAYS AS (
            setweight(to_tsvector('english', title), 'A') || to_tsvector('english', text)
        ) STORED,
        PRIMARY KEY (partition, folder, document, number),
        FOREIGN KEY (partition, folder, document)
            REFERENCES pai_rag.document (partition, folder, id) ON DELETE CASCADE
    )
    """,
    "CREATE INDEX passage_words ON pai_rag.passage USING gin (words)",
)
# The words stand between "or"s, each of letters, digits and underscores only.
_SEARCH = """
    SELECT document, number, title, text, media_type, folder, url,
        ts_rank('{0.1, 0.2, 0.4, 1.0}', words, query, 1) AS score
    FROM websearch_to_tsquery('english', %(words)s) AS query,
        pai_rag.passage JOIN pai_rag.document
            USING (partition, folder)
    WHERE document.id = passage.document AND partition = %(partition)s AND words @@ query
    ORDER BY score DESC, folder, document, number
    LIMIT %(limit)s
"""
# Not to_regclass: within a transaction that may not see yet what another one has just made.
_IS_THERE = "SELECT 1 FROM pg_tables WHERE schemaname = 'pai_rag' AND tablename = 'version'"
_KNOWN = (
    "SELECT id, digest, size, modified, read FROM pai_rag.document"
    " WHERE partition = %s AND folder = %s"
)
_SEEN = (
    "UPDATE pai_rag.document SET size = %s, modified = %s, read = %s"
    " WHERE partition = %s AND folder = %s AND id = %s"
)
_DELETE = "DELETE FROM pai_rag.document WHERE partition = %s AND folder = %s AND id = %s"


class PostgresSearcher:
    """
    A :class:`~pai_rag.Searcher` on a PostgreSQL database.

    Args:
        url: Of the database; tables are made in its schema ``pai_rag``.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @staticmethod
    def reads(url: str) -> bool:
        """Whether *url* can be read."""
        try:
            conninfo_to_dict(url)
        except psycopg.ProgrammingError:
            return False
        return True

    def open(self, *, create: bool) -> bool:
        if self._connection is not None:
            return True
        with _errors():
            self._connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
            try:
                found = self._prepare(create=create)
            except BaseException:
                self.close()
                raise
        if not found:
            self.close()
        return found

    def _prepare(self, *, create: bool) -> bool:
        """Check the tables, or make them; whether they are there."""
        if self._is_index():
            return True
        if not create:
            return False
        with self._open.transaction():
            self._open.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            # Another process may have been faster.
            if not self._is_index():
                for statement in _TABLES:
                    self._open.execute(statement)
        return True

    def _is_index(self) -> bool:
        if self._open.execute(_IS_THERE).fetchone() is None:
            return False
        version = self._open.execute("SELECT number FROM pai_rag.version").fetchone()
        if version != (_VERSION,):
            raise StoreError(
                "the schema pai_rag is of another version of pai-rag: drop it and index again"
            )
        return True

    @property
    def _open(self) -> psycopg.Connection[tuple[Any, ...]]:
        assert self._connection is not None
        return self._connection

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def known(
        self, partition: str, folder: str, ids: Sequence[str] | None = None
    ) -> dict[str, Known]:
        with _errors():
            if ids is None:
                rows = self._open.execute(_KNOWN, (partition, folder)).fetchall()
            else:
                some = f"{_KNOWN} AND id = ANY(%s)"
                rows = self._open.execute(some, (partition, folder, list(ids))).fetchall()
        return {id: Known(digest, Stamp(*stamp)) for id, digest, *stamp in rows}

    def write(self, partition: str, folder: str, changes: Iterable[Change]) -> None:
        with _errors(), self._open.transaction(), self._open.cursor() as cursor:
            # Two that write the same documents take turns.
            lock = f"pai_rag {partition}\n{folder}"
            cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (lock,))
            for change in changes:
                key = (partition, folder, change.id)
                if isinstance(change, Seen):
                    stamp = change.stamp
                    cursor.execute(_SEEN, (stamp.size, stamp.modified, stamp.read, *key))
                    continue
                cursor.execute(_DELETE, key)
                if not isinstance(change, Gone):
                    _insert(cursor, key, change)

    def search(self, partition: str, terms: Sequence[str], limit: int) -> list[Passage]:
        if not terms:
            return []
        given = {"words": " or ".join(terms), "partition": partition, "limit": limit}
        with _errors():
            rows = self._open.execute(_SEARCH, given).fetchall()
        return [Passage(*row) for row in rows]


def _insert(
    cursor: psycopg.Cursor[tuple[Any, ...]], key: tuple[str, str, str], document: Document
) -> None:
    known, stamp = document.known, document.known.stamp
    cursor.execute(
        "INSERT INTO pai_rag.document VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s)",
        (
            *key,
            known.digest,
            stamp.size,
            stamp.modified,
            stamp.read,
            document.media_type,
            document.url,
        ),
    )
    cursor.executemany(
        "INSERT INTO pai_rag.passage (partition, folder, document, number, title, text)"
        " VALUES (%s, %s, %s, %s, %s, %s)",
        [(*key, number, title, text) for number, (title, text) in enumerate(document.passages)],
    )


@contextlib.contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        # The driver's text may name hosts, users and values.
        told = f"{type(error).__name__}{f' ({error.sqlstate})' if error.sqlstate else ''}"
        raise StoreError(f"the index in PostgreSQL cannot be used: {told}") from error
