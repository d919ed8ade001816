"""
Server-sent events, from the bytes of a socket to the text of each frame.

The client library has its own reader, which makes a typed object of every chunk at several times
the price of reading it (the numbers are in the docs on performance), so only its transport is used.
"""

from __future__ import annotations

__all__ = ("Frames", "data_of")


class Frames:
    """
    Splits what comes from a socket, however it was cut, into frames.

    ``seen`` tells whether any frame came at all.
    """

    __slots__ = ("_pieces", "_rest", "seen")

    def __init__(self) -> None:
        self._rest = b""
        self._pieces: list[bytes] = []
        self.seen = False

    def feed(self, data: bytes) -> list[str]:
        """The frames that are whole now, without their closing blank line."""
        if b"\n" not in data and b"\r" not in data:
            # An image comes as one frame of megabytes: its pieces are joined once, not at each.
            self._pieces.append(data)
            return []
        if self._rest or self._pieces:
            data = b"".join([self._rest, *self._pieces, data])
            self._rest = b""
            self._pieces.clear()
        if b"\r" in data:
            data = self._newlines(data)
        if not data.endswith(b"\n\n"):
            data, end, rest = data.rpartition(b"\n\n")
            self._rest = rest + self._rest
            if not end:
                return []
        else:
            data = data[:-2]
        self.seen = True
        return data.decode("utf-8", "replace").split("\n\n")

    def end(self) -> str:
        """What was left when the connection closed: a frame without its blank line, or part of one."""
        rest = b"".join([self._rest, *self._pieces])
        return rest.replace(b"\r\n", b"\n").replace(b"\r", b"\n").decode("utf-8", "replace").strip()

    def _newlines(self, data: bytes) -> bytes:
        if data.endswith(b"\r"):
            # Its line feed may be the first byte of what comes next.
            self._rest = b"\r"
            data = data[:-1]
        return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def data_of(frame: str) -> str:
    """The data of a frame, its lines joined; empty for a comment or a frame that has none."""
    lines: list[str] = []
    for line in frame.split("\n"):
        field, _, value = line.partition(":")
        if field == "data":
            lines.append(value.removeprefix(" "))
    return "\n".join(lines)
