"""
The client library's clients, one for each endpoint and event loop.

A client holds a pool of connections, and a connection belongs to the event loop that opened it.
Drivers of one endpoint share a client, and all of a loop are closed when the loop ends. A client
with wrappers around its transport is one more, on the pool of the plain one.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Hashable
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pai.models._openai.endpoint import Endpoint
from pai.protocol import WrapTransport

if TYPE_CHECKING:
    from ssl import SSLContext

    from anyio.lowlevel import RunVar
    from httpx2 import AsyncBaseTransport, AsyncClient
    from openai import AsyncOpenAI

__all__ = ("shared_client", "warm")

_MOST_WRAPPED = 64
"""Clients with wrappers that are kept: a hook may make a new function for each step."""


class _Kept(NamedTuple):
    client: AsyncOpenAI
    http: AsyncClient


Wrappers = tuple[WrapTransport, ...]
Clients = dict[tuple[Endpoint, tuple[Hashable, ...]], _Kept]

_clients: RunVar[tuple[Clients, AsyncGenerator[None, None]]] | None = None


def warm() -> None:
    """Import what a client needs and make one: most of a second, at start-up, in a thread."""
    _client("https://localhost/v1", "none")


@cache
def _certificates() -> SSLContext:
    """Reading them takes 50 ms of the event loop's time, and one set does for all clients."""
    import httpx2

    return httpx2.create_ssl_context()


def _client(
    base_url: str, api_key: str | None, transport: AsyncBaseTransport | None = None
) -> _Kept:
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    if transport is None:
        http = DefaultAsyncHttpxClient(verify=_certificates())
    else:
        http = DefaultAsyncHttpxClient(transport=transport)
    return _Kept(AsyncOpenAI(base_url=base_url, api_key=api_key, http_client=http), http)


async def shared_client(endpoint: Endpoint, wrappers: Wrappers = ()) -> AsyncOpenAI:
    """
    The client for *endpoint* on the running event loop.

    Args:
        endpoint: Where it sends to.
        wrappers: What goes around its transport, outermost first; one client for the same ones.

    Raises:
        DefinitionError: A wrapper gave something else than a transport.
    """
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
    plain = clients.get((endpoint, ()))
    if plain is None:
        plain = clients[endpoint, ()] = _client(endpoint.base_url, endpoint.api_key)
    if not wrappers:
        return plain.client
    return (await _wrapped(clients, endpoint, wrappers, plain)).client


async def _wrapped(clients: Clients, endpoint: Endpoint, wrappers: Wrappers, plain: _Kept) -> _Kept:
    key = (endpoint, tuple([_known_by(wrapper) for wrapper in wrappers]))
    found = clients.pop(key, None)
    if found is None:
        from pai.models._openai.transport import wrap

        found = _client(endpoint.base_url, endpoint.api_key, wrap(plain.http, wrappers))
    clients[key] = found  # the last one is the one used last
    others = [other for other in clients if other[1]]
    for oldest in others[:-_MOST_WRAPPED]:
        # Its requests under way go on: their connections are those of the plain client.
        await clients.pop(oldest).client.close()
    return found


class _Same:
    """A wrapper that has no hash, known by its identity; it stays alive as long as this."""

    __slots__ = ("wrapper",)

    def __init__(self, wrapper: WrapTransport) -> None:
        self.wrapper = wrapper

    def __hash__(self) -> int:
        return id(self.wrapper)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and other.wrapper is self.wrapper


def _known_by(wrapper: WrapTransport) -> Hashable:
    # A bound method is another object each time it is looked up, and equal to the one before.
    try:
        hash(wrapper)
    except TypeError:
        return _Same(wrapper)
    return wrapper


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
            # A wrapper may send its last words: what it goes through is closed after it.
            for kept in reversed(clients.values()):
                await kept.client.close()
        clients.clear()
