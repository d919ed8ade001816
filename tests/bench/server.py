"""
A fake model server on loopback: `/v1/chat/completions` and `/v1/responses`, streamed.

A bare protocol with replies rendered beforehand, so that it is not the bottleneck. The name of
the model says what comes back, ``fake-CHUNKS[-text][-latMS][-gapMS]``: so many pieces of text;
``-text``: never a tool call; ``-lat20``: 20 ms before the first byte; ``-gap5``: 5 ms between
pieces (else the whole stream goes out at once). A request with tools whose last message is of
the user is answered with a call of ``add(2, 3)``, any other with text.

``python -m bench.server`` prints the port it listens on.
"""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Sequence
from typing import cast

from .replies import MARK, render, render_joined

MODEL = re.compile(rb'"model"\s*:\s*"(fake-(\d+)(-text)?(?:-lat(\d+))?(?:-gap(\d+))?)"')
LAST = re.compile(rb'"(?:role|type)"\s*:\s*"(user|tool|assistant|function_call_output)"')
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 2\r\n\r\n{}"


class Http(asyncio.Protocol):
    """One connection, with as many requests as its client likes."""

    served = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self.transport = cast(asyncio.Transport, transport)
        self.buffer = bytearray()
        self.needed = 0

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while self.buffer and len(self.buffer) >= self.needed:
            head = self.buffer.find(b"\r\n\r\n")
            if head < 0:
                return
            length = LENGTH.search(self.buffer[:head])
            self.needed = head + 4 + (int(length[1]) if length else 0)
            if len(self.buffer) < self.needed:
                return
            line = bytes(self.buffer[: self.buffer.find(b"\r\n")])
            body = bytes(self.buffer[head + 4 : self.needed])
            del self.buffer[: self.needed]
            self.needed = 0
            self.reply(line, body)

    def reply(self, line: bytes, body: bytes) -> None:
        model = MODEL.search(body)
        api = {b"/v1/responses": "responses", b"/v1/chat/completions": "chat"}.get(line.split()[1])
        if model is None or api is None:
            self.transport.write(NOT_FOUND)
            return
        last = (LAST.findall(body[-4096:]) or LAST.findall(body))[-1:]
        answered = last in ([b"tool"], [b"function_call_output"])
        tool = not model[3] and b'"tools"' in body and not answered
        key = (api, model[1].decode(), int(model[2]), tool)
        Http.served += 1
        unique = b"%07d" % Http.served
        latency, gap = int(model[4] or 0) / 1000, int(model[5] or 0) / 1000
        loop = asyncio.get_running_loop()
        if gap:
            # What comes before the first piece of text goes out with it.
            lead = 4 if api == "responses" else 2
            parts = [part.replace(MARK, unique) for part in render(*key)]
            self.task = loop.create_task(self.drip(parts, lead, latency, gap))
        elif latency:
            answer = render_joined(*key).replace(MARK, unique)
            loop.call_later(latency, self.transport.write, answer)
        else:
            self.transport.write(render_joined(*key).replace(MARK, unique))

    async def drip(self, parts: Sequence[bytes], lead: int, latency: float, gap: float) -> None:
        await asyncio.sleep(latency)
        self.transport.write(b"".join(parts[:lead]))
        for part in parts[lead:]:
            await asyncio.sleep(gap)
            if self.transport.is_closing():
                return
            self.transport.write(part)


async def serve(port: int) -> None:
    """Serve until the process is ended; port 0 takes a free one."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Http, "127.0.0.1", port, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main() -> None:
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    try:
        import uvloop
    except ImportError:  # slower, and good enough to try an adapter
        asyncio.run(serve(port))
    else:
        uvloop.run(serve(port))


if __name__ == "__main__":
    main()
