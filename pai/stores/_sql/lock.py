"""
A lock beside a SQLite file, for what SQLite itself cannot be trusted with.

Up to 3.51.2 two connections that write or checkpoint at the same moment can corrupt a file in WAL
mode. A process with such a SQLite takes the lock for itself alone, one with a newer SQLite shares
it, so an old one never meets another.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

__all__ = ("FileLock",)


class FileLock:
    """
    A lock that ends with the process.

    Args:
        path: The lock's file; made if it is missing.
        alone: Nobody else may have it.

    Raises:
        BlockingIOError: Another has it.
        OSError: The file cannot be made.
    """

    def __init__(self, path: Path, *, alone: bool) -> None:
        self._path = path
        self._made = not path.exists()
        # Not the database's own file: closing any handle of it would drop SQLite's locks.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _take(self._file, alone=alone)
        except BaseException:
            os.close(self._file)
            raise

    def release(self, *, forget: bool = False) -> None:
        """Let go; *forget* also removes the file, if it was made for this lock."""
        if forget and self._made:
            with contextlib.suppress(OSError):
                self._path.unlink()
        os.close(self._file)


if sys.platform == "win32":
    import msvcrt

    def _take(file: int, *, alone: bool) -> None:
        # There are no shared locks here, so only old ones keep away from each other.
        if alone:
            try:
                msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
            except PermissionError as error:
                raise BlockingIOError from error

else:
    import fcntl

    def _take(file: int, *, alone: bool) -> None:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | fcntl.LOCK_NB)
