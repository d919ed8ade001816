"""Wrappers around the client's HTTP transport (O-24)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2

from pai.errors import DefinitionError, Fault

if TYPE_CHECKING:
    from pai.protocol import WrapTransport

__all__ = ("wrap",)


class _Plain(httpx2.AsyncBaseTransport):
    """Through the plain client: its connections and proxies. Closing this closes nothing."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._client.send(request, stream=True, auth=None, follow_redirects=False)


def wrap(
    client: httpx2.AsyncClient, wrappers: tuple[WrapTransport, ...]
) -> httpx2.AsyncBaseTransport:
    """
    The way through a plain client, with wrappers around it, outermost first.

    Raises:
        DefinitionError: A wrapper gave something else than a transport.
    """
    transport: Any = _Plain(client)
    for wrapper in reversed(wrappers):
        make: Any = wrapper
        transport = make(transport)
        if not isinstance(transport, httpx2.AsyncBaseTransport):
            told = f"gave a {type(transport).__name__}: expected an httpx2.AsyncBaseTransport"
            raise DefinitionError([Fault("wrap_transport", told)], subject="model")
    wrapped: httpx2.AsyncBaseTransport = transport
    return wrapped
