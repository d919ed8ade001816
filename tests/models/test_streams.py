"""Every stream of the two APIs, over real sockets: the last paragraph of the run options' spec."""

from __future__ import annotations

import gzip
from typing import Any

import pytest
from hypothesis import given, strategies as st

from pai.errors import ModelError
from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai.chat_stream import ChatDecoder
from pai.models._openai.responses_stream import ResponsesDecoder
from pai.models._openai.sse import Frames
from pai.protocol import StreamPart

from .chat_cases import CHAT, STOP, Case, text as said
from .edge_server import EdgeServer, Reply, sse, stream
from .responses_cases import RESPONSES
from .told import listen, request, told

ALL = [pytest.param(OpenAIChat, case, id=f"chat: {name}") for name, case in CHAT.items()]
ALL += [pytest.param(OpenAIResponses, case, id=f"resp: {name}") for name, case in RESPONSES.items()]


@pytest.mark.anyio
@pytest.mark.parametrize(("cls", "case"), ALL)
async def test_case(cls, case: Case, edge: EdgeServer) -> None:
    driver = cls(edge.play(stream(*case.events, end=case.end, names=case.names)), base_url=edge.url)
    if case.error is None:
        assert told(await listen(driver)) == case.told
    else:
        with pytest.raises(ModelError) as caught:
            await listen(driver)
        assert (type(caught.value), caught.value.code) == case.error
        assert caught.value.provider == "openai"
    assert len(edge.requests) == 1, "nothing is retried (O-17)"


@pytest.mark.anyio
@pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])
@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b'{"choices": []}', "not_a_stream"),
        (b"<html>Welcome</html>", "not_a_stream"),
        (b'{"error": {"message": "boom", "code": "odd"}}', "odd"),
        (b"", "incomplete_stream"),
    ],
)
async def test_no_stream(cls, body: bytes, error: str, edge: EdgeServer) -> None:
    """A server answers 200 with something else."""
    reply = Reply((body,), headers={"content-type": "application/json"})
    with pytest.raises(ModelError) as caught:
        await listen(cls(edge.play(reply), base_url=edge.url))
    assert caught.value.code == error
    if error == "not_a_stream":
        assert edge.url in str(caught.value)


@pytest.mark.anyio
async def test_compressed(edge: EdgeServer) -> None:
    body = gzip.compress(sse(*CHAT["text"].events))
    headers = {"content-type": "text/event-stream", "content-encoding": "gzip"}
    reply = Reply((body[:20], body[20:]), headers=headers)
    assert told(await listen(OpenAIChat(edge.play(reply), base_url=edge.url))) == CHAT["text"].told


@pytest.mark.anyio
async def test_cut_in_the_middle_of_an_event(edge: EdgeServer) -> None:
    """Also where the connection closes cleanly: half an event is no malformed one."""
    whole = sse(*CHAT["text"].events)
    for end in ("whole", "cut"):
        reply = Reply((whole[:150],), end=end)
        with pytest.raises(ModelError) as caught:
            await listen(OpenAIChat(edge.play(reply), base_url=edge.url))
        assert caught.value.code == "incomplete_stream"


@pytest.mark.anyio
async def test_one_list_a_read(edge: EdgeServer) -> None:
    """All that came together is handed on together."""
    driver = OpenAIChat(edge.play(Reply((sse(*CHAT["text"].events),))), base_url=edge.url)
    items = [item async for item in driver.stream(request(driver))]
    assert [[part.type for part in item] for item in items] == [
        ["text-start", "text-delta", "text-delta"],
        ["text-end", "step-finish"],
    ]


# Re-chunking: however the bytes are cut, the parts are the same.


def decoded(cls, pieces: list[bytes]) -> list[StreamPart]:
    asked = request("m")
    decoder = cls(asked) if cls is ChatDecoder else cls(asked, "origin", stored=False)
    frames = Frames()
    parts: list[StreamPart] = []
    for piece in pieces:
        parts += decoder.feed(frames.feed(piece))
    if rest := frames.end():
        parts += decoder.feed([rest])
    return parts + decoder.finish()


WHOLE: list[tuple[Any, Case]] = [
    (ChatDecoder, case) for case in CHAT.values() if case.told is not None
]
WHOLE += [(ResponsesDecoder, case) for case in RESPONSES.values() if case.told is not None]


@given(st.data())
def test_any_cut_gives_the_same(data: st.DataObject) -> None:
    cls, case = data.draw(st.sampled_from(WHOLE))
    newline = data.draw(st.sampled_from(["\n", "\r\n", "\r"]))
    names = data.draw(st.booleans())
    body = sse(*case.events, names=names, newline=newline)
    if data.draw(st.booleans()):
        comment = f": ping{newline}{newline}".encode()
        body = comment + body + comment
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=12)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert told(decoded(cls, pieces)) == case.told


@given(st.text(max_size=20), st.sampled_from(["\n", "\r\n"]))
def test_byte_by_byte(text: str, newline: str) -> None:
    text = text.encode("utf-8", "ignore").decode()
    body = sse(said(text), *STOP, newline=newline)
    # ASCII escapes and the characters themselves, which may be cut in two.
    for form in (body, body.decode().encode()):
        pieces = [form[at : at + 1] for at in range(len(form))]
        expected = {"reason": "stop"} | ({"text": [text]} if text else {})
        assert told(decoded(ChatDecoder, pieces)) == expected


def test_data_of_several_lines() -> None:
    frames = Frames().feed(b'id: 1\ndata: {"choices":\ndata: []}\nretry: 3\n\n')
    assert ChatDecoder(request("m")).feed(frames) == []


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_cut_in_two(newline: str) -> None:
    """Half of one must not look like the blank line that ends a frame."""
    body = "event: a\ndata: 1\ndata: 2\n\nid: b\ndata: 3\n\n".replace("\n", newline).encode()
    frames = Frames()
    found = [frame for at in range(len(body)) for frame in frames.feed(body[at : at + 1])]
    if rest := frames.end():
        found.append(rest)
    assert found == ["event: a\ndata: 1\ndata: 2", "id: b\ndata: 3"]


def test_large_frames_are_joined_once() -> None:
    frames = Frames()
    piece = b"x" * 16384
    assert frames.feed(b"data: ") == []
    for _ in range(400):
        assert frames.feed(piece) == []
    (frame,) = frames.feed(b"\n\n")
    assert len(frame) == 6 + 400 * len(piece)
