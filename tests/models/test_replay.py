"""What a provider wants back: kept with its parts, sent to it again, and to nobody else."""

from __future__ import annotations

from typing import Any, cast

import attrs
import pytest

from pai.models import OpenAIChat, OpenAIResponses
from pai.protocol import Message, OutputPart, ReasoningPart, TextPart, ToolCallPart
from pai.schema import JsonObject

from .chat_cases import CALLED, CHAT, STOP, call, chunk, text
from .edge_server import EdgeServer, stream
from .responses_cases import RESPONSES, ended, function, hosted, message, reasoning
from .told import assistant, kept, listen, request, user


async def answered(edge: EdgeServer, *events: dict[str, Any], **fields: Any) -> Message:
    """The message of a Responses stream, its calls settled with 7."""
    driver = OpenAIResponses(edge.play(stream(*events, ended())), base_url=edge.url)
    return kept(await listen(driver, request(driver, **fields)), {"f": 7, "sh": "done"})


async def again(edge: EdgeServer, *messages: Message, url: str | None = None) -> Any:
    driver = OpenAIResponses(edge.play(stream(*RESPONSES["text"].events)), base_url=url or edge.url)
    await listen(driver, request(driver, *messages))
    return edge.requests[-1].json["input"]


@pytest.mark.anyio
async def test_reasoning_goes_back_with_its_call(edge: EdgeServer) -> None:
    """The item of the end counts, whose secret is whole; ids and phase go with it."""
    said = message("Let me see.", index=1, item_id="msg_1", phase="commentary")
    called = function("f", "{}", index=2)
    answer = await answered(edge, *reasoning("hm", secret="whole"), *said, *called)
    assert await again(edge, user("a"), answer) == [
        {"role": "user", "content": "a"},
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "hm"}],
            "encrypted_content": "whole",
        },
        {
            "type": "message",
            "role": "assistant",
            "id": "msg_1",
            "phase": "commentary",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Let me see.", "annotations": []}],
        },
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "f",
            "arguments": "{}",
        },
        {"type": "function_call_output", "call_id": "call_1", "output": "7"},
    ]


@pytest.mark.anyio
async def test_reasoning_with_nothing_to_show(edge: EdgeServer) -> None:
    answer = await answered(edge, *reasoning(secret="s"), *function("f", "{}", index=1))
    assert (await again(edge, answer))[0]["type"] == "reasoning"
    answer = await answered(edge, *reasoning(), *function("f", "{}", index=1))
    assert [type(part) for part in answer.parts] == [ToolCallPart]


@pytest.mark.anyio
async def test_reasoning_that_cannot_go_back_takes_the_ids_along(edge: EdgeServer) -> None:
    """The service refuses an item whose reasoning it misses; without its id it is a plain one."""
    answer = await answered(edge, *reasoning("hm"), *function("f", "{}", index=1))
    called, _ = await again(edge, answer)
    assert "id" not in called
    answer = await answered(edge, *reasoning("hm", secret="s"), *function("f", "{}", index=1))
    without = assistant(*[part for part in answer.parts if not isinstance(part, ReasoningPart)])
    called, _ = await again(edge, without)
    assert "id" not in called


@pytest.mark.anyio
async def test_reasoning_with_nothing_behind_it_stays_away(edge: EdgeServer) -> None:
    answer = await answered(edge, *reasoning("hm", secret="s"))
    assert await again(edge, user("a"), answer) == [{"role": "user", "content": "a"}]


@pytest.mark.anyio
async def test_stored_reasoning(edge: EdgeServer) -> None:
    """Where the service keeps the response, its reasoning is named by id."""
    events = (*reasoning("hm"), *function("f", "{}", index=1))
    answer = await answered(edge, *events, provider_options={"openai": {"store": True}})
    sent = await again(edge, answer)
    assert [each.get("id") for each in sent] == ["rs_1", "fc_1", None]


@pytest.mark.anyio
async def test_raw_reasoning(edge: EdgeServer) -> None:
    answer = await answered(edge, *RESPONSES["raw reasoning"].events[:-1])
    thought, _ = await again(edge, answer)
    assert thought["content"] == [{"type": "reasoning_text", "text": "hmm"}]
    assert thought["summary"] == []


@pytest.mark.anyio
async def test_what_a_transform_changed_is_what_goes_back(edge: EdgeServer) -> None:
    """A-LIFE-6: nothing of the original text is kept beside the part."""
    answer = await answered(edge, *reasoning("secret", secret="s"), *message("secret", index=1))
    changed = assistant(
        *[attrs.evolve(cast("TextPart", part), text="masked") for part in answer.parts]
    )
    sent = str(await again(edge, changed))
    assert "masked" in sent
    assert "secret'" not in sent


@pytest.mark.anyio
async def test_nothing_goes_to_another_host(edge: EdgeServer) -> None:
    """Also through the wire form that is kept with the message."""
    events = (*reasoning("hm", secret="s"), *message("a", index=1), *function("f", "{}", index=2))
    answer = await answered(edge, *events)
    await again(edge, answer)
    other = edge.url.replace("127.0.0.1", "localhost")
    sent = await again(edge, answer, url=other)
    assert [each["type"] for each in sent] == ["message", "function_call", "function_call_output"]
    assert not any("id" in each for each in sent)


@pytest.mark.anyio
async def test_nothing_goes_to_the_other_api(edge: EdgeServer) -> None:
    events = (
        *reasoning("hm", secret="s"),
        *hosted(1, id="ws_1", type="web_search_call", action={"query": "q"}),
        *message("a", index=2),
        *function("f", "{}", index=3),
    )
    answer = await answered(edge, *events)
    driver = OpenAIChat(edge.play(stream(*CHAT["text"].events)), base_url=edge.url)
    await listen(driver, request(driver, answer))
    told, result = edge.requests[-1].json["messages"]
    assert set(told) == {"role", "content", "tool_calls"}
    assert told["content"] == "a"
    assert [each["function"]["name"] for each in told["tool_calls"]] == ["f"]
    assert result["content"] == "7"


@pytest.mark.anyio
async def test_hosted_items_go_back_whole(edge: EdgeServer) -> None:
    search = {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": {"q": 1}}
    shell = {"id": "sh_1", "type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}}
    out = {"id": "so_1", "type": "shell_call_output", "call_id": "c1", "output": [{"stdout": "x"}]}
    waits = {"id": "cc_1", "type": "computer_call", "call_id": "c2", "action": {"type": "click"}}
    asks = {"id": "ap_1", "type": "mcp_approval_request", "name": "n", "arguments": "{}"}
    items: tuple[Any, ...] = (search, shell, out, waits, asks)
    events = [event for at, data in enumerate(items) for event in hosted(at, **data)]
    answer = await answered(edge, *events)
    # What waits for an answer that nobody can give would be refused.
    assert await again(edge, answer) == [search, shell, out]


@pytest.mark.anyio
async def test_an_image_is_kept_once(edge: EdgeServer) -> None:
    picture: Any = {
        "id": "ig_1",
        "type": "image_generation_call",
        "result": "aW1n",
        "status": "done",
    }
    answer = await answered(edge, *hosted(**picture), *message("a", index=1))
    assert str(answer.parts).count("aW1n") == 1
    assert (await again(edge, answer))[0] == picture
    without = assistant(*[part for part in answer.parts if part.type != "file"])
    assert [each["type"] for each in await again(edge, without)] == ["message"]


@pytest.mark.anyio
async def test_several_contents_of_one_item(edge: EdgeServer) -> None:
    events = RESPONSES["two contents"].events[:-1]
    (sent,) = await again(edge, await answered(edge, *events))
    assert sent["id"] == "msg_1"
    assert [content["text"] for content in sent["content"]] == ["a", "b"]


@pytest.mark.anyio
async def test_a_refusal_goes_back_as_one(edge: EdgeServer) -> None:
    (sent,) = await again(edge, await answered(edge, *RESPONSES["refusal"].events[:-1]))
    assert sent["content"] == [{"type": "refusal", "refusal": "I cannot."}]


@pytest.mark.anyio
async def test_a_custom_call_goes_back_as_one(edge: EdgeServer) -> None:
    answer = await answered(edge, *RESPONSES["custom tool"].events[:-1])
    called, output = await again(edge, answer)
    assert (called["type"], called["input"]) == ("custom_tool_call", "ls")
    assert output == {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"}


@pytest.mark.anyio
async def test_an_old_part_of_another_provider(edge: EdgeServer) -> None:
    foreign: Any = {"other": {"id": "x"}, "openai": "odd"}
    parts = (ReasoningPart("r", provider_data=foreign), TextPart("a", foreign))
    (sent,) = await again(edge, assistant(*parts))
    assert set(sent) == {"type", "role", "content"}


# Chat


@pytest.mark.anyio
async def test_chat_reasoning_goes_back_with_its_calls(edge: EdgeServer) -> None:
    """Under the name it came by; without a call there is nothing that needs it."""
    for field in ("reasoning_content", "reasoning"):
        thought = (chunk({field: "h"}), chunk({field: "m"}))
        for events, expected in (
            ((*thought, call("{}", call_id="1", name="f"), *CALLED), "hm"),
            ((*thought, text("a"), *STOP), None),
        ):
            driver = OpenAIChat(edge.play(stream(*events)), base_url=edge.url)
            answer = kept(await listen(driver), {"f": 7})
            await listen(driver, request(driver, answer))
            assert edge.requests[-1].json["messages"][0].get(field) == expected


@pytest.mark.anyio
@pytest.mark.parametrize("cls", [OpenAIChat, OpenAIResponses])
async def test_call_ids_are_new_in_the_history(cls, edge: EdgeServer) -> None:
    """A server that counts from 1 in each answer does not confuse two calls."""
    chat = (call("{}", call_id="call_1", name="f"), *CALLED)
    events = chat if cls is OpenAIChat else (*function("f", "{}"), ended())
    driver = cls(edge.play(stream(*events)), base_url=edge.url)
    first = kept(await listen(driver), {"f": 7})
    second = kept(await listen(driver, request(driver, first)), {"f": 8})
    ids = [cast("ToolCallPart", answer.parts[0]).call_id for answer in (first, second)]
    assert ids[0] == "call_1"
    assert ids[1] != ids[0]


@pytest.mark.anyio
@pytest.mark.parametrize("prose", [(), ("Here:",)])
async def test_an_output_is_told_once(prose: tuple[str, ...], edge: EdgeServer) -> None:
    """O-11: one that was read from the text stands in it; one that was given as a value does not."""
    value: JsonObject = {"title": "T"}
    written = assistant(*prose, '{"title":"T"}', OutputPart(value))
    given = assistant(*prose, OutputPart(value, in_text=False))
    for answer in (written, given):
        chat = OpenAIChat(edge.play(stream(*CHAT["text"].events)), base_url=edge.url)
        await listen(chat, request(chat, user("a"), answer))
        said = [each["content"] for each in edge.requests[-1].json["messages"][1:]]
        assert "".join(said) == "".join([*prose, '{"title":"T"}'])
        told = (await again(edge, user("a"), answer))[1:]
        texts = [part["text"] for each in told for part in each["content"]]
        assert texts == [*prose, '{"title":"T"}']
