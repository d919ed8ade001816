"""Streams of the Responses API, and what a driver makes of each."""

from __future__ import annotations

from typing import Any

from pai.errors import ContextOverflow, IncompleteStream, ModelError, RateLimited

from .chat_cases import Case

__all__ = ("RESPONSES", "R", "ended", "message", "reasoning")

R: dict[str, Any] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "model": "m",
    "output": [],
    "parallel_tool_calls": True,
    "tool_choice": "auto",
    "tools": [],
    "status": "in_progress",
}
CREATED = {"type": "response.created", "response": R}
USAGE = {
    "input_tokens": 11,
    "input_tokens_details": {"cached_tokens": 3, "cache_write_tokens": 4},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 2},
    "total_tokens": 18,
}


def ended(status: str = "completed", *, event: str | None = None, **fields: Any) -> dict[str, Any]:
    return {
        "type": f"response.{event or status}",
        "response": {**R, "status": status, **fields},
    }


def item(kind: str, index: int, data: dict[str, Any]) -> dict[str, Any]:
    return {"type": f"response.output_item.{kind}", "output_index": index, "item": data}


def delta(kind: str, text: str, index: int, item_id: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": f"response.{kind}.delta",
        "delta": text,
        "output_index": index,
        "item_id": item_id,
        **fields,
    }


def message(
    *texts: str, index: int = 0, item_id: str = "msg_1", **fields: Any
) -> tuple[dict[str, Any], ...]:
    data: dict[str, Any] = {"id": item_id, "type": "message", "role": "assistant"}
    data |= {"status": "in_progress", "content": [], **fields}
    content = [{"type": "output_text", "text": "".join(texts), "annotations": []}]
    at = {"output_index": index, "item_id": item_id, "content_index": 0}
    return (
        item("added", index, data),
        {"type": "response.content_part.added", **at, "part": {**content[0], "text": ""}},
        *(delta("output_text", text, index, item_id, content_index=0) for text in texts),
        {"type": "response.output_text.done", **at, "text": "".join(texts)},
        {"type": "response.content_part.done", **at, "part": content[0]},
        item("done", index, {**data, "status": "completed", "content": content}),
    )


def reasoning(
    *parts: str, index: int = 0, item_id: str = "rs_1", secret: str | None = None
) -> tuple[dict[str, Any], ...]:
    data: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": []}
    summary = [{"type": "summary_text", "text": text} for text in parts]
    done = {**data, "summary": summary}
    if secret is not None:
        data = {**data, "encrypted_content": "partial"}
        done["encrypted_content"] = secret
    return (
        item("added", index, data),
        *(
            delta("reasoning_summary_text", text, index, item_id, summary_index=at)
            for at, text in enumerate(parts)
        ),
        item("done", index, done),
    )


def function(
    name: str,
    *pieces: str,
    index: int = 0,
    call_id: str | None = "call_1",
    item_id: str = "fc_1",
) -> tuple[dict[str, Any], ...]:
    data = {"id": item_id, "type": "function_call", "name": name, "arguments": ""}
    if call_id is not None:
        data["call_id"] = call_id
    whole = "".join(pieces)
    return (
        item("added", index, {**data, "status": "in_progress"}),
        *(delta("function_call_arguments", piece, index, item_id) for piece in pieces),
        {
            "type": "response.function_call_arguments.done",
            "output_index": index,
            "item_id": item_id,
            "arguments": whole,
        },
        item("done", index, {**data, "arguments": whole, "status": "completed"}),
    )


def hosted(index: int = 0, **data: Any) -> tuple[dict[str, Any], ...]:
    started = {"id": data["id"], "type": data["type"], "status": "in_progress"}
    if "name" in data:
        started["name"] = data["name"]
    return item("added", index, started), item("done", index, data)


CITED = {"type": "url_citation", "url": "https://a.test/", "title": "A", "start_index": 0}
FROM_FILE = {"type": "file_citation", "file_id": "file_1", "filename": "a.pdf", "index": 0}

FIRST = function("f", '{"a"', ": 1}", index=0, call_id="call_1", item_id="fc_1")
SECOND = function("g", '{"b"', ": 2}", index=1, call_id="call_2", item_id="fc_2")

RESPONSES: dict[str, Case] = {
    "text": Case(
        (CREATED, *message("a", "b"), ended(usage=USAGE)),
        {"text": ["ab"], "reason": "stop", "usage": (11, 7, 18)},
    ),
    "named frames": Case(
        (CREATED, *message("a", "b"), ended()), {"text": ["ab"], "reason": "stop"}, names=True
    ),
    "then [DONE]": Case((*message("a"), ended(), "[DONE]"), {"text": ["a"], "reason": "stop"}),
    "end without a final event": Case(
        (CREATED, *message("a")), error=(IncompleteStream, "incomplete_stream"), names=True
    ),
    "cut": Case(
        (CREATED, *message("a")[:3]), error=(IncompleteStream, "incomplete_stream"), end="cut"
    ),
    "cut after the final event": Case(
        (*message("a"), ended()), {"text": ["a"], "reason": "stop"}, end="cut"
    ),
    "error event": Case(
        (CREATED, {"type": "error", "code": "server_error", "message": "boom", "param": None}),
        error=(ModelError, "server_error"),
        names=True,
    ),
    "error event, nested": Case(
        (CREATED, {"type": "error", "error": {"type": "x", "message": "boom"}}),
        error=(ModelError, "x"),
        names=True,
    ),
    "error frame without a type": Case(
        (CREATED, {"error": "boom"}), error=(ModelError, "provider_error")
    ),
    "failed": Case(
        (CREATED, ended("failed", error={"code": "server_error", "message": "boom"})),
        error=(ModelError, "server_error"),
    ),
    "failed, too many": Case(
        (ended("failed", error={"code": "rate_limit_exceeded", "message": "slow down"}),),
        error=(RateLimited, "rate_limit_exceeded"),
    ),
    "failed, too long": Case(
        (ended("failed", error={"code": "context_length_exceeded", "message": "long"}),),
        error=(ContextOverflow, "context_length_exceeded"),
    ),
    "failed, called completed": Case(
        (*message("a"), ended("failed", event="completed")),
        error=(ModelError, "response_failed"),
    ),
    "cancelled": Case((ended("cancelled"),), error=(ModelError, "response_cancelled")),
    "incomplete": Case(
        (*message("a"), ended("incomplete", incomplete_details={"reason": "max_output_tokens"})),
        {"text": ["a"], "reason": "length"},
    ),
    "incomplete, called completed": Case(
        (*message("a"), ended("incomplete", event="completed")), {"text": ["a"], "reason": "length"}
    ),
    "filtered": Case(
        (*message("a"), ended("incomplete", incomplete_details={"reason": "content_filter"})),
        {"text": ["a"], "reason": "content-filter"},
    ),
    "steered": Case(
        (*message("a"), ended("incomplete", incomplete_details={"reason": "steered"})),
        {"text": ["a"], "reason": "other"},
    ),
    "length with a broken call": Case(
        (
            *function("f", '{"a": ')[:2],
            ended("incomplete", incomplete_details={"reason": "max_output_tokens"}),
        ),
        {"calls": [("f", 'raw:{"a": ')], "reason": "length"},
    ),
    "unknown events": Case(
        ({"type": "response.brand_new.thing", "x": 1}, {"y": 2}, *message("a"), ended()),
        {"text": ["a"], "reason": "stop"},
    ),
    "malformed JSON": Case((CREATED, "{oops"), error=(ModelError, "malformed_stream")),
    "no object": Case((CREATED, "[]"), error=(ModelError, "malformed_stream")),
    "a wrong shape": Case(
        ({"type": "response.output_item.added", "item": None},),
        error=(ModelError, "malformed_stream"),
    ),
    "one call": Case((*FIRST, ended()), {"calls": [("f", {"a": 1})], "reason": "tool-calls"}),
    "two calls": Case(
        (*FIRST, *SECOND, ended()),
        {"calls": [("f", {"a": 1}), ("g", {"b": 2})], "reason": "tool-calls"},
    ),
    "calls that interleave": Case(
        (
            *(FIRST[0], SECOND[0], FIRST[1], SECOND[1], FIRST[2], SECOND[2]),
            *(*FIRST[3:], *SECOND[3:], ended()),
        ),
        {"calls": [("f", {"a": 1}), ("g", {"b": 2})], "reason": "tool-calls"},
    ),
    "arguments only when done": Case(
        (FIRST[0], *FIRST[3:], ended()), {"calls": [("f", {"a": 1})], "reason": "tool-calls"}
    ),
    "a call only when done": Case(
        (FIRST[-1], ended()), {"calls": [("f", {"a": 1})], "reason": "tool-calls"}
    ),
    "arguments before the name": Case(
        (item("added", 0, {"id": "fc_1", "type": "function_call"}), *FIRST[1:], ended()),
        {"calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "no call id": Case(
        (*function("f", "{}", call_id=None), ended()),
        {"calls": [("f", {})], "reason": "tool-calls"},
    ),
    "the same call id twice": Case(
        (*function("f", "{}"), *function("f", "{}", index=1, item_id="fc_2"), ended()),
        {"calls": [("f", {}), ("f", {})], "reason": "tool-calls"},
    ),
    "item ids that change": Case(
        (FIRST[0], delta("function_call_arguments", '{"a": 1}', 0, "other"), FIRST[-1], ended()),
        {"calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "no index": Case(
        tuple(
            {key: value for key, value in event.items() if key != "output_index"}
            for event in (*FIRST, *SECOND, ended())
        ),
        {"calls": [("f", {"a": 1}), ("g", {"b": 2})], "reason": "tool-calls"},
    ),
    "text, then a call": Case(
        (*message("a"), *SECOND, ended()),
        {"text": ["a"], "calls": [("g", {"b": 2})], "reason": "tool-calls"},
    ),
    "text between arguments": Case(
        (FIRST[0], FIRST[1], *message("x", index=1), *FIRST[2:], ended()),
        {"text": ["x"], "calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "two contents": Case(
        (
            *message("a")[:3],
            delta("output_text", "b", 0, "msg_1", content_index=1),
            ended(),
        ),
        {"text": ["a", "b"], "reason": "stop"},
    ),
    "text without a content index": Case(
        tuple(
            {key: value for key, value in event.items() if key != "content_index"}
            for event in (*message("a", "b"), ended())
        ),
        {"text": ["ab"], "reason": "stop"},
    ),
    "text only when done": Case(
        (message("a", "b")[-1], ended()), {"text": ["ab"], "reason": "stop"}
    ),
    "text only in the response": Case(
        (ended(output=[message("a")[-1]["item"], FIRST[-1]["item"]]),),
        {"text": ["a"], "calls": [("f", {"a": 1})], "reason": "tool-calls"},
    ),
    "refusal": Case(
        (
            item("added", 0, {"id": "msg_1", "type": "message", "content": []}),
            delta("refusal", "I can", 0, "msg_1", content_index=0),
            delta("refusal", "not.", 0, "msg_1", content_index=0),
            item(
                "done",
                0,
                {
                    "id": "msg_1",
                    "type": "message",
                    "content": [{"type": "refusal", "refusal": "I cannot."}],
                },
            ),
            ended(),
        ),
        {"text": ["I cannot."], "reason": "content-filter"},
    ),
    "reasoning": Case(
        (*reasoning("hm", "so"), *message("a", index=1), ended()),
        {"reasoning": ["hm\n\nso"], "text": ["a"], "reason": "stop"},
    ),
    "reasoning only when done": Case(
        (reasoning("hm", "so")[-1], *message("a", index=1), ended()),
        {"reasoning": ["hm\n\nso"], "text": ["a"], "reason": "stop"},
    ),
    "raw reasoning": Case(
        (
            item("added", 0, {"id": "rs_1", "type": "reasoning"}),
            delta("reasoning_text", "hm", 0, "rs_1", content_index=0),
            delta("reasoning_text", "m", 0, "rs_1", content_index=0),
            item("done", 0, {"id": "rs_1", "type": "reasoning"}),
            *message("a", index=1),
            ended(),
        ),
        {"reasoning": ["hmm"], "text": ["a"], "reason": "stop"},
    ),
    "web search": Case(
        (
            *hosted(
                id="ws_1",
                type="web_search_call",
                status="completed",
                action={"type": "search", "query": "pai"},
            ),
            *message("a", index=1)[:3],
            {
                "type": "response.output_text.annotation.added",
                "output_index": 1,
                "annotation": CITED,
            },
            item(
                "done",
                1,
                {
                    "id": "msg_1",
                    "type": "message",
                    "content": [
                        {"type": "output_text", "text": "a", "annotations": [CITED, FROM_FILE]}
                    ],
                },
            ),
            ended(),
        ),
        {
            "calls": [("web_search", {"type": "search", "query": "pai"})],
            "text": ["a"],
            "sources": ["https://a.test/", "a.pdf"],
            "reason": "stop",
        },
    ),
    "other hosted tools": Case(
        (
            *hosted(0, id="fs_1", type="file_search_call", queries=["q"], results=[{"text": "t"}]),
            *hosted(
                1, id="ci_1", type="code_interpreter_call", code="1+1", outputs=[{"logs": "2"}]
            ),
            *hosted(2, id="mcp_1", type="mcp_call", name="roll", arguments='{"n": 1}', output="4"),
            *hosted(3, id="ig_1", type="image_generation_call", result="aW1n", status="completed"),
            *hosted(4, id="ap_1", type="mcp_approval_request", name="roll", arguments="{}"),
            *hosted(5, id="zz_1", type="something_new", x=1),
            *message("a", index=6),
            ended(),
        ),
        {
            "calls": [
                ("file_search", {"queries": ["q"]}),
                ("code_interpreter", {"code": "1+1"}),
                ("roll", {"n": 1}),
                ("image_generation", {}),
                ("roll", {}),
                ("something_new", {"x": 1}),
            ],
            "files": [("image/png", "aW1n")],
            "text": ["a"],
            "reason": "tool-calls",
        },
    ),
    "custom tool": Case(
        (
            item(
                "added",
                0,
                {"id": "ct_1", "type": "custom_tool_call", "name": "sh", "call_id": "call_1"},
            ),
            delta("custom_tool_call_input", "ls", 0, "ct_1"),
            item(
                "done",
                0,
                {
                    "id": "ct_1",
                    "type": "custom_tool_call",
                    "name": "sh",
                    "call_id": "call_1",
                    "input": "ls",
                },
            ),
            ended(),
        ),
        {"calls": [("sh", "ls")], "reason": "tool-calls"},
    ),
    "a character in two halves": Case(
        (*message("a\ud83d", "\ude00b"), ended()), {"text": ["a\U0001f600b"], "reason": "stop"}
    ),
    "lone halves": Case((*message("a\ud83d", "b"), ended()), {"text": ["ab"], "reason": "stop"}),
    "lone halves in arguments": Case(
        (*function("f", '{"a": "x\\ud83d"}'), ended()),
        {"calls": [("f", {"a": "x"})], "reason": "tool-calls"},
    ),
}
