"""How the requests of an episode travel: what the agent's ``request`` and ``wrap_transport`` say."""

from __future__ import annotations

import inspect
from typing import Any

import attrs

from pai.definition import RequestOptions
from pai.errors import Fault, InvalidInput
from pai.loop._episode import Episode
from pai.loop._prepare import behavior_input
from pai.protocol import Transport, WrapTransport

__all__ = ("find_transport", "wrapped")


async def find_transport(episode: Episode) -> Transport | None:
    """
    The agent's part of it, found once an episode: a takeover asks again, as nothing is stored (O-15).

    Raises:
        InvalidInput: ``request`` gave something else than *RequestOptions*.
    """
    definition = episode.agent.definition
    if episode.transport is None and (definition.request or definition.wrap_transport):
        options: Any = None
        if definition.request is not None:
            options = definition.request(behavior_input(episode))
            if inspect.isawaitable(options):
                options = await options
        if options is None:
            options = RequestOptions()
        elif not isinstance(options, RequestOptions):
            fault = Fault("request", "expected RequestOptions(...) or None from the function")
            raise InvalidInput([fault], subject=f"agent {definition.name!r}")
        outermost = definition.wrap_transport
        episode.transport = Transport(
            options.headers, options.timeout, () if outermost is None else (outermost,)
        )
    return episode.transport


def wrapped(transport: Transport | None, wrapper: WrapTransport) -> Transport:
    """With one more wrapper, inside of those that are there (O-24)."""
    if transport is None:
        return Transport(wrappers=(wrapper,))
    return attrs.evolve(transport, wrappers=(*transport.wrappers, wrapper))
