"""What the drivers of both APIs share: the way of a request, from the key to the last part."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol

from pai.errors import DefinitionError, Fault
from pai.models._openai import client as clients
from pai.models._openai.encode import loads
from pai.models._openai.endpoint import PROVIDER, Endpoint, endpoint_of, resolve_endpoint
from pai.models._openai.errors import (
    Translated,
    incomplete,
    malformed,
    not_a_stream,
    provider_error,
)
from pai.models._openai.rejected import RejectedCall
from pai.models._openai.sse import Frames
from pai.models._profiles import reasoning_levels
from pai.ports import ModelProfile, ModelRequest
from pai.protocol import StreamPart, Transport

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import AsyncOpenAI

__all__ = ("NOT_WRAPPED", "Decoder", "OpenAIDriver")

request_log = logging.getLogger("pai.request")
provider_log = logging.getLogger("pai.provider")

# What a decoder raises when a chunk has another shape than the API says.
_MISSHAPED = (AttributeError, LookupError, RecursionError, TypeError, ValueError)

NOT_WRAPPED = (
    "the driver was given a ready client, whose transport is its own affair: give it base_url and"
    " api_key instead, or wrap the transport when the client is made"
)
_PLAIN = Transport()

# Seconds to wait for the end of a body whose last event has come, so that the connection can be
# used again; the answer itself is whole by then.
_TAIL = 0.25


class Decoder(Protocol):
    """Makes parts of frames; see the two APIs' modules."""

    done: bool

    def feed(self, frames: list[str]) -> list[StreamPart]: ...

    def finish(self) -> list[StreamPart]: ...

    def recover(self, generation: str) -> list[StreamPart]: ...


class OpenAIDriver:
    """
    A model behind one of OpenAI's APIs, or behind a server that is compatible with it.

    The address is *base_url*, else ``OPENAI_BASE_URL``, else OpenAI's own; the key is *api_key*,
    else ``OPENAI_API_KEY``. Both are looked up at each request. A server other than OpenAI's is
    asked without a key where there is none.

    Args:
        model: The model's name at the provider.
        base_url: The API's address, up to and including its version.
        api_key: The key.
        client: A ready client of the ``openai`` library instead of both; who made it closes it.
    """

    path: str
    """Where requests go, below the address."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: AsyncOpenAI | None = None,
    ) -> None:
        faults = []
        name: object = model
        if not (isinstance(name, str) and name.strip()):
            faults.append(Fault("model", 'expected the name of a model, such as "gpt-5.2"'))
        if client is not None and not iscoroutinefunction(getattr(client, "post", None)):
            faults.append(Fault("client", "expected an AsyncOpenAI client"))
        if client is not None and (base_url is not None or api_key is not None):
            faults.append(Fault("client", "has its own address and key: leave base_url, api_key"))
        if faults:
            raise DefinitionError(faults, subject=type(self).__name__)
        if base_url is not None:
            resolve_endpoint(base_url, api_key)
        self._model = model
        self._base_url = base_url
        self._api_key = api_key
        self._client = client

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._model!r})"

    @property
    def provider(self) -> str:
        """``"openai"``, by which it finds its entry in ``provider_options``."""
        return PROVIDER

    @property
    def name(self) -> str:
        """The model's name at the provider."""
        return self._model

    @property
    def profile(self) -> ModelProfile:
        """
        What the model can do.

        Output beside tools is promised for OpenAI's own service alone: many compatible servers
        bind the whole answer to the schema, so that no tool can be called.
        """
        return ModelProfile(
            combined_output=self._endpoint().own, reasoning=reasoning_levels(self._model)
        )

    @property
    def wrappable(self) -> bool:
        """Whether ``wrap_transport`` can reach its transport (O-24)."""
        return self._client is None

    def warm(self) -> None:
        """Import the client library ahead of the first request; meant for a thread."""
        clients.warm()

    def check(self) -> None:
        """
        Make sure that a request could be sent, without sending one.

        Raises:
            MissingCredential: There is no key.
        """
        self._endpoint().check()

    def _endpoint(self) -> Endpoint:
        if self._client is not None:
            return endpoint_of(self._client)
        return resolve_endpoint(self._base_url, self._api_key)

    def _body(self, request: ModelRequest, endpoint: Endpoint) -> bytes:
        raise NotImplementedError

    def _decoder(self, request: ModelRequest, endpoint: Endpoint) -> Decoder:
        raise NotImplementedError

    async def stream(self, request: ModelRequest) -> AsyncGenerator[list[StreamPart], None]:
        """Ask the model; see :class:`pai.ports.ModelDriver`."""
        endpoint = self._endpoint()
        endpoint.check()
        body = self._body(request, endpoint)
        decoder = self._decoder(request, endpoint)
        request_log.debug(
            "%s%s: model=%s messages=%d tools=%d bytes=%d",
            endpoint.place,
            self.path,
            self._model,
            len(request.messages),
            len(request.tools) + len(request.provider_tools),
            len(body),
        )
        transport = request.transport or _PLAIN
        client = self._client
        if client is not None and transport.wrappers:
            raise DefinitionError([Fault("wrap_transport", NOT_WRAPPED)], subject=repr(self))
        try:
            with Translated(endpoint, transport.headers.values()) as errors:
                if client is None:
                    client = await clients.shared_client(endpoint, transport.wrappers)
                response = await _post(client, self.path, body, transport)
                source = _source(response)
                frames = Frames()
                feed, split = decoder.feed, frames.feed
                debug = provider_log.isEnabledFor(logging.DEBUG)
                try:
                    async for data in source:
                        errors.started = True
                        if not (whole := split(data)):
                            continue
                        try:
                            parts = feed(whole)
                        except _MISSHAPED as error:
                            raise malformed("a chunk has an unknown form") from error
                        if debug:
                            _log(len(data), parts)
                        if parts:
                            yield parts
                        if decoder.done:
                            break
                    if not decoder.done:
                        parts = _tail(
                            frames, decoder, endpoint, response.headers.get("content-type")
                        )
                        if parts:
                            yield parts
                    yield decoder.finish()
                finally:
                    await _close(source, response, drain=decoder.done)
        except RejectedCall as error:
            parts = decoder.recover(error.generation)
            if not parts:
                raise
            yield parts


async def _post(client: AsyncOpenAI, path: str, body: bytes, transport: Transport) -> Response:
    from openai import AsyncStream

    # Also where the client is a ready one: retries are the loop's, in one place (O-17).
    options: Any = {"max_retries": 0}
    if transport.headers:
        options["headers"] = transport.headers
    if transport.timeout is not None:
        options["timeout"] = transport.timeout
    stream: AsyncStream[object] = await client.post(
        path,
        content=body,
        cast_to=object,
        options=options,
        stream=True,
        stream_cls=AsyncStream[object],
    )
    return stream.response


def _source(response: Response) -> AsyncGenerator[bytes, None]:
    """The body as it comes; the way with fewest hops if nothing has to be decompressed."""
    plain = response.headers.get("content-encoding", "identity") in {"identity", ""}
    # A double of a provider may answer with a body that is there already.
    if plain and not response.is_stream_consumed:
        return response.aiter_raw()
    return response.aiter_bytes()


def _tail(
    frames: Frames, decoder: Decoder, endpoint: Endpoint, content_type: str | None
) -> list[StreamPart]:
    """What the connection closed on: a frame without its blank line, or no frame at all."""
    rest = frames.end()
    if not rest:
        return []
    if rest.startswith(("data:", "event:")):
        try:
            return decoder.feed([rest])
        except _MISSHAPED as error:
            raise incomplete("the connection closed in the middle of an event") from error
    if frames.seen or rest.startswith(":"):
        return []
    try:
        value = loads(rest)
    except ValueError:
        value = None
    if isinstance(value, dict) and value.get("error"):
        raise provider_error(value)
    raise not_a_stream(endpoint, content_type)


async def _close(source: AsyncGenerator[bytes, None], response: Response, *, drain: bool) -> None:
    """
    Let go of the connection: back to the pool if the body is read to its end, else closed.

    The transport's generators are nested, and one of them does not close the one inside it when it
    is closed. So the response goes first; then the innermost read fails and ends all of them.
    """
    from anyio import CancelScope, move_on_after

    with CancelScope(shield=True):
        if drain:
            with move_on_after(_TAIL):
                await _exhaust(source)
        await response.aclose()
        await _exhaust(source)
        await source.aclose()


async def _exhaust(source: AsyncGenerator[bytes, None]) -> None:
    try:
        async for _ in source:
            pass
    except Exception as error:
        # The answer is whole, or somebody else's error is on its way already.
        provider_log.debug("the connection ended with %s", type(error).__name__)


def _log(size: int, parts: Sequence[StreamPart]) -> None:
    kinds = sorted({part.type for part in parts})
    provider_log.debug("read: bytes=%d parts=%d types=%s", size, len(parts), ",".join(kinds))
