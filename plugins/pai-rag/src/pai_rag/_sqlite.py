"""SQLite: full-text search by FTS5, in a file of its own."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from pai import StoreError
from pai_rag._document import Change, Document, Gone, Known, Seen, Stamp
from pai_rag._passage import Passage

__all__ = ("SqliteSearcher", "default_driver")

_APPLICATION = 0x70616972
_VERSION = 1

_SAFE_WAL = (3, 51, 3)
"""The first version whose WAL cannot be corrupted by two that write at once."""

_SECURE_DELETE = (3, 42, 0)
"""The first version whose FTS5 can take a deleted word out of its index at once."""

# Passages carry their partition twice: as text, which every query compares, and as a word of the
# full-text index, so that a search walks through its own partition only. It is made of digits
# since a tokenizer leaves those alone.
_TABLES = (
    """
    CREATE TABLE document (
        partition TEXT NOT NULL,
        folder TEXT NOT NULL,
        id TEXT NOT NULL,
        digest TEXT NOT NULL,
        size INTEGER NOT NULL,
        modified INTEGER NOT NULL,
        read INTEGER NOT NULL,
        media_type TEXT NOT NULL,
        url TEXT,
        PRIMARY KEY (partition, folder, id)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE passage (
        row INTEGER PRIMARY KEY,
        partition TEXT NOT NULL,
        folder TEXT NOT NULL,
        document TEXT NOT NULL,
        number INTEGER NOT NULL,
        scope TEXT NOT NULL,
        title TEXT NOT NULL,
        text TEXT NOT NULL,
        UNIQUE (partition, folder, document, number)
    )
    """,
    """
    CREATE VIRTUAL TABLE words USING fts5 (
        scope, title, text,
        content = 'passage', content_rowid = 'row',
        tokenize = 'porter unicode61 remove_diacritics 2'
    )
    """,
    """
    CREATE TRIGGER passage_added AFTER INSERT ON passage BEGIN
        INSERT INTO words (rowid, scope, title, text)
        VALUES (new.row, new.scope, new.title, new.text);
    END
    """,
    """
    CREATE TRIGGER passage_removed AFTER DELETE ON passage BEGIN
        INSERT INTO words (words, rowid, scope, title, text)
        VALUES ('delete', old.row, old.scope, old.title, old.text);
    END
    """,
    f"PRAGMA application_id = {_APPLICATION}",
    f"PRAGMA user_version = {_VERSION}",
)
_SEARCH = """
    SELECT passage.document, passage.number, passage.title, passage.text, document.media_type,
        passage.folder, document.url, -bm25(words, 0.0, 4.0, 1.0) AS score
    FROM words
    JOIN passage ON passage.row = words.rowid
    JOIN document ON document.partition = passage.partition
        AND document.folder = passage.folder AND document.id = passage.document
    WHERE words MATCH ? AND passage.partition = ?
    ORDER BY score DESC, passage.row
    LIMIT ?
"""
_KNOWN = "SELECT id, digest, size, modified, read FROM document WHERE partition = ? AND folder = ?"


def default_driver() -> Any:
    """The module to talk to SQLite with: pysqlite3 brings a newer one than most Pythons have."""
    try:
        from pysqlite3 import dbapi2
    except ImportError:
        import sqlite3

        return sqlite3
    return dbapi2


class SqliteSearcher:
    """
    A :class:`~pai_rag.Searcher` on a SQLite file.

    Args:
        path: The file; its folder exists.
        driver: ``pysqlite3.dbapi2`` or ``sqlite3``.
    """

    def __init__(self, path: str, driver: Any = None) -> None:
        self._path = Path(path)
        self._driver: Any = driver or default_driver()
        self._connection: Any = None

    def open(self, *, create: bool) -> bool:
        if self._connection is not None:
            return True
        with self._errors():
            if not create and not self._path.exists():
                return False
            self._connection = self._connect(create=create)
            try:
                found = self._prepare(create=create)
            except BaseException:
                self.close()
                raise
        if not found:
            self.close()
        return found

    def _connect(self, *, create: bool) -> Any:
        path = self._path.absolute()
        mode = "mode=rwc" if create else "mode=rw"
        if not create and not os.access(path.parent, os.W_OK):
            # Nobody writes here, and the files that WAL needs cannot be made.
            mode = "mode=ro&immutable=1"
        connection = self._driver.connect(
            f"{path.as_uri()}?{mode}",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA busy_timeout = 30000")
        # Pages that are given back are overwritten: what is deleted is not in the file.
        connection.execute("PRAGMA secure_delete = ON")
        return connection

    def _prepare(self, *, create: bool) -> bool:
        """Check that the file is an index, or make it one; whether it is."""
        # All that is looked at is of one moment: somebody may be making the tables.
        with self._transaction("DEFERRED"):
            found = self._is_index()
        if found:
            return True
        if not create:
            return False
        safe = self._driver.sqlite_version_info >= _SAFE_WAL
        self._connection.execute(f"PRAGMA journal_mode = {'WAL' if safe else 'DELETE'}")
        with self._transaction():
            # Another process may have been faster.
            if not self._is_index():
                for statement in _TABLES:
                    self._connection.execute(statement)
                if self._driver.sqlite_version_info >= _SECURE_DELETE:
                    self._connection.execute(
                        "INSERT INTO words (words, rank) VALUES ('secure-delete', 1)"
                    )
        return True

    def _is_index(self) -> bool:
        """
        Whether it is an index; an empty file is none.

        Raises:
            StoreError: It is something else.
        """
        application = self._value("PRAGMA application_id")
        version = self._value("PRAGMA user_version")
        if application == _APPLICATION and version == _VERSION:
            return True
        if application == _APPLICATION:
            raise StoreError(
                f"{self._path.name} is an index of version {version}, and this is {_VERSION}:"
                " delete the file and index again"
            )
        if application or self._value("SELECT count(*) FROM sqlite_master"):
            raise StoreError(
                f"{self._path.name} is another program's database: an index has a file of its own"
            )
        return False

    def _value(self, statement: str) -> Any:
        return self._connection.execute(statement).fetchone()[0]

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def known(
        self, partition: str, folder: str, ids: Sequence[str] | None = None
    ) -> dict[str, Known]:
        run = self._connection.execute
        with self._errors():
            if ids is None:
                rows = run(_KNOWN, (partition, folder)).fetchall()
            else:
                each = f"{_KNOWN} AND id = ?"
                rows = [row for id in ids for row in run(each, (partition, folder, id)).fetchall()]
        return {id: Known(digest, Stamp(*stamp)) for id, digest, *stamp in rows}

    def write(self, partition: str, folder: str, changes: Iterable[Change]) -> None:
        deleted = 0
        with self._errors(), self._transaction():
            for change in changes:
                key = (partition, folder, change.id)
                if isinstance(change, Seen):
                    stamp = change.stamp
                    self._connection.execute(
                        "UPDATE document SET size = ?, modified = ?, read = ?"
                        " WHERE partition = ? AND folder = ? AND id = ?",
                        (stamp.size, stamp.modified, stamp.read, *key),
                    )
                    continue
                deleted += self._delete(key)
                if not isinstance(change, Gone):
                    self._insert(key, change)
            if deleted and self._driver.sqlite_version_info < _SECURE_DELETE:
                # Without it deleted words stay in the index, marked, until it is merged.
                self._connection.execute("INSERT INTO words (words) VALUES ('optimize')")
        if deleted:
            with self._errors():
                # Nor shall they stay in the log; where somebody is reading it, the next one cuts it.
                self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _delete(self, key: tuple[str, str, str]) -> int:
        removed = self._connection.execute(
            "DELETE FROM passage WHERE partition = ? AND folder = ? AND document = ?", key
        ).rowcount
        self._connection.execute(
            "DELETE FROM document WHERE partition = ? AND folder = ? AND id = ?", key
        )
        return int(removed)

    def _insert(self, key: tuple[str, str, str], document: Document) -> None:
        known, stamp = document.known, document.known.stamp
        self._connection.execute(
            "INSERT INTO document VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        scope = _scope(key[0])
        self._connection.executemany(
            "INSERT INTO passage (partition, folder, document, number, scope, title, text)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (*key, number, scope, title, text)
                for number, (title, text) in enumerate(document.passages)
            ],
        )

    def search(self, partition: str, terms: Sequence[str], limit: int) -> list[Passage]:
        if not terms:
            return []
        # Within quotes nothing is syntax, and terms hold no quotes.
        words = " OR ".join([f'"{term}"' for term in terms])
        match = f'scope : "{_scope(partition)}" AND {{title text}} : ({words})'
        with self._errors():
            rows = self._connection.execute(_SEARCH, (match, partition, limit)).fetchall()
        return [Passage(*row) for row in rows]

    @contextlib.contextmanager
    def _transaction(self, kind: Literal["DEFERRED", "IMMEDIATE"] = "IMMEDIATE") -> Iterator[None]:
        self._connection.execute(f"BEGIN {kind}")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    @contextlib.contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except self._driver.Error as error:
            raise StoreError(f"the index {self._path.name} cannot be used: {error}") from error


def _scope(partition: str) -> str:
    return str(int.from_bytes(hashlib.sha256(partition.encode()).digest()[:16]))
