"""The body of a request, as it came in at the server."""

from __future__ import annotations

import json
from typing import Any

from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai.endpoint import resolve_endpoint
from pai.protocol import Message

from .chat_cases import CHAT
from .edge_server import EdgeServer, stream
from .responses_cases import RESPONSES
from .told import listen, request

__all__ = ("messages_of", "own", "sent")


async def sent(
    cls: type[OpenAIChat | OpenAIResponses], edge: EdgeServer, *messages: Message, **fields: Any
) -> Any:
    """The body of a request to a compatible server, as it came in."""
    case = (CHAT if cls is OpenAIChat else RESPONSES)["text"]
    driver = cls(edge.play(stream(*case.events)), base_url=edge.url)
    await listen(driver, request(driver, *messages, **fields))
    return edge.requests[-1].json


def own(driver: OpenAIChat | OpenAIResponses, **fields: Any) -> Any:
    """The body of a request to OpenAI's own service, which is not asked here."""
    endpoint = resolve_endpoint("https://api.openai.com/v1", "k")
    return json.loads(driver._body(request(driver, **fields), endpoint))


def messages_of(body: Any) -> Any:
    return body["messages"] if "messages" in body else body["input"]
