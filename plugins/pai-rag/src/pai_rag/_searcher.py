"""The seam under the index: a database that keeps passages and finds them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pai import DefinitionError, Fault
from pai_rag._document import Change, Known
from pai_rag._passage import Passage

__all__ = ("Searcher", "is_missing", "searcher_for")

_FILE = "sqlite:///"


class Searcher(Protocol):
    """
    Keeps passages, and finds them.

    Guarantees:

    * The partition is part of every key and of every query: nothing of another one is read, counted
      among the results, or changed (R-7).
    * :meth:`write` is one transaction: all of it is there, or nothing.
    * What is gone leaves neither text nor index entries behind.
    * Terms are looked for as words; none is ever taken for the syntax of a query.
    * Errors are :class:`~pai.errors.StoreError`.

    It is synchronous, and used by one thread at a time.
    """

    def open(self, *, create: bool) -> bool:
        """
        Get ready.

        Args:
            create: Make the index if there is none.

        Returns:
            Whether there is an index; if not, nothing is open.

        Raises:
            StoreError: It can't be reached, or it is no index that this version can read.
        """

    def close(self) -> None:
        """Let go of everything; closing twice does no harm."""

    def known(
        self, partition: str, folder: str, ids: Sequence[str] | None = None
    ) -> dict[str, Known]:
        """What is stored of documents, by id: of those named, or of all of the folder."""

    def write(self, partition: str, folder: str, changes: Iterable[Change]) -> None:
        """
        Make all *changes*; they are asked for one by one within the transaction.

        What *changes* raises goes through, and nothing is written.
        """

    def search(self, partition: str, terms: Sequence[str], limit: int) -> list[Passage]:
        """The passages with most of the rarest of *terms*, the best first."""


def searcher_for(url: str) -> Searcher:
    """
    The searcher for ``sqlite:///file.db`` or ``postgresql://...``; nothing is opened.

    Raises:
        DefinitionError: The URL is not right, or the driver is not installed.
    """
    told: str
    if url.startswith(_FILE):
        path = url.removeprefix(_FILE)
        if path and path != ":memory:" and "?" not in path:
            from pai_rag._sqlite import SqliteSearcher

            return SqliteSearcher(path)
        told = "write 'sqlite:///file.db', or 'sqlite:////folder/file.db': an index has a file"
    elif url.startswith(("postgresql://", "postgres://")):
        try:
            from pai_rag._postgres import PostgresSearcher
        except ImportError:
            told = "the driver of PostgreSQL is missing: install pai-rag[postgres]"
        else:
            if PostgresSearcher.reads(url):
                return PostgresSearcher(url)
            # What was given may hold a password.
            told = "cannot be read: write 'postgresql://user:password@host:5432/database'"
    else:
        told = "expected 'sqlite:///file.db' or 'postgresql://...'"
    raise DefinitionError([Fault("index", told)], subject="rag")


def is_missing(url: str) -> bool:
    """Whether the index is certainly not there, as far as that can be told without opening it."""
    return url.startswith(_FILE) and not Path(url.removeprefix(_FILE)).exists()
