"""The index: documents go in, passages come out."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from pai import DefinitionError, Fault, InvalidInput, StoreError
from pai_rag._changes import Changes
from pai_rag._document import Change, Document, Gone, Known, Seen, Stamp
from pai_rag._key import check_key, text_fault
from pai_rag._record import Record, record_of
from pai_rag._searcher import Searcher, searcher_for
from pai_rag._terms import terms_of

if TYPE_CHECKING:
    from pai_rag._folder import FolderFile
    from pai_rag._passage import Passage

__all__ = ("DEFAULT_URL", "Index")

DEFAULT_URL = "sqlite:///pai-rag.db"
_SMALLEST = 100
_NO_FILE = Stamp()


class Index:
    """
    Full-text search over folders and records, each partition for itself.

    Its methods block, and may be called from several threads, one of which works at a time; beside
    an event loop use a worker thread, as :meth:`asearch` does. Each call of a method that changes
    something is one transaction.

    Args:
        url: ``sqlite:///file.db``, a file of its own, or ``postgresql://...``, where it has the
            schema ``pai_rag``.
        chunk: Characters a passage has at most. Another size than before cuts documents anew when
            they are indexed again.
        searcher: The database, in place of the one that *url* names.

    Raises:
        DefinitionError: The URL is not right, or its driver is not installed.
    """

    def __init__(
        self, url: str = DEFAULT_URL, *, chunk: int = 1200, searcher: Searcher | None = None
    ) -> None:
        if chunk < _SMALLEST:
            fault = Fault("chunk", f"expected at least {_SMALLEST} characters")
            raise DefinitionError([fault], subject="index")
        self._chunk: Final = chunk
        self._searcher: Final = searcher or searcher_for(url)
        self._lock: Final = threading.Lock()
        self._is_open = False

    def open(self, *, create: bool = True) -> bool:
        """
        Get ready.

        Args:
            create: Make the index if there is none.

        Returns:
            Whether there is one now; if not, nothing is open.

        Raises:
            StoreError: The database can't be reached, or holds something else.
        """
        with self._lock:
            self._is_open = self._searcher.open(create=create)
            return self._is_open

    def close(self) -> None:
        """Let go of the database."""
        with self._lock:
            self._is_open = False
            self._searcher.close()

    def __enter__(self) -> Self:
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def add_folder(
        self,
        path: str | PathLike[str],
        *,
        partition: str = "default",
        name: str | None = None,
        exclude: Iterable[str] = (),
    ) -> Changes:
        """
        Index the Markdown, HTML and text files in a folder and below.

        Done again, it reads only files with another size or time than before, cuts only those with
        other content, and removes those that are gone.

        Args:
            path: The folder.
            partition: Who finds it.
            name: What it is called in the index; its absolute path if nothing is said. The same
                name again means the same folder, wherever it lies by now.
            exclude: Patterns of files and folders to leave out, by name (``_build``) or by path
                within the folder (``old/*``). Hidden ones are left out anyway.

        Raises:
            InvalidInput: There is no such folder.
            OSError: Something in it can't be read.
            StoreError: The database failed. In each case nothing was changed.
        """
        from pai_rag._folder import folder_files

        partition = check_key(partition, "partition")
        folder = check_key(str(Path(path).resolve()) if name is None else name, "name")
        files = list(folder_files(Path(path), exclude))
        done = Changes()
        with self._lock:
            known = self._opened.known(partition, folder)
            changes = self._folder_changes(files, known, done)
            self._opened.write(partition, folder, changes)
        return done

    def remove_folder(self, name: str | PathLike[str], *, partition: str = "default") -> Changes:
        """
        Remove all that was indexed of a folder; on the disk it may be gone.

        Args:
            name: The folder's name in the index, else its path.
            partition: Where.
        """
        partition = check_key(partition, "partition")
        with self._lock:
            folder = str(name)
            known = self._opened.known(partition, folder)
            if not known:
                folder = str(Path(name).resolve())
                known = self._opened.known(partition, folder)
            self._opened.write(partition, folder, map(Gone, known))
        return Changes(removed=len(known))

    def add(
        self,
        records: Iterable[Record | Mapping[str, object]],
        *,
        partition: str = "default",
    ) -> Changes:
        """
        Index records; one whose id is known takes the place of the former.

        Args:
            records: Records, or mappings with their fields.
            partition: Who finds them.

        Raises:
            InvalidInput: Some are no records; nothing was changed.
            StoreError: The database failed; nothing was changed.
        """
        partition = check_key(partition, "partition")
        faults: list[Fault] = []
        given = [record_of(item, f"records[{at}]", faults) for at, item in enumerate(records)]
        if faults:
            raise InvalidInput(faults, subject="index")
        # Of two with one id the later one counts.
        by_id = {record.id: record for record in given if record is not None}
        done = Changes()
        with self._lock:
            known = self._opened.known(partition, "", list(by_id))
            self._opened.write(partition, "", self._record_changes(by_id, known, done))
        return done

    def remove(self, ids: Iterable[str], *, partition: str = "default") -> Changes:
        """
        Remove records. Nothing of their text is left in the database.

        Args:
            ids: Ids of records; unknown ones are no mistake.
            partition: Where.
        """
        partition = check_key(partition, "partition")
        named = [id for id in dict.fromkeys(ids) if text_fault(id) is None]
        with self._lock:
            known = self._opened.known(partition, "", named)
            self._opened.write(partition, "", map(Gone, known))
        return Changes(removed=len(known))

    def search(self, query: str, limit: int = 5, *, partition: str = "default") -> list[Passage]:
        """
        The passages that fit *query* best.

        Args:
            query: What somebody asks, in plain words: no part of it is taken for syntax.
            limit: At most so many.
            partition: Where to look.
        """
        partition = check_key(partition, "partition")
        if limit < 1:
            raise InvalidInput([Fault("limit", "expected at least 1")], subject="search")
        terms = terms_of(query)
        with self._lock:
            return self._opened.search(partition, terms, limit)

    async def asearch(
        self, query: str, limit: int = 5, *, partition: str = "default"
    ) -> list[Passage]:
        """Search in a worker thread."""
        from functools import partial

        from pai_rag._threads import in_thread

        return await in_thread(partial(self.search, query, limit, partition=partition))

    @property
    def _opened(self) -> Searcher:
        if not self._is_open:
            raise StoreError("the index is not open: call open(), or use it in a with statement")
        return self._searcher

    def _folder_changes(
        self, files: list[FolderFile], known: dict[str, Known], done: Changes
    ) -> Iterator[Change]:
        """What to change for *files*; they are read as the changes are asked for."""
        from pai_rag._folder import Unreadable

        left = dict(known)
        for file in files:
            before = left.get(file.id)
            made = self._made(file.media_type)
            if before and before.digest.startswith(made) and file.is_as(before.stamp):
                del left[file.id]
                done.unchanged += 1
                continue
            try:
                if text_fault(file.id):
                    raise Unreadable("has a name that is no Unicode text")
                text = file.read()
            except Unreadable as error:
                done.skipped[file.id] = str(error)
                continue
            except FileNotFoundError:
                continue
            left.pop(file.id, None)
            digest = made + _digest(text)
            if before and before.digest == digest:
                done.unchanged += 1
                yield Seen(file.id, file.stamp)
                continue
            _count(done, before)
            yield self._document(file.id, digest, text, file.media_type, stamp=file.stamp)
        done.removed = len(left)
        yield from map(Gone, left)

    def _record_changes(
        self, records: Mapping[str, Record], known: Mapping[str, Known], done: Changes
    ) -> Iterator[Change]:
        for record in records.values():
            before = known.get(record.id)
            digest = self._made(record.media_type) + _digest(
                record.text, record.title or "", record.url or ""
            )
            if before and before.digest == digest:
                done.unchanged += 1
                continue
            _count(done, before)
            yield self._document(
                record.id, digest, record.text, record.media_type, record.title, record.url
            )

    def _made(self, media_type: str) -> str:
        """How passages are made: the first part of each digest."""
        from pai_rag._chunks import VERSION

        return f"{VERSION}:{self._chunk}:{media_type}:"

    def _document(
        self,
        id: str,
        digest: str,
        text: str,
        media_type: str,
        title: str | None = None,
        url: str | None = None,
        stamp: Stamp = _NO_FILE,
    ) -> Document:
        from pai_rag._chunks import passages_of

        passages = [
            # A passage without headings goes by its document's name.
            (above or title or id, piece)
            for above, piece in passages_of(text, media_type, size=self._chunk, title=title)
        ]
        return Document(id, Known(digest, stamp), media_type, url, tuple(passages))


def _digest(*texts: str) -> str:
    digest = hashlib.sha256()
    for text in texts:
        data = text.encode()
        digest.update(b"%d:" % len(data) + data)
    return digest.hexdigest()


def _count(done: Changes, before: Known | None) -> None:
    if before is None:
        done.added += 1
    else:
        done.changed += 1
