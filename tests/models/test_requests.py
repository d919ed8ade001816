"""History, files, tools and output, on captured bodies."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from pai.models import OpenAIChat, OpenAIResponses
from pai.models._openai.encode import clean
from pai.protocol import (
    DataPart,
    FilePart,
    ProviderTool,
    SystemMessage,
    ToolCall,
    ToolCallPart,
    ToolName,
    ToolSpec,
)
from pai.schema import strict_form

from .chat_cases import CALLED, CHAT, call
from .edge_server import EdgeServer, stream
from .responses_cases import ended, function
from .sent import messages_of, sent
from .told import ADD, assistant, listen, request, user

BOTH = pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])

# History


@pytest.mark.anyio
async def test_chat_history(edge: EdgeServer) -> None:
    body = await sent(
        OpenAIChat,
        edge,
        user("Add."),
        assistant(
            "First.",
            ToolCallPart("1", "add", {"a": 1, "b": 2}, "completed", {"sum": 3}),
            ToolCallPart("2", "add", None, "failed", error="bad", raw="{oops"),
            ToolCallPart("3", "add", {}, "denied"),
            ToolCallPart("4", "add", {}, "skipped", "as it is"),
            ToolCallPart("5", "add", {}),
            "Then.",
        ),
        assistant(),
        user("Thanks ", DataPart("x", 1), "you"),
        instructions=(SystemMessage("One."), SystemMessage("Two.", {"openai": {"name": "n"}})),
    )

    def called(call_id: str, arguments: str) -> dict[str, Any]:
        function = {"name": "add", "arguments": arguments}
        return {"id": call_id, "type": "function", "function": function}

    def result(call_id: str, content: str) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": call_id, "content": content}

    assert body["messages"] == [
        {"role": "system", "content": "One."},
        {"role": "system", "content": "Two.", "name": "n"},
        {"role": "user", "content": "Add."},
        {
            "role": "assistant",
            "content": "First.",
            "tool_calls": [
                called("1", '{"a":1,"b":2}'),
                called("2", "{}"),
                called("3", "{}"),
                called("4", "{}"),
                called("5", "{}"),
            ],
        },
        result("1", '{"sum":3}'),
        result("2", "Error: bad"),
        result("3", "Error: the call was denied"),
        result("4", "as it is"),
        result("5", "Error: the call was interrupted"),
        {"role": "assistant", "content": "Then."},
        {
            "role": "user",
            "content": [{"type": "text", "text": "Thanks "}, {"type": "text", "text": "you"}],
        },
    ]


@pytest.mark.anyio
async def test_responses_history(edge: EdgeServer) -> None:
    body = await sent(
        OpenAIResponses,
        edge,
        user("Add."),
        assistant(
            "First.",
            ToolCallPart("1", "add", {"a": 1, "b": 2}, "completed", {"sum": 3}),
            ToolCallPart("2", "add", [1], "failed", error="bad"),
            "Then.",
        ),
        assistant(),
        instructions=(SystemMessage("One."), SystemMessage("Two.")),
    )
    said = {"type": "output_text", "annotations": []}
    assert body["instructions"] == "One.\n\nTwo."
    assert body["input"] == [
        {"role": "user", "content": "Add."},
        {"type": "message", "role": "assistant", "content": [{**said, "text": "First."}]},
        {"type": "function_call", "call_id": "1", "name": "add", "arguments": '{"a":1,"b":2}'},
        {"type": "function_call", "call_id": "2", "name": "add", "arguments": '{"input":[1]}'},
        {"type": "function_call_output", "call_id": "1", "output": '{"sum":3}'},
        {"type": "function_call_output", "call_id": "2", "output": "Error: bad"},
        {"type": "message", "role": "assistant", "content": [{**said, "text": "Then."}]},
    ]


@pytest.mark.anyio
async def test_responses_system_options(edge: EdgeServer) -> None:
    """Options of a message stay attached to it; those of others do no harm (A-INSTR-3)."""
    marked = SystemMessage("Two.", {"openai": {"x": 1}, "other": {"y": 2}})
    body = await sent(
        OpenAIResponses, edge, user("a"), instructions=(SystemMessage("One."), marked)
    )
    assert "instructions" not in body
    assert body["input"][:2] == [
        {"role": "system", "content": "One."},
        {"role": "system", "content": "Two.", "x": 1},
    ]


FILES = (
    FilePart("image/png", data="aW1n"),
    FilePart("image/jpeg", url="https://a.test/i.jpg"),
    FilePart("application/pdf", data="cGRm", filename="a.pdf"),
    FilePart("application/pdf", url="https://a.test/b.pdf", filename="b.pdf"),
    FilePart("audio/mpeg", data="bXAz"),
    FilePart("text/plain", data=base64.b64encode("grüß".encode()).decode(), filename="t.txt"),
)


@pytest.mark.anyio
async def test_chat_files(edge: EdgeServer) -> None:
    body = await sent(OpenAIChat, edge, user("Look:", *FILES))
    assert body["messages"][0]["content"] == [
        {"type": "text", "text": "Look:"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
        {"type": "image_url", "image_url": {"url": "https://a.test/i.jpg"}},
        {
            "type": "file",
            "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,cGRm"},
        },
        {"type": "text", "text": "b.pdf (application/pdf): https://a.test/b.pdf"},
        {"type": "input_audio", "input_audio": {"data": "bXAz", "format": "mp3"}},
        {"type": "text", "text": "t.txt:\ngrüß"},
    ]


@pytest.mark.anyio
async def test_responses_files(edge: EdgeServer) -> None:
    body = await sent(OpenAIResponses, edge, user("Look:", *FILES[:4]))
    assert body["input"][0]["content"] == [
        {"type": "input_text", "text": "Look:"},
        {"type": "input_image", "image_url": "data:image/png;base64,aW1n"},
        {"type": "input_image", "image_url": "https://a.test/i.jpg"},
        {
            "type": "input_file",
            "filename": "a.pdf",
            "file_data": "data:application/pdf;base64,cGRm",
        },
        {"type": "input_file", "filename": "b.pdf", "file_url": "https://a.test/b.pdf"},
    ]


@pytest.mark.anyio
@BOTH
async def test_images_of_tool_results(cls, edge: EdgeServer) -> None:
    """They go where the wire allows: into the output, or into a user's message behind it."""
    image = {"type": "file", "mediaType": "image/png", "data": "aW1n"}
    output: Any = [{"type": "text", "text": "Seen."}, image, {"n": 1}]
    looked = ToolCallPart("1", "look", {}, "completed", output)
    body = await sent(cls, edge, user("a"), assistant(looked, ToolCallPart("2", "f", {}, "denied")))
    after = messages_of(body)[2:]
    if cls is OpenAIChat:
        assert [each["role"] for each in after] == ["tool", "tool", "user"]
        assert after[0]["content"] == 'Seen.\n{"n":1}'
        assert after[2]["content"] == [
            {"type": "text", "text": "Files from look (1):"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1n"}},
        ]
    else:
        assert after[1]["output"] == [
            {"type": "input_text", "text": 'Seen.\n{"n":1}'},
            {"type": "input_image", "image_url": "data:image/png;base64,aW1n"},
        ]


@pytest.mark.anyio
@BOTH
async def test_lone_surrogates_are_dropped(cls, edge: EdgeServer) -> None:
    body = await sent(cls, edge, user("a\ud83db\ud83d\ude00"))
    assert messages_of(body)[0]["content"] == "ab\U0001f600"


def test_clean() -> None:
    assert clean("\ude00a\ud83d\ude00\ud83d") == "a\U0001f600"


@pytest.mark.anyio
@BOTH
async def test_history_is_encoded_once(cls, edge: EdgeServer) -> None:
    asked = user("a")
    done = assistant(ToolCallPart("1", "f", {}, "completed", 1))
    hosted = assistant(ToolCallPart("2", "web_search", {}, provider_executed=True))
    pending = assistant(ToolCallPart("3", "f", {}))
    for _ in range(2):
        await sent(cls, edge, asked, done, hosted, pending)
    assert edge.requests[0].body == edge.requests[1].body
    assert len(asked.wire) == len(done.wire) == 1
    assert not pending.wire
    assert not hosted.wire
    name = next(iter(asked.wire))
    asked.wire[name] = asked.wire[name].replace(b'"a"', b'"b"')
    assert messages_of(await sent(cls, edge, asked))[0]["content"] == "b"


@pytest.mark.anyio
async def test_tools_are_encoded_once(edge: EdgeServer) -> None:
    """By the identity of the tuple, so that an equal one of other tools is no mistake."""
    driver = OpenAIChat("m", base_url=edge.url)
    edge.play(stream(*CHAT["text"].events))
    for number in range(20):
        spec = ToolSpec(f"t{number}", "", {"type": "object"})
        tools = (spec,)
        for _ in range(2):
            await listen(driver, request(driver, tools=tools))
            names = [tool["function"]["name"] for tool in edge.requests[-1].json["tools"]]
            assert names == [f"t{number}"]
    assert len(driver._tools._kept) <= 8


# Tools and output


@pytest.mark.anyio
@BOTH
async def test_tools(cls, edge: EdgeServer) -> None:
    strict: Any = {**ADD.input_schema, "required": ["a", "b"]}
    tools = (ADD, ToolSpec("f", "Strict.", {"type": "object"}, strict))
    hosted = (
        ProviderTool("openai", "web_search", {"search_context_size": "low"}),
        ProviderTool("other", "thing"),
    )
    body = await sent(cls, edge, tools=tools, provider_tools=hosted, tool_choice="required")
    plain, bound, search = body["tools"]
    if cls is OpenAIChat:
        assert plain["type"] == bound["type"] == "function"
        plain, bound = plain["function"], bound["function"]
        assert "strict" not in plain
    else:
        assert plain["strict"] is False
    assert (plain["name"], plain["description"]) == ("add", "Add two integers.")
    assert plain["parameters"] == ADD.input_schema
    assert (bound["parameters"], bound["strict"]) == (strict, True)
    assert search == {"type": "web_search", "search_context_size": "low"}
    assert body["tool_choice"] == "required"


@pytest.mark.anyio
@BOTH
async def test_tool_choice(cls, edge: EdgeServer) -> None:
    """Sent only when the request has tools."""
    for choice in ("auto", "none", "required", ToolName("add")):
        assert "tool_choice" not in await sent(cls, edge, tool_choice=choice)
        body = await sent(cls, edge, tools=(ADD,), tool_choice=choice)
        if isinstance(choice, str):
            assert body["tool_choice"] == choice
        elif cls is OpenAIChat:
            assert body["tool_choice"] == {"type": "function", "function": {"name": "add"}}
        else:
            assert body["tool_choice"] == {"type": "function", "name": "add"}
    hosted = (ProviderTool("openai", "web_search"),)
    body = await sent(cls, edge, provider_tools=hosted, tool_choice=ToolName("web_search"))
    if cls is OpenAIResponses:
        assert body["tool_choice"] == {"type": "web_search"}


@pytest.mark.anyio
@BOTH
async def test_output(cls, edge: EdgeServer) -> None:
    schema = {
        "type": "object",
        "title": "A report!",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    body = await sent(cls, edge, output=schema)
    found = body["response_format"] if cls is OpenAIChat else body["text"]["format"]
    assert found["type"] == "json_schema"
    form = found["json_schema"] if cls is OpenAIChat else found
    assert (form["name"], form["strict"]) == ("A_report", True)
    assert set(form["schema"]["required"]) == {"a", "b"}
    loose = {"type": "object", "additionalProperties": {"type": "integer"}}
    body = await sent(cls, edge, output=loose)
    form = body["response_format"]["json_schema"] if cls is OpenAIChat else body["text"]["format"]
    assert (form["name"], form["strict"], form["schema"]) == ("answer", False, loose)


@pytest.mark.anyio
@BOTH
async def test_strict_nulls_are_undone(cls, edge: EdgeServer) -> None:
    """A null that only the strict form asked for does not reach the tool."""
    schema: Any = {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": False,
    }
    said = '{"a": 1, "b": null}'
    chat = (call(said, call_id="1", name="f"), *CALLED)
    events = chat if cls is OpenAIChat else (*function("f", said), ended())
    driver = cls(edge.play(stream(*events)), base_url=edge.url)
    for strict, expected in ((strict_form(schema), {"a": 1}), (None, {"a": 1, "b": None})):
        tools = (ToolSpec("f", "", schema, strict),)
        parts = await listen(driver, request(driver, tools=tools))
        assert [part.input for part in parts if isinstance(part, ToolCall)] == [expected]
