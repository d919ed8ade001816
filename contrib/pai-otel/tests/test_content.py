"""Content is recorded on opt-in alone, and only what is canonical (A-LIFE-6, R-40)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pai import (
    FilePart,
    ModelError,
    ReplaceInput,
    StepFinish,
    TextDelta,
    TextEnd,
    TextPart,
    TextStart,
    ToolCall,
    ToolFailure,
    ToolInputStart,
    ToolOutput,
    compose_lifecycle,
    create_pai,
    define_agent,
    hookimpl,
    run_once,
    tool,
)
from pai.testing import Call, Cut, Fail, Reason, ScriptedModel

pytestmark = pytest.mark.anyio

SECRET = "4111-1111"


@tool
def look(ctx: Any, what: str) -> str:
    """Look something up."""
    return f"{what}: {SECRET}"


class Redaction:
    """Takes a word out of all that is canonical."""

    @hookimpl
    async def transform_step_stream(self, step, stream):
        async for part in stream:
            if isinstance(part, TextDelta):
                part = TextDelta(part.id, part.text.replace(SECRET, "[card]"))
            elif isinstance(part, ToolCall):
                hidden = json.loads(json.dumps(part.input).replace(SECRET, "[card]"))
                part = ToolCall(part.call_id, part.tool, hidden)
            elif part.type in {"tool-input-delta", "reasoning-delta"}:
                continue
            yield part

    @hookimpl
    def after_tool_result(self, result):
        return ToolOutput(str(result.output).replace(SECRET, "[card]"))


async def play(plugin: Any, turns: Any, *others: Any, content: Any = "What is it?") -> None:
    agent = define_agent(
        name="a",
        model=ScriptedModel(turns),
        tools={"look": look},
        instructions="Be brief.",
        lifecycle=compose_lifecycle(plugin, *others),
    )
    async with create_pai(
        agents={"main": agent}, plugins=(), on_runtime_error=lambda error: None
    ) as app:
        run = await app.thread("main").send(content)
        await run.result()


TURNS = [
    [f"It is {SECRET}.", Reason(SECRET), Call("look", {"what": SECRET}, "c1")],
    f"The number is {SECRET}.",
]


async def test_nothing_is_recorded_unless_asked(recorder) -> None:
    await play(recorder.plugin(), TURNS)
    text = recorder.everything()
    for word in (SECRET, "What is it", "Be brief", "number is"):
        assert word not in text
    for span in recorder.spans:
        assert not {"gen_ai.input.messages", "gen_ai.output.messages"} & set(span.attributes)
        assert "gen_ai.system_instructions" not in span.attributes
        assert "gen_ai.tool.call.arguments" not in span.attributes
        assert "gen_ai.tool.call.result" not in span.attributes


async def test_what_was_taken_out_is_in_no_span(recorder) -> None:
    """A-LIFE-6: what a transform removed can be found in no trace."""
    await play(recorder.plugin(content=True), TURNS, Redaction())
    assert SECRET not in recorder.everything()
    assert "[card]" in recorder.everything()
    assert recorder.open == []


async def test_content_has_the_forms_of_the_conventions(recorder) -> None:
    await play(recorder.plugin(content=True), TURNS, Redaction())
    first, second = [span.attributes for span in recorder.named("chat")]
    question = {"role": "user", "parts": [{"type": "text", "content": "What is it?"}]}
    assert json.loads(first["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "Be brief."}
    ]
    assert json.loads(first["gen_ai.input.messages"]) == [question]
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"what": "[card]"}}
    said = {"type": "text", "content": "It is [card]."}
    [out] = json.loads(first["gen_ai.output.messages"])
    assert (out["role"], out["finish_reason"]) == ("assistant", "tool_call")
    assert [part for part in out["parts"] if part["type"] != "reasoning"] == [said, call]
    asked, answer, result = json.loads(second["gen_ai.input.messages"])
    assert asked == question
    assert call in answer["parts"]
    given = "[card]: [card]"
    assert result == {
        "role": "tool",
        "parts": [{"type": "tool_call_response", "id": "c1", "response": given}],
    }
    assert json.loads(second["gen_ai.output.messages"]) == [
        {
            "role": "assistant",
            "parts": [{"type": "text", "content": "The number is [card]."}],
            "finish_reason": "stop",
        }
    ]
    tool_call = recorder.one("execute_tool").attributes
    assert json.loads(tool_call["gen_ai.tool.call.arguments"]) == {"what": "[card]"}
    assert json.loads(tool_call["gen_ai.tool.call.result"]) == given


async def test_a_span_that_waits_for_its_step_ends_with_its_stream(recorder) -> None:
    class Slow:
        @hookimpl
        def rewrite_tool_input(self, call):
            assert recorder.open == ["chat script", "invoke_agent a"]
            return ReplaceInput({"what": "other"})

    await play(recorder.plugin(content=True), TURNS, Slow())
    [point] = [
        point
        for point in recorder.points("gen_ai.client.operation.duration")
        if "error.type" not in point.attributes
    ]
    spans = recorder.named("chat")
    seconds = sum((span.end_time - span.start_time) / 1e9 for span in spans)
    assert point.sum == pytest.approx(seconds)
    [_, call] = json.loads(spans[0].attributes["gen_ai.output.messages"])[0]["parts"][1:]
    assert call["arguments"] == {"what": "other"}


async def test_an_answer_that_is_not_committed_is_not_recorded(recorder) -> None:
    class Twice:
        """Throws a whole answer away."""

        @hookimpl
        async def wrap_model_call(self, step, call_model):
            async for _ in call_model(step.request):
                pass
            async for part in call_model(step.request):
                yield part

    class Instead:
        """Answers itself, after one whole answer and one that failed."""

        @hookimpl
        async def wrap_model_call(self, step, call_model):
            async for _ in call_model(step.request):
                pass
            try:
                async for _ in call_model(step.request):
                    pass
            except ModelError:
                for part in (TextStart("t"), TextDelta("t", "Mine."), TextEnd("t")):
                    yield part
                yield StepFinish("stop")

    class Broken:
        @hookimpl
        def before_tool_call(self):
            raise ValueError

    await play(recorder.plugin(content=True), [f"It is {SECRET}", "No."], Twice())
    first, second = [span.attributes for span in recorder.named("chat")]
    assert "gen_ai.output.messages" not in first
    assert "No." in second["gen_ai.output.messages"]
    await play(recorder.plugin(content=True), ["No.", Fail()], Instead())
    assert "Mine." not in recorder.everything()
    await play(recorder.plugin(content=True), TURNS, Redaction(), Broken())
    assert SECRET not in recorder.everything()
    assert recorder.open == []


async def test_answers_that_overlap(recorder) -> None:
    class Race:
        """Asks twice at once, and keeps what comes last."""

        @hookimpl
        async def wrap_model_call(self, step, call_model):
            one, two = call_model(step.request), call_model(step.request)
            first = await anext(two)
            async for _ in one:
                pass
            yield first
            async for part in two:
                yield part

    await play(recorder.plugin(content=True), ["kept", "lost"], Race())
    assert recorder.open == []
    outputs = [span.attributes.get("gen_ai.output.messages") for span in recorder.named("chat")]
    assert "kept" in outputs[0]
    assert outputs[1] is None


async def test_what_the_provider_ran(recorder) -> None:
    class Model(ScriptedModel):
        async def stream(self, request):
            if not self.requests:
                found = {"found": 3}
                yield ToolInputStart("p1", "web_search")
                yield ToolCall("p1", "web_search", {}, provider_executed=True, output=found)
            async for part in super().stream(request):
                yield part

    model = Model([Call("look", {"what": "x"}), "done"])
    agent = define_agent(
        name="a", model=model, tools={"look": look}, lifecycle=recorder.plugin(content=True)
    )
    await run_once(agent, "go")
    assert [span.name for span in recorder.named("execute_tool")] == ["execute_tool look"]
    call = {
        "type": "server_tool_call", "id": "p1", "name": "web_search",
        "server_tool_call": {"type": "web_search", "arguments": {}},
    }  # fmt: skip
    response = {
        "type": "server_tool_call_response", "id": "p1",
        "server_tool_call_response": {"type": "web_search", "response": {"found": 3}},
    }  # fmt: skip
    second = json.loads(recorder.named("chat")[1].attributes["gen_ai.input.messages"])
    assert second[1]["parts"][:2] == [call, response]
    assert [part["id"] for part in second[2]["parts"]] == [second[1]["parts"][2]["id"]]


async def test_texts_of_errors_are_content(recorder) -> None:
    """Of a model's error, which is free of content, and of what the model is told of a call."""

    class Failing:
        @hookimpl
        def after_tool_result(self):
            return ToolFailure("not today")

    turns = [Call("look", {"what": "x"}), Fail(ModelError("too many requests", provider="p"))]
    await play(recorder.plugin(content=True), turns, Failing())
    assert recorder.one("execute_tool").status.description == "not today"
    assert recorder.named("chat")[1].status.description == "too many requests"
    await play(recorder.plugin(content=True), [Fail(KeyError(SECRET))])
    await play(recorder.plugin(content=True), [[SECRET, Cut()]])
    assert SECRET not in recorder.everything()


async def test_bytes_of_files_are_left_out(recorder) -> None:
    parts = [
        TextPart("look"),
        FilePart("image/png", url="https://example.com/a.png"),
        FilePart("application/pdf", data="QUJD"),
        FilePart("text/plain", url="data:text/plain;base64,QUJD"),
    ]
    await play(recorder.plugin(content=True), ["ok"], content=parts)
    [message] = json.loads(recorder.one("chat").attributes["gen_ai.input.messages"])
    uri = {"type": "uri", "modality": "image", "mime_type": "image/png"}
    pdf = {"type": "blob", "modality": "document", "mime_type": "application/pdf"}
    assert message["parts"][1:] == [
        {**uri, "uri": "https://example.com/a.png"},
        {**pdf, "content": ""},
        {**pdf, "mime_type": "text/plain", "content": ""},
    ]
    assert "QUJD" not in recorder.everything()
