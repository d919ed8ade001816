"""Where requests go and with which key: what the caller said, else what the environment says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import attrs

from pai.errors import DefinitionError, Fault, MissingCredential

if TYPE_CHECKING:
    from openai import AsyncOpenAI

__all__ = ("PROVIDER", "Endpoint", "endpoint_of", "resolve_endpoint")

PROVIDER = "openai"
_KEY = "OPENAI_API_KEY"
_URL = "OPENAI_BASE_URL"
_DEFAULT = "https://api.openai.com/v1"
_OWN = (".openai.com", ".openai.azure.com")

# Local servers want no key, and the client library wants one.
_NO_KEY = "no-key"


@attrs.frozen
class Endpoint:
    """
    One address with one key.

    Args:
        base_url: Up to and including the version, without a slash at its end.
        api_key: The key; ``None`` where there is none.
        own: It is OpenAI's own service (or Azure's), not a compatible server.
        place: The address for people and for telling hosts apart: no user, no query.
    """

    base_url: str
    api_key: str | None = attrs.field(repr=False)
    own: bool
    place: str

    def check(self) -> None:
        """
        Make sure that there is a key.

        Raises:
            MissingCredential: There is none, and the service wants one.
        """
        if self.api_key is None:
            raise MissingCredential(PROVIDER, _KEY)


def _endpoint(base_url: str, api_key: str | None, *, named: bool) -> Endpoint:
    base_url = base_url.strip().rstrip("/")
    try:
        url = urlsplit(base_url)
        host, port = url.hostname, url.port
    except ValueError:
        host, port = None, None
    if host is None or url.scheme not in {"http", "https"}:
        fault = Fault("base_url", f"expected an http or https address such as {_DEFAULT}")
        raise DefinitionError([fault], subject="model")
    own = f".{host}".endswith(_OWN)
    if not api_key:
        api_key = _NO_KEY if named and not own else None
    shown = f"[{host}]" if ":" in host else host
    place = f"{url.scheme}://{shown}{f':{port}' if port else ''}{url.path}"
    return Endpoint(base_url, api_key, own, place)


def resolve_endpoint(base_url: str | None, api_key: str | None) -> Endpoint:
    """The endpoint as of now: what is ``None`` comes from the environment."""
    named = base_url or os.environ.get(_URL)
    key = api_key if api_key is not None else os.environ.get(_KEY)
    return _endpoint(named or _DEFAULT, key, named=bool(named))


def endpoint_of(client: AsyncOpenAI) -> Endpoint:
    """Where a ready client sends its requests; the key stays its own affair."""
    return _endpoint(str(client.base_url), client.api_key or _NO_KEY, named=True)
