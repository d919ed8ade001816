"""
The client library's clients, one for each endpoint and event loop.

A client holds a pool of connections, and a connection belongs to the event loop that opened it.
Drivers of one endpoint share a client, and all of a loop are closed when the loop ends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import cache
from typing import TYPE_CHECKING

from pai.models._openai.endpoint import Endpoint

if TYPE_CHECKING:
    from ssl import SSLContext

    from anyio.lowlevel import RunVar
    from openai import AsyncOpenAI

__all__ = ("shared_client", "warm")

Clients = dict[Endpoint, "AsyncOpenAI"]

_clients: RunVar[tuple[Clients, AsyncGenerator[None, None]]] | None = None


def warm() -> None:
    """Import what a client needs and make one: most of a second, at start-up, in a thread."""
    _client("https://localhost/v1", "none")


@cache
def _certificates() -> SSLContext:
    """Reading them takes 50 ms of the event loop's time, and one set does for all clients."""
    import httpx2

    return httpx2.create_ssl_context()


def _client(base_url: str, api_key: str | None) -> AsyncOpenAI:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    transport = DefaultAsyncHttpxClient(verify=_certificates())
    return AsyncOpenAI(base_url=base_url, api_key=api_key, http_client=transport)


async def shared_client(endpoint: Endpoint) -> AsyncOpenAI:
    """The client for *endpoint* on the running event loop."""
    global _clients
    from anyio.lowlevel import RunVar

    if _clients is None:
        _clients = RunVar("pai.models.openai")
    kept = _clients.get(None)
    if kept is None:
        clients: Clients = {}
        keeper = _keep(clients)
        _clients.set((clients, keeper))
        await anext(keeper)
    else:
        clients = kept[0]
    client = clients.get(endpoint)
    if client is None:
        client = clients[endpoint] = _client(endpoint.base_url, endpoint.api_key)
    return client


async def _keep(clients: Clients) -> AsyncGenerator[None, None]:
    """
    Close the clients when the event loop ends.

    Both asyncio and trio close the generators that are still alive at their end, and nothing else
    tells a library that its loop is about to go.
    """
    try:
        yield
    finally:
        from anyio import CancelScope

        with CancelScope(shield=True):
            for client in clients.values():
                await client.close()
        clients.clear()
