"""What the fake model server answers, rendered once to bytes."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

Event = dict[str, Any]

MARK = b"@BENCH@"
"""Stands where each reply has a unique id of the same length."""

WORDS = ("alpha ", "beta ", "gamma ", "delta ", "omega ")
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
RESPONSE_USAGE = {
    "input_tokens": 100,
    "output_tokens": 20,
    "total_tokens": 120,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens_details": {"reasoning_tokens": 0},
}
ARGUMENTS = ('{"a":', " 2, ", '"b"', ": 3}")
HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@functools.lru_cache(256)
def render(api: str, model: str, chunks: int, tool: bool) -> tuple[bytes, ...]:
    """
    Render a streamed reply.

    Args:
        api: ``"chat"`` or ``"responses"``.
        model: The name that the reply repeats.
        chunks: How many pieces of text it has.
        tool: Whether it calls ``add(2, 3)`` in place of the text.

    Returns:
        The head with the first event, then one HTTP chunk an event.
    """
    if api == "responses":
        events = [
            b"event: %s\ndata: %s\n\n"
            % (event["type"].encode(), _dump(event | {"sequence_number": number}))
            for number, event in enumerate(response_events(model, chunks, tool))
        ]
    else:
        events = [b"data: %s\n\n" % _dump(event) for event in chat_events(model, chunks, tool)]
        events.append(b"data: [DONE]\n\n")
    first, *rest = (b"%x\r\n%s\r\n" % (len(event), event) for event in events)
    return (HEAD + first, *rest[:-1], rest[-1] + b"0\r\n\r\n")


@functools.lru_cache(256)
def render_joined(api: str, model: str, chunks: int, tool: bool) -> bytes:
    """Render a reply that goes out in one write."""
    return b"".join(render(api, model, chunks, tool))


def chat_events(model: str, chunks: int, tool: bool) -> Iterator[Event]:
    """Yield the chunks of a chat completion."""

    def chunk(delta: Event, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {
            "id": "chatcmpl-@BENCH@",
            "object": "chat.completion.chunk",
            "created": 1700000000,
            "model": model,
            "service_tier": "default",
            "system_fingerprint": "fp_bench",
            "choices": [choice],
            "usage": None,
        }

    yield chunk({"role": "assistant", "content": None if tool else "", "refusal": None})
    if tool:
        function = {"name": "add", "arguments": ""}
        call = {"index": 0, "id": "call_@BENCH@", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        for part in ARGUMENTS:
            yield chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
    else:
        for word in _words(chunks):
            yield chunk({"content": word})
    yield chunk({}, "tool_calls" if tool else "stop")
    yield chunk({}) | {"choices": [], "usage": USAGE}


def response_events(model: str, chunks: int, tool: bool) -> Iterator[Event]:
    """Yield the events of a response."""
    item = _response_item(chunks, tool)
    at: Event = {"item_id": item["id"], "output_index": 0}
    response = {
        "id": "resp_@BENCH@",
        "object": "response",
        "created_at": 1700000000,
        "error": None,
        "instructions": None,
        "status": "in_progress",
        "incomplete_details": None,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "usage": None,
    }
    yield {"type": "response.created", "response": response}
    if tool:
        yield {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": item | {"arguments": "", "status": "in_progress"},
        }
        for part in ARGUMENTS:
            yield {"type": "response.function_call_arguments.delta", **at, "delta": part}
        yield {
            "type": "response.function_call_arguments.done",
            **at,
            "name": "add",
            "arguments": "".join(ARGUMENTS),
        }
    else:
        at["content_index"] = 0
        [content] = item["content"]
        yield {
            "type": "response.output_item.added",
            "output_index": 0,
            "item": item | {"content": [], "status": "in_progress"},
        }
        yield {"type": "response.content_part.added", **at, "part": content | {"text": ""}}
        for word in _words(chunks):
            yield {"type": "response.output_text.delta", **at, "delta": word, "logprobs": []}
        text = content["text"]
        yield {"type": "response.output_text.done", **at, "text": text, "logprobs": []}
        yield {"type": "response.content_part.done", **at, "part": content}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    done = {"status": "completed", "output": [item], "usage": RESPONSE_USAGE}
    yield {"type": "response.completed", "response": response | done}


def _response_item(chunks: int, tool: bool) -> Event:
    if tool:
        return {
            "id": "fc_@BENCH@",
            "type": "function_call",
            "status": "completed",
            "call_id": "call_@BENCH@",
            "name": "add",
            "arguments": "".join(ARGUMENTS),
        }
    text = "".join(_words(chunks))
    content = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    return {
        "id": "msg_@BENCH@",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [content],
    }


def _words(chunks: int) -> list[str]:
    return [WORDS[number % len(WORDS)] for number in range(chunks)]


def _dump(event: Event) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()
