"""What goes wrong before the first chunk, as typed errors without a key or a header."""

from __future__ import annotations

import logging
import pickle
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import openai
import pytest

from pai.errors import (
    ContextOverflow,
    DefinitionError,
    IncompleteStream,
    MissingCredential,
    ModelError,
    ModelTimeout,
    RateLimited,
)
from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai.errors import provider_error

from .chat_cases import CHAT, text
from .edge_server import EdgeServer, Reply, refusal, sse, stream
from .told import listen, told

KEY = "sk-proj-very-secret-0123456789"
BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])


async def failure(driver: OpenAIChat | OpenAIResponses) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await listen(driver)
    error = caught.value
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.code) == (str(error), error.code)
    for secret in (KEY, "Bearer", "authorization"):
        assert secret not in str(error)
    return error


def error(message: str = "no", **fields: object) -> dict[str, object]:
    return {"error": {"message": message, "type": "some_type", "code": None, **fields}}


@pytest.mark.anyio
@BOTH
@pytest.mark.parametrize(
    ("reply", "kind", "code"),
    [
        (refusal(401, error(code="invalid_api_key")), ModelError, "invalid_api_key"),
        (refusal(401, {"detail": "Unauthorized"}), ModelError, "authentication"),
        (refusal(403, "no"), ModelError, "authentication"),
        (refusal(404, error(code="model_not_found")), ModelError, "model_not_found"),
        (refusal(404, {"error": "model 'x' not found"}), ModelError, "model_not_found"),
        (refusal(404, "nothing here"), ModelError, "not_found"),
        (refusal(429, error(code="rate_limit_exceeded")), RateLimited, "rate_limit_exceeded"),
        (refusal(429, ""), RateLimited, "rate_limited"),
        (refusal(400, error(code="context_length_exceeded")), ContextOverflow, None),
        (
            refusal(400, {"message": "This model's maximum context length is 8192 tokens."}),
            ContextOverflow,
            "context_overflow",
        ),
        (refusal(413, "too large"), ContextOverflow, "context_overflow"),
        (refusal(400, error(code="unsupported_value")), ModelError, "unsupported_value"),
        (refusal(400, {}), ModelError, "invalid_request"),
        (refusal(408, {}), ModelTimeout, "model_timeout"),
        (refusal(500, {}), ModelError, "server_error"),
        (refusal(400, error()), ModelError, "some_type"),
        (refusal(503, error()), ModelError, "server_error"),
        (refusal(504, {}), ModelTimeout, "model_timeout"),
    ],
)
async def test_refused(cls, reply: Reply, kind, code, edge: EdgeServer) -> None:
    found = await failure(cls(edge.play(reply), base_url=edge.url, api_key=KEY))
    assert type(found) is kind
    assert found.status == reply.status
    assert code is None or found.code == code
    assert len(edge.requests) == 1, "nothing is retried (O-17)"
    assert isinstance(found.__cause__, openai.APIStatusError)


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry_after": "2"}, 2.0),
        ({"retry_after": "0.5"}, 0.5),
        ({"retry_after_ms": "1500", "retry_after": "9"}, 1.5),
        ({"retry_after": "-1"}, 0.0),
        ({"retry_after": "soon"}, None),
        ({}, None),
    ],
)
async def test_retry_after(headers, seconds, edge: EdgeServer) -> None:
    for status in (429, 503):
        reply = refusal(status, error(), **headers)
        found = await failure(OpenAIChat(edge.play(reply), base_url=edge.url))
        assert found.retry_after == seconds


@pytest.mark.anyio
async def test_retry_after_a_date(edge: EdgeServer) -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)
    found = await failure(
        OpenAIChat(edge.play(refusal(429, error(), retry_after=when)), base_url=edge.url)
    )
    assert found.retry_after is not None
    assert 50 < found.retry_after <= 60


@pytest.mark.anyio
async def test_the_key_is_taken_out(edge: EdgeServer) -> None:
    """Also one that looks like none, and one that the provider repeats in its own words."""
    for key in (KEY, "a-key-of-another-make"):
        said = f"Incorrect API key provided: {key}, Authorization: Bearer {key}, or sk-ab***yz."
        reply = refusal(401, error(said))
        with pytest.raises(ModelError) as caught:
            await listen(OpenAIChat(edge.play(reply), base_url=edge.url, api_key=key))
        assert "Incorrect API key provided: [key]" in str(caught.value)
        assert key not in str(caught.value)
        assert "sk-ab" not in str(caught.value)


def test_long_texts_are_cut() -> None:
    assert len(str(provider_error({"message": "x" * 5000}))) < 400


@pytest.mark.anyio
@BOTH
async def test_nobody_listens(cls, edge: EdgeServer) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
    found = await failure(cls("m", base_url=url))
    assert (found.code, found.status) == ("connection_error", None)
    assert url in str(found)


@pytest.mark.anyio
@BOTH
async def test_cut_before_the_first_byte(cls, edge: EdgeServer) -> None:
    found = await failure(cls(edge.play(Reply(end="silent")), base_url=edge.url))
    assert found.code == "connection_error"
    assert len(edge.requests) == 1, "nothing is retried (O-17)"


@pytest.mark.anyio
@BOTH
async def test_timeouts(cls, edge: EdgeServer) -> None:
    """Before the first byte, and in the middle of the stream."""
    for pieces in ((), (sse(text("a")),)):
        client = openai.AsyncOpenAI(
            base_url=edge.url, api_key=KEY, timeout=openai.Timeout(5, read=0.05)
        )
        async with client:
            found = await failure(cls(edge.play(Reply(pieces, end="hang")), client=client))
            assert isinstance(found, ModelTimeout)
    assert len(edge.requests) == 2


@pytest.mark.anyio
@BOTH
async def test_missing_key(cls, edge: EdgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = cls("m")
    with pytest.raises(MissingCredential) as at_check:
        driver.check()
    with pytest.raises(MissingCredential) as at_stream:
        await listen(driver)
    for caught in (at_check, at_stream):
        assert caught.value.variable == "OPENAI_API_KEY"
        assert caught.value.provider == "openai"
        assert "OPENAI_API_KEY" in str(caught.value)
    for own in ("https://api.openai.com/v1", "https://eu.api.openai.com/v1"):
        monkeypatch.setenv("OPENAI_BASE_URL", own)
        with pytest.raises(MissingCredential):
            cls("m").check()
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    cls("m").check()


@pytest.mark.anyio
async def test_environment(edge: EdgeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read at the request, so a driver may be made before it is set."""
    driver = OpenAIChat(edge.play(stream(*CHAT["text"].events)))
    monkeypatch.setenv("OPENAI_BASE_URL", edge.url + "/")
    assert told(await listen(driver)) == CHAT["text"].told
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert told(await listen(driver)) == CHAT["text"].told
    local, keyed = edge.requests
    assert KEY not in str(local.headers)
    assert keyed.headers["authorization"] == f"Bearer {KEY}"
    assert keyed.path == "/v1/chat/completions"


@pytest.mark.anyio
async def test_ready_client(edge: EdgeServer) -> None:
    """Its own address, key and pool are used, and it is not closed."""
    async with openai.AsyncOpenAI(base_url=edge.url, api_key=KEY) as client:
        driver = OpenAIChat(edge.play(stream(*CHAT["text"].events)), client=client)
        driver.check()
        assert told(await listen(driver)) == CHAT["text"].told
        assert not client.is_closed()
    assert edge.requests[0].headers["authorization"] == f"Bearer {KEY}"


@pytest.mark.anyio
@BOTH
async def test_a_ready_client_retries_nothing(cls, edge: EdgeServer) -> None:
    """O-17, though its maker asked for retries."""
    async with openai.AsyncOpenAI(base_url=edge.url, api_key=KEY, max_retries=2) as client:
        for reply in (refusal(500, {}), refusal(429, {}), Reply(end="silent")):
            edge.requests.clear()
            await failure(cls(edge.play(reply), client=client))
            assert len(edge.requests) == 1


@BOTH
def test_bad_arguments(cls) -> None:
    client = openai.AsyncOpenAI(api_key=KEY)
    for arguments in (
        {"model": ""},
        {"model": None},
        {"model": "m", "base_url": "localhost:11434"},
        {"model": "m", "base_url": "ftp://a"},
        {"model": "m", "base_url": "http://a:b:c"},
        {"model": "m", "client": client, "api_key": KEY},
        {"model": "m", "client": openai.OpenAI(api_key=KEY)},
        {"model": "m", "client": "client"},
    ):
        with pytest.raises(DefinitionError) as caught:
            cls(**arguments)
        assert KEY not in str(caught.value)
    assert KEY not in repr(cls("m", api_key=KEY))


@pytest.mark.anyio
async def test_logs(edge: EdgeServer, caplog: pytest.LogCaptureFixture) -> None:
    """Counts, sizes and types; never content, a header or a key (O-7, A-LIFE-6)."""
    driver = OpenAIChat("m", base_url=edge.url, api_key=KEY)
    with caplog.at_level(logging.DEBUG, "pai"):
        edge.play(stream(text("confidential"), *CHAT["text"].events))
        await listen(driver)
        edge.play(stream(text("confidential"), {"error": {"message": "confidential"}}))
        with pytest.raises(ModelError):
            await listen(driver)
    lines = [(record.name, record.getMessage()) for record in caplog.records]
    assert any(name == "pai.request" and "messages=1 tools=0" in line for name, line in lines)
    assert any(name == "pai.provider" and "types=text-delta" in line for name, line in lines)
    assert any(name == "pai.provider" and "code=provider_error" in line for name, line in lines)
    shown = str(lines)
    for secret in (KEY, "confidential", "Bearer"):
        assert secret not in shown


@pytest.mark.anyio
async def test_incomplete_is_told_from_refused(edge: EdgeServer) -> None:
    found = await failure(OpenAIChat(edge.play(stream(text("a"), end="cut")), base_url=edge.url))
    assert isinstance(found, IncompleteStream)
    assert "cut" in str(found)
