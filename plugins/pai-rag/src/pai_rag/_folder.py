"""The documents in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import attrs

from pai import Fault, InvalidInput
from pai_rag._document import Stamp

__all__ = ("FolderFile", "Unreadable", "folder_files")

MEDIA_TYPES = {
    ".htm": "text/html",
    ".html": "text/html",
    ".markdown": "text/markdown",
    ".md": "text/markdown",
    ".text": "text/plain",
    ".txt": "text/plain",
}
_LARGEST = 10_000_000

# A file may be written twice within one tick of its file system's clock: one that had been written
# just before it was read may be another one by now, with the same time.
_TICK = 2_000_000_000


class Unreadable(Exception):
    """A file that is no document; the text says why."""


@attrs.frozen
class FolderFile:
    """
    A file that may be indexed.

    Args:
        id: Its path within the folder, with slashes.
        path: Where it is.
        media_type: By its suffix.
        stamp: How it looks, and the time of this look.
    """

    id: str
    path: Path
    media_type: str
    stamp: Stamp

    def is_as(self, stamp: Stamp) -> bool:
        """Whether it is certainly the file that was read when *stamp* was made."""
        mine = self.stamp
        same = (mine.size, mine.modified) == (stamp.size, stamp.modified)
        return same and stamp.modified + _TICK < stamp.read

    def read(self) -> str:
        """
        Its text.

        Raises:
            Unreadable: It is too large, or is no UTF-8.
            FileNotFoundError: It was there a moment ago.
        """
        if self.stamp.size > _LARGEST:
            raise Unreadable(f"has {self.stamp.size} bytes; at most {_LARGEST} are read")
        try:
            return self.path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise Unreadable("is no UTF-8") from None


def folder_files(folder: Path, exclude: Iterable[str] = ()) -> Iterator[FolderFile]:
    """
    The Markdown, HTML and text files in *folder* and below, ordered by path.

    Hidden files and folders are left out, as are symbolic links to folders and to files outside.

    Args:
        folder: The folder.
        exclude: Patterns of files and folders that are left out, by name (``_build``, ``*.txt``) or
            by path within the folder (``old/*``).

    Raises:
        InvalidInput: There is no such folder.
        OSError: A folder below cannot be read: its files must not be taken for gone.
    """
    if not folder.is_dir():
        raise InvalidInput([Fault("folder", f"there is no folder {folder}")], subject="index")
    root = folder.resolve()
    patterns = (".*", *exclude)
    for place, folders, names in os.walk(root, onerror=_raise):
        inside = Path(place).relative_to(root)
        folders[:] = sorted([name for name in folders if not _fits(inside / name, patterns)])
        for name in sorted(names):
            path = Path(place, name)
            media_type = MEDIA_TYPES.get(path.suffix.lower())
            if media_type is None or _fits(inside / name, patterns):
                continue
            if path.is_symlink() and not path.resolve().is_relative_to(root):
                continue
            now = time.time_ns()
            try:
                status = path.stat()
            except FileNotFoundError:  # a link to nothing, or gone by now
                continue
            stamp = Stamp(status.st_size, status.st_mtime_ns, now)
            yield FolderFile(path.relative_to(root).as_posix(), path, media_type, stamp)


def _fits(path: Path, patterns: Sequence[str]) -> bool:
    names = path.name, path.as_posix()
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def _raise(error: OSError) -> None:
    raise error
