"""
A hold on a SQLite file that another SQLite library in this process cannot loosen.

SQLite's locks belong to the process. A second library (Python's own beside pysqlite3) does not see
the first one's, drops them when it closes the file, takes itself for the last user, and deletes the
write-ahead log: all that was committed to it since is lost. Linux has locks that belong to the open
file instead. Held shared where each connection holds its own, they tell everybody that the file is
in use, and nothing else.
"""

from __future__ import annotations

import contextlib
import os
import struct
import sys
import threading
from pathlib import Path
from typing import ClassVar

__all__ = ("Guard",)

_SHARED = (0x40000002, 510)
"""Start and length of the bytes of the file on which each connection has a shared lock."""
_IN_USE = (128, 1)
"""The byte of the shared memory that says that somebody uses it."""


class Guard:
    """
    The hold of one store; those of a process on one file share it.

    Take it while a connection is open that has read in WAL mode. Where the system has no such locks
    it does nothing.

    Args:
        path: The database file.
    """

    # Closing any handle of a file drops the process's own locks on it, so that there is one for
    # all, and it is closed when no store has a connection.
    _files: ClassVar[dict[tuple[int, int], _Files]] = {}
    _changing: ClassVar = threading.Lock()

    def __init__(self, path: Path) -> None:
        found = path.stat()
        self._key = (found.st_dev, found.st_ino)
        with self._changing:
            files = self._files.get(self._key)
            if files is None:
                files = self._files[self._key] = _Files(path)
            files.users += 1

    def loosen(self) -> None:
        """Let SQLite see, if this is the last store here, that its last connection closes."""
        with self._changing:
            files = self._files[self._key]
            if files.users == 1:
                files.hold(on=False)

    def close(self) -> None:
        """Let go, when the store's connections are closed."""
        with self._changing:
            files = self._files[self._key]
            files.users -= 1
            if files.users:
                # One may have come while this one was closing.
                files.hold(on=True)
            else:
                del self._files[self._key]
                files.close()


class _Files:
    """The handles of a database's files."""

    def __init__(self, path: Path) -> None:
        self.users = 0
        self._places: list[tuple[int, tuple[int, int]]] = []
        for name, place in ((path.name, _SHARED), (f"{path.name}-shm", _IN_USE)):
            with contextlib.suppress(OSError):
                self._places.append((os.open(path.with_name(name), os.O_RDWR), place))
        self.hold(on=True)

    def hold(self, *, on: bool) -> None:
        for file, place in self._places:
            # Some file systems have no such locks.
            with contextlib.suppress(OSError):
                _lock(file, place, on=on)

    def close(self) -> None:
        for file, _ in self._places:
            os.close(file)


if sys.platform == "linux" and struct.calcsize("P") == 8:
    import fcntl

    def _lock(file: int, place: tuple[int, int], *, on: bool) -> None:
        kind = fcntl.F_RDLCK if on else fcntl.F_UNLCK
        fcntl.fcntl(file, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", kind, 0, *place, 0))

else:

    def _lock(file: int, place: tuple[int, int], *, on: bool) -> None:
        # Windows locks by handle, so that two libraries see each other; others cannot be helped.
        return
