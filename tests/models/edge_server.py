"""A raw local server which plays whatever a case says, to the byte and to the cut."""

from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal

import attrs

End = Literal["whole", "cut", "hang", "silent"]


@attrs.frozen
class Reply:
    """
    What the server sends.

    Args:
        pieces: The body, one HTTP chunk each.
        end: ``whole`` ends the body; ``cut`` breaks the connection after the pieces, ``hang`` keeps
            it open until the client leaves; ``silent`` breaks it before the first byte.
    """

    pieces: tuple[bytes, ...] = ()
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=lambda: {"content-type": "text/event-stream"})
    end: End = "whole"


@attrs.frozen
class Request:
    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class EdgeServer(socketserver.ThreadingTCPServer):
    """
    Answers each request with the reply named by its ``model``; keeps what it was asked.

    Args:
        replies: By model.
    """

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, replies: Mapping[str, Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = dict(replies)
        self.requests: list[Request] = []
        self.connections = 0
        self._left = threading.Semaphore(0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def play(self, reply: Reply, model: str = "m") -> str:
        self.replies[model] = reply
        return model

    def left(self) -> None:
        """Wait until a client has left a hanging reply."""
        assert self._left.acquire(timeout=10), "nobody left"


class _Handler(socketserver.BaseRequestHandler):
    server: EdgeServer

    def handle(self) -> None:
        self.server.connections += 1
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        file = self.request.makefile("rb")
        try:
            while self._one(file):
                pass
        except OSError:
            pass  # the client is gone

    def _one(self, file) -> bool:
        line = file.readline()
        if not line.strip():
            return False
        headers: dict[str, str] = {}
        while (text := file.readline().decode().strip()) != "":
            name, _, value = text.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
        request = Request(line.split()[1].decode(), headers, body)
        self.server.requests.append(request)
        reply = self.server.replies[request.json["model"]]
        if reply.end == "silent":
            return False
        head = f"HTTP/1.1 {reply.status} X\r\ntransfer-encoding: chunked\r\n"
        head += "".join(f"{name}: {value}\r\n" for name, value in reply.headers.items())
        self.request.sendall(head.encode() + b"\r\n")
        for piece in reply.pieces:
            if piece:
                self.request.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
        if reply.end == "hang":
            while self.request.recv(4096):
                pass
            self.server._left.release()
        if reply.end != "whole":
            return False
        self.request.sendall(b"0\r\n\r\n")
        return True


@contextmanager
def edge_server(replies: Mapping[str, Reply] | None = None) -> Iterator[EdgeServer]:
    with EdgeServer(replies or {}) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def sse(*events: object, names: bool = False, newline: str = "\n") -> bytes:
    """Events as the wire has them; a string goes as it is."""
    out = []
    for event in events:
        if names and isinstance(event, dict) and "type" in event:
            out.append(f"event: {event['type']}\n")
        data = event if isinstance(event, str) else json.dumps(event)
        out.append(f"data: {data}\n\n")
    return "".join(out).replace("\n", newline).encode()


def stream(*events: object, end: End = "whole", names: bool = False) -> Reply:
    """A reply with one HTTP chunk an event."""
    return Reply(tuple(sse(event, names=names) for event in events), end=end)


def refusal(status: int, error: object, **headers: str) -> Reply:
    """An error reply with a JSON body."""
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(
        (json.dumps(error).encode(),), status, {"content-type": "application/json", **given}
    )
