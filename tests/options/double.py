"""A double of a provider below the drivers: it keeps each body, to the byte, and plays replies."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import httpx2

from pai.models import OpenAIChat, OpenAIResponses

from ..models.chat_cases import CALLED, CHAT, call
from ..models.edge_server import Reply, stream
from ..models.responses_cases import CREATED, RESPONSES, USAGE, ended, function

__all__ = ("FOREIGN", "OWN", "Cls", "Double", "adding", "saying")

Cls = type[OpenAIChat | OpenAIResponses]
OWN = "https://api.openai.com/v1"
FOREIGN = "http://127.0.0.1:1/v1"


def saying(cls: Cls) -> Reply:
    """A step that says `ab`."""
    return stream(*(CHAT if cls is OpenAIChat else RESPONSES)["text"].events)


def adding(cls: Cls, arguments: str = '{"a": 1}') -> Reply:
    """A step that calls `add`."""
    if cls is OpenAIChat:
        return stream(call(arguments, call_id="1", name="add"), *CALLED)
    return stream(CREATED, *function("add", arguments), ended(usage=USAGE))


class Double(httpx2.AsyncBaseTransport):
    """
    Plays one reply after another, and keeps what it was asked.

    Args:
        replies: In order; the last one again and again.
    """

    def __init__(self, replies: Sequence[Reply]) -> None:
        self._replies = replies
        self.raw: list[bytes] = []

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [json.loads(body) for body in self.raw]

    @property
    def wrap(self) -> Callable[[Any], Any]:
        """What *wrap_transport* takes."""
        return lambda inner: self

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        reply = self._replies[min(len(self.raw), len(self._replies) - 1)]
        self.raw.append(await request.aread())
        return httpx2.Response(reply.status, headers=reply.headers, content=b"".join(reply.pieces))
