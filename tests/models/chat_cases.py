"""Streams of the chat completions API, and what a driver makes of each."""

from __future__ import annotations

from typing import Any

import attrs

from pai.errors import ContextOverflow, IncompleteStream, ModelError, RateLimited

from .edge_server import End

__all__ = ("CHAT", "Case", "chunk")


@attrs.frozen
class Case:
    """
    Args:
        events: What the server sends, an event each.
        told: What the stream says, in short.
        error: Class and code, where it fails.
        end: How the connection ends.
        names: Whether frames carry the name of their event.
    """

    events: tuple[Any, ...]
    told: dict[str, Any] | None = None
    error: tuple[type[ModelError], str] | None = None
    end: End = "whole"
    names: bool = False


def chunk(delta: object = None, finish: str | None = None, **fields: object) -> dict[str, Any]:
    choice = {"index": 0, "delta": {} if delta is None else delta, "finish_reason": finish}
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **fields,
    }


def text(content: str) -> dict[str, Any]:
    return chunk({"content": content})


def call(
    arguments: str | None = None,
    *,
    index: int | None = 0,
    call_id: str | None = None,
    name: str | None = None,
) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    fragment: dict[str, Any] = {"index": index, "id": call_id}
    fragment["function"] = {key: value for key, value in function.items() if value is not None}
    return chunk({"tool_calls": [{k: v for k, v in fragment.items() if v is not None}]})


USAGE = {
    "prompt_tokens": 11,
    "completion_tokens": 7,
    "total_tokens": 18,
    "prompt_tokens_details": {"cached_tokens": 3},
    "completion_tokens_details": {"reasoning_tokens": 2},
}
TAIL = {**chunk(), "choices": [], "usage": USAGE}
STOP = (chunk({}, "stop"), "[DONE]")
CALLED = (chunk({}, "tool_calls"), "[DONE]")

CHAT: dict[str, Case] = {
    "text": Case(
        (chunk({"role": "assistant", "content": "", "refusal": None}), text("a"), text("b"), *STOP),
        {"text": ["ab"], "reason": "stop"},
    ),
    "usage in a tail chunk": Case(
        (text("a"), chunk({}, "stop"), TAIL, "[DONE]"),
        {"text": ["a"], "reason": "stop", "usage": (11, 7, 18)},
    ),
    "usage without choices": Case(
        (text("a"), chunk({}, "stop"), {"id": "c", "usage": USAGE}, "[DONE]"),
        {"text": ["a"], "reason": "stop", "usage": (11, 7, 18)},
    ),
    "no [DONE]": Case((text("a"), chunk({}, "stop")), {"text": ["a"], "reason": "stop"}),
    "end without a reason": Case((text("a"),), error=(IncompleteStream, "incomplete_stream")),
    "[DONE] without a reason": Case(
        (text("a"), "[DONE]"), error=(IncompleteStream, "incomplete_stream")
    ),
    "cut": Case((text("a"),), error=(IncompleteStream, "incomplete_stream"), end="cut"),
    "cut after the reason": Case((text("a"), *STOP), {"text": ["a"], "reason": "stop"}, end="cut"),
    "error frame": Case(
        (text("a"), {"error": {"message": "boom", "type": "server_error", "code": "x"}}),
        error=(ModelError, "x"),
    ),
    "error frame, text alone": Case(
        (text("a"), {"error": "boom"}), error=(ModelError, "provider_error")
    ),
    "error frame, flat": Case(
        ({"object": "error", "message": "boom", "type": "BadRequestError", "code": 400},),
        error=(ModelError, "BadRequestError"),
    ),
    "error frame, nested": Case(
        (text("a"), {"error": {"error": {"message": "boom", "code": "y"}}}),
        error=(ModelError, "y"),
    ),
    "error frame with a status": Case(
        ({**chunk({"content": ""}, "error"), "error": {"code": 429, "message": "slow down"}},),
        error=(RateLimited, "rate_limited"),
    ),
    "overflow within the stream": Case(
        ({"error": {"message": "too long", "code": "context_length_exceeded"}},),
        error=(ContextOverflow, "context_length_exceeded"),
    ),
    "malformed JSON": Case((text("a"), "{oops", "[DONE]"), error=(ModelError, "malformed_stream")),
    "no object": Case((text("a"), "17", "[DONE]"), error=(ModelError, "malformed_stream")),
    "a wrong shape": Case(
        ({"choices": {"a": 1}}, "[DONE]"), error=(ModelError, "malformed_stream")
    ),
    "null delta": Case(
        ({**chunk(), "choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]}, "[DONE]"),
        {"reason": "stop"},
    ),
    "null choices": Case(
        ({**chunk(), "choices": None}, text("a"), *STOP), {"text": ["a"], "reason": "stop"}
    ),
    "another choice": Case(
        (text("a"), {"choices": [{"index": 1, "delta": {"content": "no"}}]}, *STOP),
        {"text": ["a"], "reason": "stop"},
    ),
    "one call": Case(
        (
            call("", call_id="1", name="add"),
            call('{"a": 2'),
            call(', "b": 3}'),
            *CALLED,
        ),
        {"calls": [("add", {"a": 2, "b": 3})], "reason": "tool-calls"},
    ),
    "calls that interleave": Case(
        (
            call('{"a"', index=0, call_id="1", name="f"),
            call('{"b"', index=1, call_id="2", name="g"),
            call(": 1}", index=0),
            call(": 2}", index=1),
            *CALLED,
        ),
        {"calls": [("f", {"a": 1}), ("g", {"b": 2})], "reason": "tool-calls"},
    ),
    "no index": Case(
        (
            call('{"a":', index=None, call_id="1", name="f"),
            call("1}", index=None),
            call("{}", index=None, call_id="2", name="g"),
            *CALLED,
        ),
        {"calls": [("f", {"a": 1}), ("g", {})], "reason": "tool-calls"},
    ),
    "no index, by id": Case(
        (
            call('{"a":', index=None, call_id="1", name="f"),
            call("{}", index=None, call_id="2", name="g"),
            call("1}", index=None, call_id="1"),
            *CALLED,
        ),
        {"calls": [("f", {"a": 1}), ("g", {})], "reason": "tool-calls"},
    ),
    "all have the index 0": Case(
        (
            call('{"a":1}', call_id="1", name="f"),
            call("{}", call_id="2", name="g"),
            *CALLED,
        ),
        {"calls": [("f", {"a": 1}), ("g", {})], "reason": "tool-calls"},
    ),
    "arguments before the name": Case(
        (call('{"a":', call_id="1"), call("1}"), call("", name="f"), *CALLED),
        {"calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "the same id twice": Case(
        (
            call("{}", index=0, call_id="1", name="f"),
            call("{}", index=1, call_id="1", name="f"),
            *CALLED,
        ),
        {"calls": [("f", {}), ("f", {})], "reason": "tool-calls"},
    ),
    "no id": Case(
        (call("{}", index=0, name="f"), call("{}", index=1, name="f"), *CALLED),
        {"calls": [("f", {}), ("f", {})], "reason": "tool-calls"},
    ),
    "id and name in each fragment": Case(
        (call('{"a":', call_id="1", name="f"), call("1}", call_id="1", name="f"), *CALLED),
        {"calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "a call without a name": Case(
        (call("{}", call_id="1"), *CALLED), error=(ModelError, "malformed_stream")
    ),
    "stop with calls": Case(
        (call("{}", call_id="1", name="f"), *STOP),
        {"calls": [("f", {})], "reason": "tool-calls"},
    ),
    "length with a broken call": Case(
        (call('{"a": ', call_id="1", name="f"), chunk({}, "length"), "[DONE]"),
        {"calls": [("f", 'raw:{"a": ')], "reason": "length"},
    ),
    "length before a call's name": Case(
        (call('{"a": ', call_id="1"), chunk({}, "length"), "[DONE]"), {"reason": "length"}
    ),
    "filtered with calls": Case(
        (call("{}", call_id="1", name="f"), chunk({}, "content_filter"), "[DONE]"),
        {"calls": [("f", {})], "reason": "content-filter"},
    ),
    "tool_calls without calls": Case((text("a"), *CALLED), {"text": ["a"], "reason": "stop"}),
    "an unknown reason": Case(
        (text("a"), chunk({}, "eos_token"), "[DONE]"), {"text": ["a"], "reason": "other"}
    ),
    "empty arguments": Case(
        (call("", call_id="1", name="f"), *CALLED),
        {"calls": [("f", {})], "reason": "tool-calls"},
    ),
    "null arguments": Case(
        (call("null", call_id="1", name="f"), *CALLED),
        {"calls": [("f", None)], "reason": "tool-calls"},
    ),
    "broken arguments": Case(
        (call("{a: 1", call_id="1", name="f"), *CALLED),
        {"calls": [("f", "raw:{a: 1")], "reason": "tool-calls"},
    ),
    "arguments that are no text": Case(
        (
            chunk({"tool_calls": [{"id": "1", "function": {"name": "f", "arguments": {"a": 1}}}]}),
            *CALLED,
        ),
        {"calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "the call of 2023": Case(
        (
            chunk({"function_call": {"name": "f", "arguments": '{"a":'}}),
            chunk({"function_call": {"arguments": "1}"}}),
            chunk({}, "function_call"),
            "[DONE]",
        ),
        {"calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "text between arguments": Case(
        (
            text("a"),
            call('{"a":', call_id="1", name="f"),
            text("b"),
            call("1}"),
            text("c"),
            *CALLED,
        ),
        {"text": ["a", "bc"], "calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "refusal": Case(
        (chunk({"refusal": "I can"}), chunk({"refusal": "not."}), *STOP),
        {"text": ["I cannot."], "reason": "content-filter"},
    ),
    "reasoning_content": Case(
        (
            chunk({"reasoning_content": "hm"}),
            chunk({"role": "assistant", "content": None, "reasoning_content": "m"}),
            text("a"),
            *STOP,
        ),
        {"reasoning": ["hmm"], "text": ["a"], "reason": "stop"},
    ),
    "reasoning": Case(
        (chunk({"reasoning": "hm", "content": ""}), text("a"), *STOP),
        {"reasoning": ["hm"], "text": ["a"], "reason": "stop"},
    ),
    "reasoning and text in turn": Case(
        (
            chunk({"reasoning": "x", "content": "a"}),
            chunk({"reasoning": "y"}),
            call("{}", call_id="1", name="f"),
            *CALLED,
        ),
        {"reasoning": ["x", "y"], "text": ["a"], "calls": [("f", {})], "reason": "tool-calls"},
    ),
    "content as a list": Case(
        (
            chunk({"content": [{"type": "thinking", "thinking": [{"text": "hm"}]}]}),
            chunk({"content": [{"type": "text", "text": "a"}]}),
            *STOP,
        ),
        {"reasoning": ["hm"], "text": ["a"], "reason": "stop"},
    ),
    "a character in two halves": Case(
        (text("a\ud83d"), text("\ude00b"), *STOP), {"text": ["a\U0001f600b"], "reason": "stop"}
    ),
    "lone halves": Case(
        (text("a\ud83d"), text("b\ude00"), *STOP), {"text": ["ab"], "reason": "stop"}
    ),
    "lone halves in arguments": Case(
        (call('{"a": "x\\ud83d"}', call_id="1", name="f"), *CALLED),
        {"calls": [("f", {"a": "x"})], "reason": "tool-calls"},
    ),
    "sources": Case(
        (
            text("a"),
            chunk(
                {
                    "annotations": [
                        {"type": "url_citation", "url_citation": {"url": "https://a.test/"}}
                    ]
                }
            ),
            chunk(
                {
                    "annotations": [
                        {"type": "url_citation", "url_citation": {"url": "https://a.test/"}}
                    ]
                }
            ),
            *STOP,
        ),
        {"text": ["a"], "sources": ["https://a.test/"], "reason": "stop"},
    ),
    "nothing at all": Case((), error=(IncompleteStream, "incomplete_stream")),
}
