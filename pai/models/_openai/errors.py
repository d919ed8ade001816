"""From what the client library and its transport raise, and what providers say, to our errors."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from pai.errors import ContextOverflow, IncompleteStream, ModelError, ModelTimeout, RateLimited
from pai.models._openai.encode import clean
from pai.models._openai.endpoint import PROVIDER, Endpoint
from pai.models._openai.rejected import RejectedCall

if TYPE_CHECKING:
    from openai import APIStatusError

__all__ = ("Translated", "incomplete", "malformed", "not_a_stream", "provider_error")

log = logging.getLogger("pai.provider")

_LONGEST = 300
_REJECTED = "tool_use_failed"
_SECRET = re.compile(r"(?i)\bbearer\s+\S+|\b(?:sk|sess|key)-[\w*.\-]{4,}")
_OVERFLOW = re.compile(
    r"(?i)context[ _](?:length|window|size)|maximum context|prompt is too long|too many tokens"
)


class _Headers(Protocol):
    def get(self, key: str, /) -> str | None: ...


def _text_of(error: object) -> str:
    """The provider's own words, wherever it put them."""
    while isinstance(error, dict):
        error = error.get("message") or error.get("error") or error.get("detail")
    return error if isinstance(error, str) else ""


def _short(text: str, secrets: Collection[str] = ()) -> str:
    text = clean(" ".join(text.split()))
    for secret in secrets:
        text = text.replace(secret, "[key]")
    text = _SECRET.sub("[key]", text)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _code_of(error: object) -> tuple[str | None, str | None, int | None]:
    """The provider's code, its wider type, and a code that has the form of an HTTP status."""
    if not isinstance(error, dict):
        return None, None, None
    code, kind = error.get("code"), error.get("type")
    kind = kind if isinstance(kind, str) and kind not in {"", "error"} else None
    if isinstance(code, int) and not isinstance(code, bool):
        return None, kind, (code if 400 <= code < 600 else None)
    return (code if isinstance(code, str) and code else None), kind, None


def provider_error(
    error: object,
    *,
    head: str = "the provider reported an error",
    status: int | None = None,
    retry_after: float | None = None,
    secrets: Collection[str] = (),
) -> ModelError:
    """
    The error that a provider described, sorted.

    Args:
        error: Its body, an error object or a string.
        head: What happened, for people.
        status: The HTTP status; ``None`` within a stream.
        retry_after: Seconds it asks to wait.
        secrets: The key in use and the caller's headers, to be kept out of the text.
    """
    inner = error.get("error") if isinstance(error, dict) else None
    if isinstance(inner, dict | str) and inner:
        error = inner
    code, kind, number = _code_of(error)
    status = status or number
    text = _text_of(error)
    message = f"{head}: {_short(text, secrets)}" if text else head
    if code == _REJECTED and isinstance(error, dict):
        rejected = RejectedCall(message, provider=PROVIDER, code=code, status=status)
        rejected.generation = str(error.get("failed_generation") or "")
        return rejected
    cls, ours = _sort(code, status, text)
    if ours is None:
        ours = kind or ("provider_error" if status is None else "invalid_request")
    return cls(
        message, provider=PROVIDER, code=code or ours, status=status, retry_after=retry_after
    )


def _sort(code: str | None, status: int | None, text: str) -> tuple[type[ModelError], str | None]:
    """The class of an error, and our code for it where the status says which."""
    if code in {"context_length_exceeded", "exceed_context_size_error"} or status == 413:
        return ContextOverflow, ContextOverflow.default_code
    if status in {None, 400, 422} and _OVERFLOW.search(text):
        return ContextOverflow, ContextOverflow.default_code
    if status == 429 or (status is None and code == "rate_limit_exceeded"):
        return RateLimited, RateLimited.default_code
    if status in {408, 504}:
        return ModelTimeout, ModelTimeout.default_code
    if status in {401, 403}:
        return ModelError, "authentication"
    if status == 404:
        return ModelError, "model_not_found" if "model" in text.lower() else "not_found"
    return ModelError, "server_error" if status is not None and status >= 500 else None


def _retry_after(headers: _Headers) -> float | None:
    """Seconds to wait, from any of the three forms in which servers say it."""
    milliseconds, text = headers.get("retry-after-ms"), headers.get("retry-after")
    try:
        if milliseconds is not None:
            return max(0.0, float(milliseconds) / 1000)
        if text is None:
            return None
        try:
            return max(0.0, float(text))
        except ValueError:
            when = parsedate_to_datetime(text)
            when = when if when.tzinfo else when.replace(tzinfo=UTC)
            return max(0.0, (when - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        return None


def incomplete(why: str) -> IncompleteStream:
    """The stream ended before the model said that it had finished."""
    return IncompleteStream(f"the model's stream is incomplete: {why}", provider=PROVIDER)


def malformed(why: str) -> ModelError:
    """A frame of the stream can't be read."""
    return ModelError(
        f"the model's stream can't be read: {why}", provider=PROVIDER, code="malformed_stream"
    )


def not_a_stream(endpoint: Endpoint, content_type: str | None) -> ModelError:
    """The server answered 200 with something else."""
    kind = _short(content_type or "no content type")
    return ModelError(
        f"{endpoint.place} answered with {kind} instead of a stream of events:"
        " check that base_url is the address of an OpenAI-compatible API",
        provider=PROVIDER,
        code="not_a_stream",
        status=200,
    )


def _refused(error: APIStatusError, endpoint: Endpoint, secrets: Collection[str]) -> ModelError:
    status = error.status_code
    hint = {
        401: "; check the key",
        403: "; check what the key may do",
        404: "; check the model's name and base_url",
    }.get(status, "")
    return provider_error(
        error.body,
        head=f"{endpoint.place} answered {status}{hint}",
        status=status,
        retry_after=_retry_after(error.response.headers),
        secrets=secrets,
    )


class Translated:
    """
    A context in which the client's errors become ours; cancellation passes through.

    What a header of *headers* says never gets into them (O-15). Set ``started`` when the first byte has come: a connection cut before is one thing, a stream
    cut in the middle another.
    """

    __slots__ = ("_endpoint", "secrets", "started")

    def __init__(self, endpoint: Endpoint, headers: Iterable[str] = ()) -> None:
        self._endpoint = endpoint
        self.started = False
        # A short one stands in many words, and would hide them.
        given = (endpoint.api_key or "", *headers)
        self.secrets = [text for text in given if len(text) >= 8]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        cls: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, StopAsyncIteration):
            return
        found = error if isinstance(error, ModelError) else self._translate(error)
        if found is None:
            return
        if any(secret in str(found) for secret in self.secrets):
            # What an error within the stream said: nobody there knows what to keep out.
            found.args = (_short(str(found), self.secrets),)
        log.info("failed: provider=%s code=%s status=%s", found.provider, found.code, found.status)
        if found is not error:
            # A traceback shows the text of the cause.
            told = any(secret in str(error) for secret in self.secrets)
            raise found from (None if told else error)

    def _translate(self, error: Exception) -> ModelError | None:
        import httpx2
        import openai

        # A client may have been given a transport of the older library.
        older = sys.modules.get("httpx")
        timeouts = (httpx2.TimeoutException, *([older.TimeoutException] if older else []))
        transport = (httpx2.HTTPError, *([older.HTTPError] if older else []))
        place = self._endpoint.place
        if isinstance(error, openai.APIStatusError):
            return _refused(error, self._endpoint, self.secrets)
        if isinstance(error, (openai.APITimeoutError, *timeouts)):
            return ModelTimeout(f"{place} took too long to answer", provider=PROVIDER)
        if isinstance(error, (openai.APIConnectionError, *transport)):
            if self.started:
                return incomplete("the connection was cut")
            return ModelError(
                f"no connection to {place}: is a server running there?"
                if not self._endpoint.own
                else f"no connection to {place}",
                provider=PROVIDER,
                code="connection_error",
            )
        if isinstance(error, openai.OpenAIError):
            return ModelError(
                f"the request to {place} failed: {_short(str(error), self.secrets)}",
                provider=PROVIDER,
                code="client_error",
            )
        return None
